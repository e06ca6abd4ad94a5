package index

import (
	"strings"
	"testing"

	"agentsite/internal/hub"

	"pgregory.net/rapid"
)

// TestSearch_FacetCountsAreTotals compares each count of a facet with the total of the search that it offers.
func TestSearch_FacetCountsAreTotals(tt *testing.T) {
	rapid.Check(tt, func(t *rapid.T) {
		pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
		draw := func() hub.Agent {
			name, portal := pick("name", "calc", "guide", "tool"), pick("portal", "", "a", "b", "c")
			a := hub.Agent{ID: name, Name: name, Portal: portal, Title: strings.ToUpper(name), Description: pick("words", "adds numbers", "adds words"), Kind: hub.A2A, Visibility: hub.Public,
				Skills: []hub.Skill{{ID: "sum", Name: "Sum", Tags: []string{"math"}}}, Status: hub.Status{State: hub.Active}, Liveness: hub.Liveness{State: hub.Alive}}
			if portal != "" {
				a.ID = "p1" + portal + "/" + name
				a.Liveness.State, a.Verified = hub.Live(pick("live", "alive", "unknown")), pick("verified", "yes", "no") == "yes"
			} else if pick("kind", "builtin", "a2a") == "builtin" {
				a.Kind = hub.Builtin
			}
			return a
		}
		x, held := New(), make(map[string]hub.Agent)
		if rapid.Bool().Draw(t, "loaded") {
			list := rapid.SliceOfN(rapid.Custom(func(*rapid.T) hub.Agent { return draw() }), 0, 8).Draw(t, "list")
			n := 0
			x.Load(func() (hub.Agent, bool) {
				for n < len(list) {
					n++
					if _, twice := held[list[n-1].ID]; !twice {
						held[list[n-1].ID] = list[n-1]
						return list[n-1], true
					}
				}
				return hub.Agent{}, false
			})
		}
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			a := draw()
			if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				x.Remove(a.ID)
				delete(held, a.ID)
				continue
			}
			x.Put(a)
			held[a.ID] = a
		}
		q := hub.Query{Text: pick("text", "", "adds", "words"), Limit: maxLimit}
		if rapid.Bool().Draw(t, "narrow") {
			*fieldOf(&q, pick("filter", "live", "signed", "kind", "portal")) = []string{pick("value", "alive", "unknown", "true", "false", "builtin", "a", "b")}
		}
		page := mustSearch(tt, x, q)
		if page.Total != len(page.Results) || q.Text == "" && len(held) < page.Total {
			t.Fatalf("%d rows of %d, of %d agents", len(page.Results), page.Total, len(held))
		}
		for _, name := range []string{"live", "signed", "kind", "portal", "tag"} {
			for _, c := range page.Facets[name] {
				asked := q
				*fieldOf(&asked, name) = []string{c.Value}
				if got := mustSearch(tt, x, asked).Total; got != c.Count {
					t.Errorf("%s %q counts %d, and finds %d", name, c.Value, c.Count, got)
				}
			}
		}
	})
}

func fieldOf(q *hub.Query, facet string) *[]string {
	return map[string]*[]string{"live": &q.Live, "signed": &q.Signed, "kind": &q.Kinds, "portal": &q.Portals, "tag": &q.Tags}[facet]
}
