package ard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/hub"
)

func (d *Handler) post(path, body string) *httptest.ResponseRecorder {
	r := chi.NewRouter()
	d.Routes(r)
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

func TestSearch_SaysWhatIsWrong(t *testing.T) {
	d, _ := newDoor(0)
	long := strings.Repeat("a", 501)
	many := `"` + strings.Repeat(`x","`, 60) + `x"`
	for _, c := range []struct{ body, says string }{
		{``, "must be a JSON object"},
		{`[]`, "must be a JSON object"},
		{`{`, "not valid JSON"},
		{`{"query":{"text":"x"}} {}`, "more than one"},
		{"{\"query\":{\"text\":\"\xff\"}}", "UTF-8"},
		{`{"query":{"text":"x"},"query":{"text":"y"}}`, `names "query" twice`},
		{`{"Query":{"text":"x"}}`, "query: is missing"},
		{`{"text":"x"}`, "query: is missing"},
		{`{}`, "query: is missing"},
		{`{"query":null}`, "query: is missing"},
		{`{"query":"x"}`, "query must be a JSON object"},
		{`{"query":{}}`, "query.text: describe"},
		{`{"query":{"text":"  "}}`, "query.text: describe"},
		{`{"query":{"text":7}}`, "query.text: must be text"},
		{`{"query":{"text":"a\u0000b"}}`, "zero character"},
		{`{"query":{"text":"` + long + `"}}`, "query.text: use at most 500"},
		{`{"query":{"text":"x","filter":[]}}`, "query.filter must be a JSON object"},
		{`{"query":{"text":"x","filter":{"color":["red"]}}}`, "query.filter.color: is not a term this registry filters by; it knows capabilities, metadata.kind, metadata.liveness, metadata.proof, metadata.publisher, publisher, tags, trustManifest.attestations.type, type"},
		{`{"query":{"text":"x","filter":{"tags":[]}}}`, "at least one value"},
		{`{"query":{"text":"x","filter":{"tags":[""]}}}`, "1 to 200 bytes"},
		{`{"query":{"text":"x","filter":{"tags":{"a":1}}}}`, "query.filter.tags: must be text"},
		{`{"query":{"text":"x","filter":{"tags":[` + many + `]}}}`, "at most 50"},
		{`{"query":{"text":"x","filter":{"tags":["a"],"https://agenticresourcediscovery.org/ns#tags":["b"]}}}`, "already filtered by"},
		{`{"query":{"text":"x","@context":{"a":5},"filter":{"tags":"b"}}}`, "query.@context"},
		{`{"query":{"text":"x","@context":{"a":"https://a.example/#"},"filter":{"a:tags":"b"}}}`, "query.filter.a:tags: is not a term"},
		{`{"query":{"text":"x"},"federation":"all"}`, "federation: use auto, referrals or none"},
		{`{"query":{"text":"x"},"pageSize":0}`, "pageSize: use a whole number from 1 to 100"},
		{`{"query":{"text":"x"},"pageSize":101}`, "pageSize: use"},
		{`{"query":{"text":"x"},"pageSize":1.5}`, "pageSize: use"},
		{`{"query":{"text":"x"},"pageSize":"10"}`, "pageSize: use"},
		{`{"query":{"text":"x"},"pageToken":"!"}`, "pageToken: is not one"},
		{`{"query":{"text":"x"},"pageToken":"` + sealToken(1, "x") + `"}`, "pageToken: is not one"},
	} {
		w := d.post("/ard/search", c.body)
		var e errorJSON
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != http.StatusBadRequest || e.Code != "INVALID_ARGUMENT" || !strings.Contains(e.Message, c.says) {
			t.Errorf("%.120s: %d %s; want %q", c.body, w.Code, w.Body, c.says)
		}
	}
}

func TestSearch_Filters(t *testing.T) {
	d, dir := newDoor(60)
	odd := made(100)
	odd.Kind, odd.Publisher, odd.Proof.State = hub.Prompt, "acme.example", hub.Hosted
	odd.Skills = append(odd.Skills, hub.Skill{ID: "sing", Name: "Sing a Song"})
	dir.Put(odd)
	const ns = `"https://agenticresourcediscovery.org/ns#`
	for filter, want := range map[string]int{
		`{}`:                            61,
		`{"type":["` + cardType + `"]}`: 61,
		`{"type":"APPLICATION/A2A-agent-card+json"}`:                       61,
		`{"type":["application/mcp-server-card+json"]}`:                    61,
		`{"type":["application/agent-skills+zip"]}`:                        0,
		`{"trustManifest.attestations.type":["SOC2-Type2"]}`:               0,
		`{"type":["application/mcp-server-card+json","` + cardType + `"]}`: 61,
		`{"publisher":["portal.example"]}`:                                 61,
		`{"publisher":["other.example"]}`:                                  0,
		`{"publisher":["other.example"],"metadata.kind":["link"]}`:         0,
		`{"tags":["tag-01"]}`:                                              2,
		`{"tags":["TAG-01","tag-02"]}`:                                     4,
		`{"tags":["tag-01"],"metadata.liveness":["alive"]}`:                2,
		`{"tags":["tag-03"],"metadata.liveness":["alive"]}`:                1,
		`{"tags":["tag-03"],"metadata.liveness":["alive","unreachable"]}`:  2,
		`{"metadata.liveness":["asleep"]}`:                                 0,
		`{"metadata.kind":["prompt"]}`:                                     1,
		`{"metadata.proof":["hosted"]}`:                                    1,
		`{"metadata.publisher":["acme.example"]}`:                          1,
		`{"capabilities":["sing a song"]}`:                                 1,
		`{` + ns + `tags":["tag-01"]}`:                                     2,
	} {
		w := d.post("/ard/search", `{"query":{"text":"agent","filter":`+filter+`},"pageSize":100}`)
		var out searchJSON
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK || len(out.Results) != want {
			t.Errorf("%s: %d, %d results, want %d: %.200s", filter, w.Code, len(out.Results), want, w.Body)
		}
	}
	for what, query := range map[string]string{
		"a prefix":          `"@context":{"d":"https://agenticresourcediscovery.org/ns#"},"filter":{"d:tags":"tag-01"}`,
		"a renamed term":    `"@context":["https://agenticresourcediscovery.org/context/v1",{"label":{"@id":"https://agenticresourcediscovery.org/ns#tags"}}],"filter":{"label":"tag-01"}`,
		"a path behind one": `"@context":{"d":"https://agenticresourcediscovery.org/ns#"},"filter":{"d:metadata.kind":"link","tags":"tag-01"}`,
	} {
		w := d.post("/ard/search", `{"query":{"text":"agent",`+query+`}}`)
		var out searchJSON
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || len(out.Results) != 2 {
			t.Errorf("%s: %d %.200s", what, w.Code, w.Body)
		}
	}
}

// Pages go on where the last ended and are scaled by one score; within an
// answer the score never rises.
func TestSearch_PagesAndScores(t *testing.T) {
	d, dir := newDoor(120)
	best := made(500)
	best.Title, best.Liveness.State = "Agent agent", hub.Unreachable
	dir.Put(best)
	seen := make(map[string]bool)
	last, token := 100, ""
	for pages := 0; ; pages++ {
		w := d.post("/ard/search", fmt.Sprintf(`{"query":{"text":"agent 7"},"pageSize":10,"pageToken":%q}`, token))
		var out searchJSON
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for i, r := range out.Results {
			if pages == 0 && i == 0 && r.Score != 100 {
				t.Errorf("the best has %d", r.Score)
			}
			if r.Score < 1 || r.Score > last {
				t.Errorf("%d after %d", r.Score, last)
			}
			last = r.Score
			if seen[r.Identifier] {
				t.Errorf("%s twice", r.Identifier)
			}
			seen[r.Identifier] = true
			if r.Source != "https://portal.example/ard" || r.Queries != nil {
				t.Errorf("%+v", r)
			}
		}
		if token = out.PageToken; token == "" {
			break
		}
	}
	if len(seen) != 121 || last >= 100 {
		t.Errorf("%d agents seen, the last has %d", len(seen), last)
	}
}

func TestSearch_LongTextsPageToo(t *testing.T) {
	d, _ := newDoor(30)
	text := strings.TrimSpace(strings.Repeat("agent test talk answers ", 20))
	w := d.post("/ard/search", fmt.Sprintf(`{"query":{"text":%q},"pageSize":10}`, text))
	var out searchJSON
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.PageToken == "" {
		t.Fatalf("%d %.200s", w.Code, w.Body)
	}
	if w = d.post("/ard/search", fmt.Sprintf(`{"query":{"text":%q},"pageSize":10,"pageToken":%q}`, text, out.PageToken)); w.Code != http.StatusOK {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
}

func TestSearch_Federation(t *testing.T) {
	d, _ := newDoor(3)
	for mode, referrals := range map[string]bool{`"auto"`: false, `"none"`: false, `"referrals"`: true, `null`: false} {
		w := d.post("/ard/search", `{"query":{"text":"agent"},"federation":`+mode+`}`)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"referrals":[{`) != referrals || strings.Contains(w.Body.String(), "referrals") != referrals {
			t.Errorf("%s: %d %s", mode, w.Code, w.Body)
		}
	}
}

func TestExplore_CountsWhatIsFound(t *testing.T) {
	d, _ := newDoor(60)
	explore := func(body string) map[string]facetJSON {
		t.Helper()
		w := d.post("/ard/explore", body)
		var out exploreJSON
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK || out.ResultType != "facets" {
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
		return out.Facets
	}
	f := explore(`{"resultType":{"facets":[{"field":"type"},{"field":"publisher"},{"field":"metadata.liveness","limit":1},{"field":"tags","limit":2},{"field":"metadata.publisher"}]}}`)
	if got := fmt.Sprint(f["type"].Buckets, *f["type"].Other, f["publisher"].Buckets); got != "[{application/a2a-agent-card+json 60} {application/mcp-server-card+json 60}] 0 [{portal.example 60}]" {
		t.Error(got)
	}
	if got := fmt.Sprint(f["metadata.liveness"].Buckets, *f["metadata.liveness"].Other); got != "[{alive 40}] 20" {
		t.Error(got)
	}
	if got := fmt.Sprint(f["tags"].Buckets); got != "[{test 60} {tag-00 2}]" || f["tags"].Other != nil { // 41 tags: more than are counted
		t.Error(got, f["tags"].Other)
	}
	if b := f["metadata.publisher"]; b.Buckets == nil || len(b.Buckets) != 0 || *b.Other != 0 {
		t.Errorf("%+v", b)
	}
	// A term that is filtered by is counted among what passes.
	f = explore(`{"query":{"text":"agent","filter":{"tags":["tag-03","tag-04"]}},"resultType":{"facets":[{"field":"tags"},{"field":"metadata.liveness"}]}}`)
	if got := fmt.Sprint(f["tags"].Buckets, *f["tags"].Other, f["metadata.liveness"].Buckets); got != "[{test 4} {tag-03 2} {tag-04 2}] 0 [{alive 3} {unreachable 1}]" {
		t.Error(got)
	}
	f = explore(`{"resultType":{"facets":[{"field":"tags","minCount":60}]}}`)
	if got := fmt.Sprint(f["tags"].Buckets, *f["tags"].Other); got != "[{test 60}] 0" {
		t.Error(got)
	}
	for _, c := range []struct{ body, says string }{
		{`{}`, "resultType: is missing"},
		{`{"resultType":{}}`, "resultType.facets: is missing"},
		{`{"resultType":{"facets":[]}}`, "is empty"},
		{`{"resultType":{"facets":[{}]}}`, "is not a term this registry counts"},
		{`{"resultType":{"facets":[{"field":"color"}]}}`, "it knows capabilities"},
		{`{"resultType":{"facets":[{"field":"tags","limit":0}]}}`, "resultType.facets.limit"},
		{`{"resultType":{"facets":[{"field":"tags","minCount":-1}]}}`, "resultType.facets.minCount"},
		{`{"resultType":{"facets":[` + strings.Repeat(`{"field":"tags"},`, 20) + `{"field":"tags"}]}}`, "at most 20"},
	} {
		if w := d.post("/ard/explore", c.body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s", c.body, w.Code, w.Body)
		}
	}
}

func TestList_OrdersFiltersAndPages(t *testing.T) {
	d, _ := newDoor(60)
	list := func(query string) (out listJSON) {
		t.Helper()
		w := d.get("/ard/agents?" + query)
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
		return out
	}
	name := func(e entry) string { return e.Identifier[strings.LastIndexByte(e.Identifier, ':')+1:] }
	out := list("")
	if len(out.Items) != 20 || out.Total != 60 || name(out.Items[0]) != "agent-00000" || len(out.Items[0].Queries) != 2 {
		t.Errorf("%d of %d, first %+v", len(out.Items), out.Total, out.Items[0])
	}
	var names []string
	for token := ""; ; {
		out = list("pageSize=25&orderBy=createdAt+desc&pageToken=" + token)
		for _, e := range out.Items {
			names = append(names, name(e))
		}
		if token = out.PageToken; token == "" {
			break
		}
	}
	if len(names) != 60 || !slices.IsSortedFunc(names, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("%d names: %v", len(names), names)
	}
	for filter, want := range map[string]int{
		"type = 'application/a2a-agent-card+json'":                                  60,
		"type=application/a2a-agent-card+json":                                      60,
		"type = 'application/mcp-server-card+json,application/a2a-agent-card+json'": 60,
		"type = 'application/mcp-server-card+json'":                                 60,
		"publisherId = 'portal.example' AND tags = 'tag-01,tag-02'":                 4,
		`metadata.liveness = "alive" and tags = tag-03`:                             1,
		"createdAfter > '2026-01-03'":                                               11,
		"createdAfter >= '2026-01-03'":                                              12,
		"createdAfter > '2026-01-03T10:00:00Z'":                                     1,
		"updatedAfter > '2027-01-01'":                                               0,
		"createdAfter > '2026-01-01' AND updatedAfter > '2026-01-03T09:00:00Z'":     2,
	} {
		if out := list("filter=" + strings.NewReplacer(" ", "%20", "'", "%27", `"`, "%22", "+", "%2B").Replace(filter)); out.Total != want || len(out.Items) != min(want, 20) {
			t.Errorf("%s: %d of %d, want %d", filter, len(out.Items), out.Total, want)
		}
	}
	for query, says := range map[string]string{
		"orderBy=displayName":                   "orderBy: use name, createdAt DESC or updatedAt DESC",
		"pageSize=0":                            "pageSize: use",
		"pageSize=many":                         "pageSize: use",
		"pageToken=x":                           "pageToken: is not one",
		"pageSize=1&pageSize=2":                 "pageSize: is given twice",
		"filter=color%3Dred":                    "filter.color: is not a field this registry filters by; it knows createdAfter, updatedAfter, publisherId, capabilities",
		"filter=tags":                           "filter: is not understood",
		"filter=tags%3E%27a%27":                 "filter.tags: compares by = only",
		"filter=createdAfter%3E%27yesterday%27": "filter.createdAfter: use a time",
		"filter=tags%3Da%20OR%20tags%3Db":       "filter: is not understood",
		"filter=tags%3D%27%2C%27":               "filter.tags: give 1 to 50 values",
		"filter=tags%3Da%20AND%20tags%3Db":      "filter.tags: is a term that is already filtered by",
		"filter=" + strings.Repeat("a", 2001):   "filter: use at most 2000",
	} {
		if w := d.get("/ard/agents?" + query); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%.80s: %d %s", query, w.Code, w.Body)
		}
	}
}

func FuzzDecodeSearch(f *testing.F) {
	for _, s := range []string{
		`{"query":{"text":"find me a flight booking agent","filter":{"type":["application/a2a-agent-card+json"],"tags":"finance"}},"federation":"referrals","pageSize":5}`,
		`{"query":{"@context":[{"d":"https://agenticresourcediscovery.org/ns#"},"https://x.example"],"text":"x","filter":{"d:tags":["a"],"metadata.kind":"link"}},"pageToken":"` + sealToken(3.5, "cursor") + `"}`,
		`{"query":{"text":"x"},"resultType":{"facets":[{"field":"tags","limit":5,"minCount":2}]}}`, `{`, ``,
	} {
		f.Add(s)
	}
	d, _ := newDoor(3)
	f.Fuzz(func(t *testing.T, body string) {
		if s, err := d.decodeSearch([]byte(body)); err == nil {
			if s.Text == "" || len(s.Text) > maxTextBytes || s.Limit < 1 || s.Limit > maxPage {
				t.Errorf("%q was let through as %+v", body, s)
			}
		}
		if e, err := d.decodeExplore([]byte(body)); err == nil && (len(e.facets) == 0 || len(e.facets) > maxFacets) {
			t.Errorf("%q was let through as %+v", body, e)
		}
		w := d.post("/ard/search", body)
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	})
}

func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{"type = 'a,b' AND createdAfter > '2026-01-31'", `a="b" and c>=d`, "a=", "=b", "a=b AND ", "a='b'AND c=d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clauses, err := parseFilter(s)
		if err != nil {
			return
		}
		if len(clauses) > maxClauses || len(clauses) == 0 && strings.TrimSpace(s) != "" {
			t.Errorf("%q is %d clauses", s, len(clauses))
		}
		for _, c := range clauses {
			if c.field == "" || c.operator == "" || !strings.Contains(s, c.field) || !strings.Contains(s, c.value) {
				t.Errorf("%q has the clause %+v", s, c)
			}
		}
	})
}

