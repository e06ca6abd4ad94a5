package index

import (
	"testing"

	"agentsite/internal/hub"
)

// TestBeside_ScoresAsIfHeld compares what agents score beside an index with
// what they do inside of it.
func TestBeside_ScoresAsIfHeld(t *testing.T) {
	c := newCorpus()
	x, all := New(), New()
	var few []hub.Agent
	for i := range 300 {
		a := c.agent(i)
		all.Put(a)
		if i%100 == 0 {
			few = append(few, a)
		} else {
			x.Put(a)
		}
	}
	hits := 0
	for _, w := range c.words[:50] {
		want := make(map[string]float64)
		for _, r := range mustSearch(t, all, hub.Query{Text: `"` + w + `"`, Limit: 100}).Results {
			want[r.Agent.ID] = r.Score
		}
		page, err := x.Beside(few, hub.Query{Text: `"` + w + `"`, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Results {
			inside, ok := want[r.Agent.ID]
			if !ok {
				continue // not among its first hundred
			}
			hits++
			if d := r.Score - inside; d > 0.02*r.Score || -d > 0.02*r.Score {
				t.Errorf("%q: %s scores %g beside and %g inside", w, r.Agent.ID, r.Score, inside)
			}
		}
	}
	if hits == 0 {
		t.Error("nothing was found")
	}
	if x.Len() != 297 {
		t.Error("they were put in:", x.Len())
	}
}
