package ard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

type entry struct {
	Identifier, DisplayName, Type, URL string
	RepresentativeQueries              []string
	Score                              *int
	Source                             string
}

type answer struct {
	Entries, Items, Results []entry
	Total                   int
	PageToken, ErrorCode    string
	Message                 string
}

func readBody(t *testing.T, a apptest.Answer, status int) (out answer) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("%d, want %d: %.300s", a.Status, status, a.Body)
	}
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil {
		t.Fatalf("%v: %.300s", err, a.Body)
	}
	return out
}

func at(identifier string) string { return "/ard/agents/" + url.QueryEscape(identifier) }

// A consumer follows the specification: the page's link or the well-known
// path, the registry entry, a search, and the entry of a result.
func TestPortal_IsFoundAndAsked(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.Guest(t)
	if home := c.Must(http.MethodGet, "/", nil, http.StatusOK).Body; !strings.Contains(home, `<link rel="ard" href="/.well-known/ard.json">`) {
		t.Error("the page does not link the catalog")
	}
	if robots := c.Must(http.MethodGet, "/robots.txt", nil, http.StatusOK).Body; !strings.Contains(robots, "\nAgentmap: "+p.URL()+"/.well-known/ard.json\n") {
		t.Errorf("robots.txt: %s", robots)
	}
	a := c.Must(http.MethodGet, "/.well-known/ard.json", nil, http.StatusOK)
	if a.Header.Get("Content-Type") != "application/json; charset=utf-8" || a.Header.Get("Cache-Control") != "public, max-age=300" {
		t.Errorf("%v", a.Header)
	}
	catalog := readBody(t, a, http.StatusOK).Entries
	if len(catalog) != 5 || catalog[0].Type != "application/ai-registry+json" {
		t.Fatalf("%+v", catalog)
	}
	registry, ok := strings.CutPrefix(catalog[0].URL, p.URL())
	if !ok {
		t.Fatalf("the registry is at %s", catalog[0].URL)
	}
	for _, e := range catalog {
		if n := len(e.RepresentativeQueries); n < 2 || n > 5 {
			t.Errorf("%s has %d queries", e.Identifier, n)
		}
		if got := c.Must(http.MethodGet, registry+"/agents/"+url.QueryEscape(e.Identifier), nil, http.StatusOK).Body; !strings.Contains(a.Body, strings.TrimSpace(got)) {
			t.Errorf("%s is another entry in the catalog: %s", e.Identifier, got)
		}
	}
	found := readBody(t, c.Do(http.MethodPost, registry+"/search", map[string]any{"query": map[string]any{"text": "who can calculate percentages"}}), http.StatusOK).Results
	if len(found) == 0 || found[0].DisplayName != "Calculator" || *found[0].Score != 100 || found[0].Source != catalog[0].URL {
		t.Fatalf("%+v", found)
	}
	if ai := c.Must(http.MethodGet, "/.well-known/ai-catalog.json", nil, http.StatusOK); ai.Header.Get("Content-Type") != "application/ai-catalog+json" {
		t.Errorf("%v", ai.Header)
	}
	// The probes of the official conformance test.
	weather := `{"query":{"text":"weather forecast tools","filter":{"type":["application/mcp-server-card+json"]}},"federation":"none","pageSize":2}`
	if out := c.Must(http.MethodPost, "/ard/search", weather, http.StatusOK); !strings.Contains(out.Body, `"results":[]`) {
		t.Error(out.Body)
	}
	if out := readBody(t, c.Do(http.MethodGet, at("urn:air:ard-conformance.invalid:probe:not-found"), nil), http.StatusNotFound); out.ErrorCode != "NOT_FOUND" || out.Message == "" {
		t.Errorf("%+v", out)
	}
	if out := readBody(t, c.Do(http.MethodGet, at("not-a-valid-ard-urn"), nil), http.StatusBadRequest); out.ErrorCode != "INVALID_ARGUMENT" || out.Message == "" {
		t.Errorf("%+v", out)
	}
}

