package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"agentsite/internal/index/bm25"
)

// TestFacet_CountsTheSameBothWays compares intersecting and counting up with
// each other and with plain code, after values grew to bits and shrank again.
func TestFacet_CountsTheSameBothWays(t *testing.T) {
	x, c := New(), newCorpus()
	for i := range 4000 {
		x.Put(c.agent(i))
	}
	for i := range 2500 {
		if i%5 > 0 {
			x.Remove(c.agent(i).ID)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for _, share := range []float64{0, 0.001, 0.02, 0.3, 1} {
		var match bm25.Bits
		for id := range x.words.All().Each {
			if r.Float64() < share {
				match.Add(id)
			}
		}
		for f := range x.facets {
			plain := make(map[string]int)
			match.Each(func(id int) bool {
				for _, v := range facetValues(x.entries[id].agent)[f] {
					plain[v]++
				}
				return true
			})
			want := ranking{}
			for v, n := range plain {
				want.offer(v, n)
			}
			list := want.sorted()
			if most := x.facets[f].most; most > 0 {
				list = list[:min(len(list), most)]
			}
			s := new(scratch)
			for name, got := range map[string]any{
				"count":   x.facets[f].count(match, match.Count(), x.entries, s),
				"countUp": x.facets[f].countUp(match, x.entries, s),
				"again":   x.facets[f].countUp(match, x.entries, s),
				// A number of matches so great that it never gives up.
				"intersect": x.facets[f].count(match, 1<<30, x.entries, s),
			} {
				if fmt.Sprint(got) != fmt.Sprint(list) {
					t.Errorf("%v of %s by %s:\n got %v\nwant %v", share, facetNames[f], name, got, list)
				}
			}
		}
	}
}

func TestFacet_KeepsItsValuesInOrder(t *testing.T) {
	f := newFacet(tagFacet)
	r := rand.New(rand.NewPCG(7, 8))
	has := make(map[[2]uint32]bool)
	for range 20000 {
		doc := uint32(r.IntN(300))
		text := fmt.Sprint(r.IntN(1 + r.IntN(40)))
		v := f.intern(text)
		pair := [2]uint32{v, doc}
		if has[pair] {
			f.remove(v, doc, 300)
		} else {
			f.add(v, doc, 300)
		}
		has[pair] = !has[pair]
	}
	if !slices.IsSortedFunc(f.order, func(a, b uint32) int { return f.values[b].docs.n - f.values[a].docs.n }) {
		t.Error("not in order of count")
	}
	pairs := 0
	for v, val := range f.values {
		if f.order[val.pos] != uint32(v) {
			t.Fatalf("value %d is not where it says", v)
		}
		pairs += val.docs.n
	}
	if pairs != f.pairs {
		t.Errorf("%d pairs, counted %d", pairs, f.pairs)
	}
}
