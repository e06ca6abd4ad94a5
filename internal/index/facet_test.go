package index

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
	"agentsite/internal/testing/racetest"
)

// TestFacet_CountsTheSameBothWays compares intersecting and counting up with
// each other and with plain code, after values grew to bits and shrank again.
func TestFacet_CountsTheSameBothWays(t *testing.T) { countBothWays(t, New()) }

// TestFacet_CountsTheSameWithoutSlots does so where frequent values find none.
func TestFacet_CountsTheSameWithoutSlots(t *testing.T) {
	racetest.Skip(t)
	x := New()
	x.facets.tags.list, x.facets.others.list = make([]slot, otherSlots-3), make([]slot, otherSlots)
	countBothWays(t, x)
	if x.facets.tags.refused == 0 || x.facets.others.refused == 0 {
		t.Error("every value found a slot")
	}
}

func countBothWays(t *testing.T, x *Index) {
	c := newCorpus()
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
		for f := range facetCount {
			plain := make(map[string]int)
			match.Each(func(id int) bool {
				a := x.agent(uint32(id))
				for _, v := range facetTexts(nil, &a) {
					if int(v[0]) == f {
						plain[v]++
					}
				}
				return true
			})
			list := []hub.FacetCount{}
			for v, n := range plain {
				list = append(list, hub.FacetCount{Value: v[1:], Count: n})
			}
			slices.SortFunc(list, func(a, b hub.FacetCount) int {
				return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
			})
			if most := facetMost[f]; most > 0 {
				list = list[:min(len(list), most)]
			}
			s := new(scratch)
			var asked [facetCount]bool
			asked[f] = true
			n := match.Count()
			for name, count := range map[string]func(out *[facetCount][]hub.FacetCount){
				"count":     func(out *[facetCount][]hub.FacetCount) { x.count(match, n, &asked, s, out) },
				"countUp":   func(out *[facetCount][]hub.FacetCount) { x.countUp(match, &asked, s, out) },
				"again":     func(out *[facetCount][]hub.FacetCount) { x.countUp(match, &asked, s, out) },
				"countLess": func(out *[facetCount][]hub.FacetCount) { x.countLess(match, x.Len()-n, &asked, s, out) },
				"intersect": func(out *[facetCount][]hub.FacetCount) { x.intersect(f, match, n, 1<<40, out) },
			} {
				var out [facetCount][]hub.FacetCount
				if count(&out); fmt.Sprint(out[f]) != fmt.Sprint(list) {
					t.Errorf("%v of %s by %s:\n got %v\nwant %v", share, facetNames[f], name, out[f], list)
				}
			}
		}
	}
}

func TestFacets_KeepTheirValuesInOrder(t *testing.T) {
	f := newFacets()
	r := rand.New(rand.NewPCG(7, 8))
	has := make(map[string]bool)
	for range 20000 {
		doc := uint32(r.IntN(300))
		text := textOf(tagFacet+r.IntN(2), fmt.Sprint(r.IntN(1+r.IntN(40))))
		pair := fmt.Sprint(text, " ", doc)
		v := f.intern(text)
		if has[pair] {
			f.remove(v, doc, 300)
		} else {
			f.add(v, doc, 300)
		}
		has[pair] = !has[pair]
	}
	for number := range f.of {
		order := f.of[number].order
		if !slices.IsSortedFunc(order, func(a, b uint32) int { return int(f.values[b].docs.n) - int(f.values[a].docs.n) }) {
			t.Error("not in order of count")
		}
		for pos, v := range order {
			if val := &f.values[v]; val.facet() != number || val.pos != uint32(pos) {
				t.Fatalf("value %d is not where it says", v)
			}
		}
	}
	pairs, want := 0, 0
	for _, val := range f.values {
		pairs += int(val.docs.n)
	}
	for _, in := range has {
		if in {
			want++
		}
	}
	if pairs != want {
		t.Errorf("%d pairs, want %d", pairs, want)
	}
}