func TestRetrieve_IsExactAndDecodesOnce(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.Guest(t)
	const calc = "urn:air:127.0.0.1:agents:calc"
	for path, status := range map[string]int{
		at(calc):              http.StatusOK,
		"/ard/agents/" + calc: http.StatusOK, // colons may stand in a path
		"/ard/agents/urn:air:127.0.0.1:agents%3Acalc":               http.StatusOK,
		"/ard/agents/urn:air:127.0.0.1:agents:c%61lc":               http.StatusOK,
		"/ard/agents/urn%253Aair%253A127.0.0.1%253Aagents%253Acalc": http.StatusBadRequest, // encoded twice
		"/ard/agents/urn:air:127.0.0.1:agents:c%2561lc":             http.StatusBadRequest,
		at("urn:air:127.0.0.1:agents:Calc"):                         http.StatusNotFound,
		at("urn:air:127.0.0.1:Agents:calc"):                         http.StatusNotFound,
		at("urn:AIR:127.0.0.1:agents:calc"):                         http.StatusBadRequest,
		at("urn:air:127.0.0.1:calc"):                                http.StatusNotFound,
		at("urn:air:127.0.0.1:agents:calc:x"):                       http.StatusNotFound,
		at("urn:air:127.0.0.1:agents:"):                             http.StatusBadRequest,
		at(p.Host + ":agents:calc"):                                 http.StatusBadRequest,
		at("urn:air:" + p.Host + ":agents:calc"):                    http.StatusNotFound, // a publisher has no port
		at("urn:air:127.0.0.1:agents:@calc"):                        http.StatusBadRequest,
		at("urn:air:127.0.0.1:agents:calc/../guide"):                http.StatusBadRequest,
		at("urn:air:127.0.0.1:agents:" + strings.Repeat("a", 600)):  http.StatusBadRequest,
		"/ard/agents/":                  http.StatusOK, // as without the slash
		"/ard":                          http.StatusNotFound,
		"/ard/agents/" + calc + "/card": http.StatusNotFound,
	} {
		out := readBody(t, c.Do(http.MethodGet, path, nil), status)
		if status == http.StatusOK && (out.ErrorCode != "" || out.Message != "") || status != http.StatusOK && (out.ErrorCode == "" || out.Message == "") {
			t.Errorf("%s: %+v", path, out)
		}
	}
	a := c.Must(http.MethodGet, at(calc), nil, http.StatusOK)
	if a.Header.Get("Cache-Control") != "public, max-age=60" || a.Header.Get("ETag") == "" || strings.Contains(a.Body, `"score"`) || strings.Contains(a.Body, `"source"`) {
		t.Errorf("%v %s", a.Header, a.Body)
	}
	for tag, status := range map[string]int{a.Header.Get("ETag"): http.StatusNotModified, `"x", W/` + a.Header.Get("ETag"): http.StatusNotModified, `"x"`: http.StatusOK} {
		b := c.Do(http.MethodGet, at(calc), nil, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
		if b.Status != status || b.Header.Get("ETag") != a.Header.Get("ETag") || status == http.StatusNotModified && b.Body != "" {
			t.Errorf("%s: %d %s", tag, b.Status, b.Body)
		}
	}
	// What was asked for with a token is not for shared caches.
	if b := p.User(t, "ada").NewToken("agents:read").Must(http.MethodGet, at(calc), nil, http.StatusOK); b.Header.Get("Cache-Control") != "private, max-age=60" || b.Header.Get("Vary") != "Authorization" {
		t.Errorf("%v", b.Header)
	}
}

// Nothing of an agent that is not public shows, to its owner neither.
func TestRegistry_ListsPublicAgentsOnly(t *testing.T) {
	t.Parallel()
	far := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	token := ada.NewToken("agents:read")
	hidden := map[string]string{}
	for _, v := range []string{"unlisted", "private"} {
		hidden[ada.Agent(v, far.Base(agenttest.Echo))] = v
	}
	gone := ada.Agent("public", far.Base(agenttest.Echo))
	ada.Must(http.MethodPatch, "/api/v1/agents/"+gone, map[string]any{"status": map[string]any{"state": "withdrawn"}}, http.StatusOK)
	hidden[gone] = "withdrawn"
	draft := apptest.Fresh("draft")
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": draft, "kind": "link", "description": "An agent of a test.", "visibility": "public", "status": map[string]any{"state": "draft"}}, http.StatusCreated)
	hidden[draft] = "a draft"
	shown := ada.Agent("public", far.Base(agenttest.Echo))
	for who, c := range map[string]*apptest.Client{"guest": p.Guest(t), "owner": token} {
		var all strings.Builder
		all.WriteString(c.Must(http.MethodGet, "/ard/agents?pageSize=100", nil, http.StatusOK).Body)
		all.WriteString(c.Must(http.MethodGet, "/.well-known/ard.json", nil, http.StatusOK).Body)
		all.WriteString(c.Must(http.MethodGet, "/.well-known/ai-catalog.json", nil, http.StatusOK).Body)
		all.WriteString(c.Must(http.MethodPost, "/ard/search", `{"query":{"text":"an agent of a test"},"pageSize":100}`, http.StatusOK).Body)
		if n := strings.Count(all.String(), `{"identifier":"urn:air:127.0.0.1:agents:`+shown+`","displayName"`); n != 4 {
			t.Errorf("%s: the public agent shows %d times: %s", who, n, all.String())
		}
		for name, why := range hidden {
			if strings.Contains(all.String(), name) {
				t.Errorf("%s: %s, which is %s, shows", who, name, why)
			}
			here := c.Do(http.MethodGet, at("urn:air:127.0.0.1:agents:"+name), nil)
			absent := c.Do(http.MethodGet, at("urn:air:127.0.0.1:agents:nobody"), nil)
			if here.Status != http.StatusNotFound || strings.ReplaceAll(here.Body, name, "nobody") != absent.Body {
				t.Errorf("%s: %s, which is %s: %d %s", who, name, why, here.Status, here.Body)
			}
		}
	}
	out := readBody(t, p.Guest(t).Do(http.MethodGet, "/ard/agents", nil), http.StatusOK)
	if out.Total != 3 {
		t.Errorf("%d agents", out.Total)
	}
}

func TestRegistry_ErrorsHaveItsShape(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.Guest(t)
	ada := p.User(t, "ada")
	good := `{"query":{"text":"calculator"}}`
	for what, ask := range map[string]struct {
		a      apptest.Answer
		status int
		code   string
	}{
		"no content type":    {c.Do(http.MethodPost, "/ard/search", good, func(r *http.Request) { r.Header.Del("Content-Type") }), http.StatusBadRequest, "INVALID_ARGUMENT"},
		"a form":             {c.Do(http.MethodPost, "/ard/search", url.Values{"text": {"x"}}), http.StatusBadRequest, "INVALID_ARGUMENT"},
		"a large body":       {c.Do(http.MethodPost, "/ard/explore", good+strings.Repeat(" ", 1<<17)), http.StatusRequestEntityTooLarge, "INVALID_ARGUMENT"},
		"a deep body":        {c.Do(http.MethodPost, "/ard/search", `{"query":`+strings.Repeat("[", 60_000)), http.StatusBadRequest, "INVALID_ARGUMENT"},
		"an unknown token":   {p.Bearer(t, "ags_unknown").Do(http.MethodPost, "/ard/search", good), http.StatusUnauthorized, "UNAUTHENTICATED"},
		"a session's secret": {p.Bearer(t, "agss_x").Do(http.MethodGet, "/ard/agents", nil), http.StatusUnauthorized, "UNAUTHENTICATED"},
		"a narrow token":     {ada.NewToken("tasks").Do(http.MethodPost, "/ard/search", good), http.StatusForbidden, "PERMISSION_DENIED"},
		"another operation":  {c.Do(http.MethodGet, "/ard/search", nil), http.StatusNotFound, "NOT_FOUND"},
		"a cursor of others": {c.Do(http.MethodGet, "/ard/agents?pageToken=abc", nil), http.StatusBadRequest, "INVALID_ARGUMENT"},
	} {
		out := readBody(t, ask.a, ask.status)
		if out.ErrorCode != ask.code || out.Message == "" || ask.a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s", what, ask.a.Status, ask.a.Body)
		}
		if (ask.status == http.StatusUnauthorized) != (ask.a.Header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: WWW-Authenticate %q", what, ask.a.Header.Get("WWW-Authenticate"))
		}
	}
	// Charsets and types of JSON by another name are fine.
	for _, kind := range []string{"application/json; charset=utf-8", "application/ld+json"} {
		c.Must(http.MethodPost, "/ard/search", good, http.StatusOK, func(r *http.Request) { r.Header.Set("Content-Type", kind) })
	}
}

