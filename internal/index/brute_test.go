package index

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/hub"

	"pgregory.net/rapid"
)

// The words of these tests have three letters and different beginnings: no
// stemming, no near spelling and no prefix makes one stand for another, so
// that plain code can say what must be found.
var (
	plainWords = strings.Fields("abu bec cid doz elm fyg gup hov")
	plainTags  = func() []string {
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
	return hub.Query{
		Text: strings.Join(text, " "), Kinds: some("kinds", "a2a", "openai", "none"), Tags: some("tags", plainTags[:8]...),
		Skills: some("skills", plainWords...), Portals: some("portals", "", "local", "p.example"), Live: some("live", "alive", "unknown"),
		Limit: rapid.IntRange(1, 7).Draw(t, "limit"),
	}
}

// matches says by plain code whether the text of q finds a.
func matches(a *hub.Agent, text string) bool {
	var values []string
	for _, list := range texts(a) {
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

// passes reports whether a passes all filters but that of one facet.
func passes(a *hub.Agent, q hub.Query, but int) bool {
	values := facetValues(a)
	for f, asked := range filters(q) {
		if f == but || len(asked) == 0 {
			continue
		}
		if !slices.ContainsFunc(asked, func(v string) bool { return slices.Contains(values[f], facetValue(f, v)) }) {
			return false
		}
	}
	return true
}

func bruteFacets(agents map[string]hub.Agent, q hub.Query) map[string][]hub.FacetCount {
	facets := make(map[string][]hub.FacetCount)
	for f, name := range facetNames {
		counts := make(map[string]int)
		for _, a := range agents {
			if matches(&a, q.Text) && passes(&a, q, f) {
				for _, v := range facetValues(&a)[f] {
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
		if name == "tag" || name == "skill" {
			list = list[:min(len(list), topValues)]
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
			if listable(&a) {
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
				if matches(&a, q.Text) && passes(&a, q, -1) {
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
			walk(t, x, q, want)
		}
	})
}

// walk follows the cursors and checks that each match comes once, in order.
func walk(t *rapid.T, x *Index, q hub.Query, want map[string]bool) {
	seen := make(map[string]bool)
	low := 0.0
	for n := 0; ; n++ {
		page, err := x.Search(q)
		if err != nil {
			t.Fatal(err)
		}
		next := 0.0
		for i, r := range page.Results {
			if seen[r.Agent.ID] || !want[r.Agent.ID] {
				t.Fatalf("%+v: %s again or unasked", q, r.Agent.ID)
			}
			seen[r.Agent.ID] = true
			if n > 0 && r.Score > low {
				t.Fatalf("%+v: score rises from page to page", q)
			}
			if i == 0 || r.Score < next {
				next = r.Score
			}
		}
		low = next
		if page.NextCursor == "" {
			break
		}
		q.Cursor = page.NextCursor
	}
	if len(seen) != len(want) {
		t.Fatalf("%+v: saw %d of %d", q, len(seen), len(want))
	}
}