// TestSearch_OtherPortals: agents of other portals are found with federation
// auto only, as their portals' entries; lists, counts and catalogs are of this
// portal's own.
func TestSearch_OtherPortals(t *testing.T) {
	d, dir := newDoor(1)
	far := made(7)
	far.ID, far.Name, far.Portal, far.Verified = "p1"+strings.Repeat("a", 52)+"/x", "far", "other.example:8443", true
	dir.Put(far)
	type found struct {
		Results []struct {
			Identifier, URL, Source string
			TrustManifest           any
		}
		Referrals []struct{ Identifier, Type, URL string }
	}
	search := func(more string) found {
		t.Helper()
		w := d.post("/ard/search", `{"query":{"text":"answers in a test"`+more+`}`)
		if w.Code != http.StatusOK {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		var f found
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := search("}")
	if len(f.Results) != 2 || f.Referrals != nil {
		t.Fatalf("%+v", f)
	}
	for _, r := range f.Results {
		if strings.HasSuffix(r.Identifier, ":far") && (r.Identifier != "urn:air:other.example:agents:far" || r.URL != "https://other.example:8443/agents/far/.well-known/agent-card.json" || r.Source != "https://other.example:8443/ard" || r.TrustManifest != nil) {
			t.Errorf("%+v", r)
		}
	}
	if f = search(`},"federation":"none"`); len(f.Results) != 1 || f.Referrals != nil {
		t.Errorf("none: %+v", f)
	}
	f = search(`},"federation":"referrals"`)
	if len(f.Results) != 1 || len(f.Referrals) != 1 || f.Referrals[0].URL != "https://other.example:8443/ard" || f.Referrals[0].Type != registryType || f.Referrals[0].Identifier != "urn:air:other.example:registry:agents" {
		t.Errorf("referrals: %+v", f)
	}
	if f = search(`,"filter":{"publisher":["other.example"]}}`); len(f.Results) != 1 || f.Results[0].Identifier != "urn:air:other.example:agents:far" {
		t.Errorf("its publisher: %+v", f)
	}
	if f = search(`,"filter":{"publisher":["other.example"]}},"federation":"none"`); len(f.Results) != 0 {
		t.Errorf("its publisher, here: %+v", f)
	}
	if f = search(`,"filter":{"publisher":["nobody.example"]}}`); len(f.Results) != 0 {
		t.Errorf("nobody: %+v", f)
	}
	for _, path := range []string{"/ard/agents", "/.well-known/ard.json", "/.well-known/ai-catalog.json", "/nodeinfo/2.1"} {
		if w := d.get(path); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "far") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := d.get("/ard/agents/urn:air:other.example:agents:far"); w.Code != http.StatusNotFound {
		t.Errorf("%d: another portal's entry", w.Code)
	}
}