// A page token of a long text is long, and still good.
func TestSearch_PagesThroughThePortal(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	oper := p.Operator(t, "rob")
	var lines strings.Builder
	for n := range 40 {
		fmt.Fprintf(&lines, `{"name":"helper-%d","kind":"link","description":"Helps with translations, translators and translating of contracts and contractors in meetings.","visibility":"public"}`+"\n", n)
	}
	oper.Must(http.MethodPost, "/api/v1/import", lines.String(), http.StatusOK)
	text := "translat contract meeting helps translating translations translators contractors meetings with of and in helper"
	seen, token := 0, ""
	for {
		out := readBody(t, p.Guest(t).Do(http.MethodPost, "/ard/search", map[string]any{"query": map[string]any{"text": text}, "pageSize": 15, "pageToken": token}), http.StatusOK)
		seen += len(out.Results)
		if token = out.PageToken; token == "" {
			break
		}
	}
	if seen < 40 {
		t.Errorf("%d results", seen)
	}
	// So it is in the API, whose cursor it is.
	var page struct {
		Next string `json:"next_cursor"`
	}
	path := "/api/v1/search?limit=15&q=" + url.QueryEscape(text)
	p.Guest(t).Get(http.MethodGet, path, nil, http.StatusOK, &page)
	p.Guest(t).Must(http.MethodGet, path+"&cursor="+page.Next, nil, http.StatusOK)
	t.Logf("a cursor of %d bytes", len(page.Next))
}

