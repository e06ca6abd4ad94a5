package index

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/hub"

	"pgregory.net/rapid"
)

// The words of these tests have three letters and different beginnings: no
// stemming, no near spelling and no prefix makes one stand for another, so
// that plain code can say what must be found.
var (
	plainWords     = strings.Fields("abu bec cid doz elm fyg gup hov")
	plainLanguages = strings.Fields("de de-ch de-at fr zh-hant-tw")
	plainModes     = strings.Fields("text/plain image/png application/json")
	plainTags      = func() []string {
		var tags []string
		for i := range 45 { // more than a page of the facet shows
			tags = append(tags, fmt.Sprintf("t%02d", i))
		}
		return tags
	}()
)

func drawAgent(t *rapid.T, id int) hub.Agent {
	some := func(label string, from []string, most int) []string {
		return rapid.SliceOfN(rapid.SampledFrom(from), 0, most).Draw(t, label)
	}
	a := hub.Agent{
		ID:          fmt.Sprintf("id%03d", id),
		Name:        rapid.SampledFrom([]string{"ann", "bob", "cat"}).Draw(t, "name"),
		Portal:      rapid.SampledFrom([]string{"", "p.example", "q.example"}).Draw(t, "portal"),
		Title:       strings.Join(some("title", plainWords, 3), " "),
		Description: strings.Join(some("description", plainWords, 5), " "),
		Kind:        rapid.SampledFrom([]hub.Kind{hub.A2A, hub.OpenAI}).Draw(t, "kind"),
		Visibility:  rapid.SampledFrom([]hub.Visibility{hub.Public, hub.Public, hub.Public, hub.Private}).Draw(t, "visibility"),
		Liveness:    hub.Liveness{State: rapid.SampledFrom([]hub.Live{hub.Alive, hub.Unreachable, ""}).Draw(t, "live")},
		Status:      hub.Status{State: rapid.SampledFrom([]string{hub.Active, hub.Active, hub.Deprecated, hub.StatusDraft}).Draw(t, "status")},
		Languages:   some("languages", plainLanguages, 3),
		InputModes:  some("modes", plainModes, 2),
		Publisher:   rapid.SampledFrom([]string{"", "a.example", "b.example"}).Draw(t, "publisher"),
		Proof:       hub.Proof{State: rapid.SampledFrom([]string{"", hub.Proved, hub.Unproven}).Draw(t, "proof")},
		CreatedAt:   time.Unix(rapid.Int64Range(1, 6).Draw(t, "created"), 0).UTC(),
		UpdatedAt:   time.Unix(rapid.Int64Range(1, 1000).Draw(t, "updated"), 7).UTC(),
	}
	if a.Portal != "" {
		a.Verified = rapid.Bool().Draw(t, "verified")
		also := [][]string{nil, {"r.example"}, {"r.example", "s.example"}}
		if a.Portal == "q.example" {
			also = append(also, []string{"p.example"}) // the first of others
		}
		a.Also = rapid.SampledFrom(also).Draw(t, "also")
		a.Record = rapid.SampledFrom([]string{"", "short", "leRWh7iGgHka1TIkabuBF5cSalszfuvP2-cCZ6I_f5c"}).Draw(t, "record")
	}
	for range rapid.IntRange(0, 2).Draw(t, "skills") {
		a.Skills = append(a.Skills, hub.Skill{
			Name: rapid.SampledFrom(plainWords).Draw(t, "skill"),
			Tags: some("tags", plainTags, 6),
		})
	}
	return a
}

func drawQuery(t *rapid.T) hub.Query {
	some := func(label string, from ...string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(from), 0, 2).Draw(t, label)
	}
	var text []string
	text = append(text, some("words", plainWords...)...)
	for _, w := range some("without", plainWords...) {
		text = append(text, "-"+w)
	}
	if p := some("phrase", plainWords...); len(p) == 2 {
		text = append(text, `"`+strings.Join(p, " ")+`"`)
	}
	after := func(label string, most int64) time.Time {
		if !rapid.Bool().Draw(t, label+" given") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(0, most).Draw(t, label), 7).UTC()
	}
	return hub.Query{
		CreatedAfter: after("created", 6), UpdatedAfter: after("updated", 600), CountMatches: rapid.Bool().Draw(t, "count matches"),
		Text: strings.Join(text, " "), Kinds: some("kinds", "a2a", "openai", "none"), Tags: some("tags", plainTags[:8]...),
		Skills: some("skills", plainWords...), Portals: some("portals", "", "local", "p.example", "r.example"), Live: some("live", "alive", "unknown"),
		Languages: some("languages", "de", "de-ch", "zh", "DE"), Modalities: some("modalities", "text", "image", "data"),
		Signed: some("signed", "true", "false"), Proofs: some("proofs", hub.Proved, hub.Unproven),
		Publishers: some("publishers", "a.example", "b.example"), Sort: rapid.SampledFrom(append(hub.Sorts, "")).Draw(t, "sort"),
		Limit: rapid.IntRange(1, 7).Draw(t, "limit"),
	}
}