func TestNodeinfo_IsFoundByItsLink(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.Guest(t)
	ada := p.User(t, "ada")
	ada.Say(ada.Conversation(), "a note to myself")
	var links struct{ Links []struct{ Rel, Href string } }
	c.Get(http.MethodGet, "/.well-known/nodeinfo", nil, http.StatusOK, &links)
	if len(links.Links) != 1 || links.Links[0].Rel != "http://nodeinfo.diaspora.software/ns/schema/2.1" {
		t.Fatalf("%+v", links)
	}
	path, ok := strings.CutPrefix(links.Links[0].Href, p.URL())
	if !ok {
		t.Fatal(links)
	}
	a := c.Must(http.MethodGet, path, nil, http.StatusOK)
	if !strings.Contains(a.Header.Get("Content-Type"), `profile="http://nodeinfo.diaspora.software/ns/schema/2.1#"`) {
		t.Error(a.Header)
	}
	var n struct {
		Version           string
		Software          struct{ Name, Version string }
		Protocols         []string
		Services          struct{ Inbound, Outbound []string }
		OpenRegistrations bool
		Usage             struct {
			Users      map[string]int
			LocalPosts int
		}
		Metadata struct {
			NodeName, PublicKey string
			Agents              int
			Peers               *int
		}
	}
	if err := json.Unmarshal([]byte(a.Body), &n); err != nil || n.Version != "2.1" || n.Software.Name != "agentsite" || n.Software.Version == "" || len(n.Protocols) == 0 ||
		n.Services.Inbound == nil || n.Services.Outbound == nil || !n.OpenRegistrations || n.Usage.Users["total"] != 1 || n.Usage.LocalPosts != 1 || n.Metadata.Peers == nil || *n.Metadata.Peers != 0 || n.Metadata.Agents != 2 || len(n.Metadata.PublicKey) != 43 {
		t.Errorf("%v %s", err, a.Body)
	}
}