// matches says by plain code whether the text of q finds a.
func matches(a *hub.Agent, text string) bool {
	var values []string
	for _, list := range textsOf(a) {
		values = append(values, list...)
	}
	has := func(phrase string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return strings.Contains(" "+v+" ", " "+phrase+" ") })
	}
	rest, phrase, _ := strings.Cut(text, `"`)
	phrase = strings.Trim(phrase, `"`)
	wanted, found := phrase != "", phrase != ""
	for w := range strings.FieldsSeq(rest) {
		if bad, ok := strings.CutPrefix(w, "-"); ok {
			if has(bad) {
				return false
			}
			continue
		}
		wanted = true
		found = found || has(w)
	}
	return (!wanted || found) && (phrase == "" || has(phrase))
}

// bruteValues says by plain code what an agent counts for in each facet.
func bruteValues(a *hub.Agent) map[string][]string {
	v := map[string][]string{
		"kind": {string(a.Kind)}, "portal": append([]string{cmp.Or(a.Portal, "local")}, a.Also...), "live": {cmp.Or(string(a.Liveness.State), "unknown")},
		"modality": a.Modalities(), "signed": {fmt.Sprint(a.Portal == "" || a.Verified)}, "proof": {cmp.Or(a.Proof.State, "unproven")}, "tag": a.Tags(),
	}
	for _, s := range a.Skills {
		v["skill"] = append(v["skill"], s.Name)
	}
	for _, l := range a.Languages {
		parts := strings.Split(l, "-")
		for i := range parts {
			v["language"] = append(v["language"], strings.Join(parts[:i+1], "-"))
		}
	}
	if a.Publisher != "" {
		v["publisher"] = []string{a.Publisher}
	}
	for name, list := range v {
		v[name] = slices.Compact(slices.Sorted(slices.Values(list)))
	}
	return v
}

func bruteAsked(q hub.Query) map[string][]string {
	asked := map[string][]string{
		"kind": q.Kinds, "tag": q.Tags, "skill": q.Skills, "live": q.Live, "modality": q.Modalities, "signed": q.Signed,
		"proof": q.Proofs, "publisher": q.Publishers,
	}
	for _, p := range q.Portals {
		asked["portal"] = append(asked["portal"], cmp.Or(p, "local"))
	}
	for _, l := range q.Languages {
		asked["language"] = append(asked["language"], strings.ToLower(l))
	}
	return asked
}

// passes reports whether a passes all filters but that of one facet.
func passes(a *hub.Agent, q hub.Query, but string) bool {
	if !q.CreatedAfter.IsZero() && !a.CreatedAt.After(q.CreatedAfter) || !q.UpdatedAfter.IsZero() && !a.UpdatedAt.After(q.UpdatedAfter) {
		return false
	}
	values := bruteValues(a)
	for f, asked := range bruteAsked(q) {
		if f == but || len(asked) == 0 {
			continue
		}
		if !slices.ContainsFunc(asked, func(v string) bool { return slices.Contains(values[f], v) }) {
			return false
		}
	}
	return true
}

func bruteFacets(agents map[string]hub.Agent, q hub.Query) map[string][]hub.FacetCount {
	facets := make(map[string][]hub.FacetCount)
	for _, name := range facetNames {
		counts, but := make(map[string]int), name
		if q.CountMatches {
			but = ""
		}
		for _, a := range agents {
			if matches(&a, q.Text) && passes(&a, q, but) {
				for _, v := range bruteValues(&a)[name] {
					counts[v]++
				}
			}
		}
		list := []hub.FacetCount{}
		for v, n := range counts {
			list = append(list, hub.FacetCount{Value: v, Count: n})
		}
		slices.SortFunc(list, func(a, b hub.FacetCount) int {
			return cmp.Or(b.Count-a.Count, strings.Compare(a.Value, b.Value))
		})
		if name == "tag" || name == "skill" || name == "publisher" || name == "portal" {
			list = list[:min(len(list), hub.MaxFacetValues)]
		}
		facets[name] = list
	}
	return facets
}

// TestSearch_AgreesWithBruteForce puts, replaces and removes at random and
// then compares totals, facets and the walk over all pages.
func TestSearch_AgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := New()
		agents := make(map[string]hub.Agent)
		for range rapid.IntRange(0, 150).Draw(t, "changes") {
			a := drawAgent(t, rapid.IntRange(0, 90).Draw(t, "id"))
			delete(agents, a.ID)
			if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
				x.Remove(a.ID)
				continue
			}
			x.Put(a)
			if a.Visibility == hub.Public && a.Status.State != hub.StatusDraft {
				agents[a.ID] = a
			}
		}
		if x.Len() != len(agents) {
			t.Fatalf("%d agents, want %d", x.Len(), len(agents))
		}
		for range 5 {
			q := drawQuery(t)
			want := make(map[string]bool)
			for id, a := range agents {
				if matches(&a, q.Text) && passes(&a, q, "") {
					want[id] = true
				}
			}
			page, err := x.Search(q)
			if err != nil {
				t.Fatal(err)
			}
			if page.Total != len(want) {
				t.Fatalf("%+v: total %d, want %d", q, page.Total, len(want))
			}
			facets := bruteFacets(agents, q)
			for _, name := range facetNames {
				if got, want := fmt.Sprint(page.Facets[name]), fmt.Sprint(facets[name]); got != want {
					t.Fatalf("%+v: facet %s\n got %s\nwant %s", q, name, got, want)
				}
			}
			bare(t, x, q, page)
			walk(t, x, q, want, agents)
		}
	})
}

// bare checks that a bare page has what the whole one has, and nothing beside.
func bare(t *rapid.T, x *Index, q hub.Query, whole hub.Page) {
	q.Bare = true
	page, err := x.Search(q)
	if err != nil || page.Total != whole.Total || page.NextCursor != whole.NextCursor || len(page.Facets)+len(page.Suggestions) > 0 || len(page.Results) != len(whole.Results) {
		t.Fatalf("%+v: bare %+v, %v\nwhole %+v", q, page, err, whole)
	}
	for i, r := range page.Results {
		if w := whole.Results[i]; r.Agent.ID != w.Agent.ID || r.Score != w.Score {
			t.Fatalf("%+v: bare has %s with %v at %d, the whole page %s with %v", q, r.Agent.ID, r.Score, i, w.Agent.ID, w.Score)
		}
	}
}

// walk follows the cursors and checks that each match comes once, in order,
// and as it was put.
func walk(t *rapid.T, x *Index, q hub.Query, want map[string]bool, agents map[string]hub.Agent) {
	seen := make(map[string]bool)
	var all []hub.Agent
	low := make(map[string]float64) // of the pages before, by portal
	for n := 0; ; n++ {
		page, err := x.Search(q)
		if err != nil {
			t.Fatal(err)
		}
		next := make(map[string]float64)
		for _, r := range page.Results {
			if seen[r.Agent.ID] || !want[r.Agent.ID] {
				t.Fatalf("%+v: %s again or unasked", q, r.Agent.ID)
			}
			if !reflect.DeepEqual(r.Agent, agents[r.Agent.ID]) {
				t.Fatalf("got  %+v\nwant %+v", r.Agent, agents[r.Agent.ID])
			}
			seen[r.Agent.ID] = true
			all = append(all, r.Agent)
			portal := r.Agent.Portal
			if was, ok := low[portal]; (q.Sort == "" || q.Sort == hub.SortRelevance) && ok && r.Score > was {
				t.Fatalf("%+v: score rises from page to page", q)
			}
			if was, ok := next[portal]; !ok || r.Score < was {
				next[portal] = r.Score
			}
		}
		maps.Copy(low, next)
		if page.NextCursor == "" {
			break
		}
		q.Cursor = page.NextCursor
	}
	if len(seen) != len(want) {
		t.Fatalf("%+v: saw %d of %d", q, len(seen), len(want))
	}
	byKey := func(a, b hub.Agent) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Portal, b.Portal), strings.Compare(a.ID, b.ID))
	}
	order, ordered := map[string]func(a, b hub.Agent) int{
		hub.SortName:    byKey,
		hub.SortNewest:  func(a, b hub.Agent) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), byKey(a, b)) },
		hub.SortUpdated: func(a, b hub.Agent) int { return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), byKey(a, b)) },
	}[q.Sort]
	if ordered && !slices.IsSortedFunc(all, order) {
		t.Fatalf("%+v: not in order", q)
	}
}
