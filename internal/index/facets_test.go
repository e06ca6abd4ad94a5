package index

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
	"agentsite/internal/testing/racetest"
)

// TestCount_AgreesBothWays compares counting by value and by walk with each
// other and with plain code, after sets of documents grew to bits and shrank.
func TestCount_AgreesBothWays(t *testing.T) {
	racetest.Skip(t)
	c, x := newCorpus(), New()
	for i := range 4000 {
		x.Put(c.agent(i))
	}
	for i := range 2500 {
		if i%5 > 0 {
			x.Remove(c.agent(i).ID)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	s := new(scratch)
	for _, share := range []float64{0, 0.001, 0.02, 0.3, 1} {
		var match bm25.Bits
		for doc := range x.words.All().Each {
			if r.Float64() < share {
				match.Add(doc)
			}
		}
		var want facetCounts
		var all [facetCount]bool
		for f := range facetCount {
			want[f], all[f] = countPlainly(x, f, match), true
		}
		n := match.Count()
		for name, count := range map[string]func(out *facetCounts){
			"count": func(out *facetCounts) { x.countFacets(match, n, all, s, out) },
			"value": func(out *facetCounts) {
				for f := range facetCount {
					if !x.countByValue(f, match, n, out) {
						var asked [facetCount]bool
						asked[f] = true
						x.countByWalk(match, asked, s, out)
					}
				}
			},
			"walk":  func(out *facetCounts) { x.countByWalk(match, all, s, out) },
			"again": func(out *facetCounts) { x.countByWalk(match, all, s, out) },
		} {
			var got facetCounts
			count(&got)
			for f := range facetCount {
				if fmt.Sprint(got[f]) != fmt.Sprint(want[f]) {
					t.Errorf("%v of %s by %s:\n got %v\nwant %v", share, facetNames[f], name, got[f], want[f])
				}
			}
		}
	}
}

func countPlainly(x *Index, f int, match bm25.Bits) []hub.FacetCount {
	counts := make(map[string]int)
	for doc := range match.Each {
		a := x.agentOf(uint32(doc))
		for _, v := range facetValues(nil, &a) {
			if v.facet == f {
				counts[v.text]++
			}
		}
	}
	list := []hub.FacetCount{}
	for text, n := range counts {
		list = append(list, hub.FacetCount{Value: text, Count: n})
	}
	slices.SortFunc(list, func(a, b hub.FacetCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	})
	if limit := facetLimits[f]; limit > 0 {
		list = list[:min(len(list), limit)]
	}
	return list
}

func TestFacet_KeepsItsValuesInOrder(t *testing.T) {
	f := newFacet()
	r := rand.New(rand.NewPCG(7, 8))
	has, want := make(map[string]bool), 0
	for range 20000 {
		doc := uint32(r.IntN(300))
		text := fmt.Sprint(r.IntN(1 + r.IntN(40)))
		pair := fmt.Sprint(text, " ", doc)
		number := f.internValue(text)
		if has[pair] {
			f.removeDoc(number, doc, 300)
			want--
		} else {
			f.addDoc(number, doc, 300)
			want++
		}
		has[pair] = !has[pair]
	}
	last, pairs := 300, 0
	for pos, number := range f.order {
		v := &f.values[number]
		if v.pos != uint32(pos) || v.docs.len() > last || v.docs.len() == 0 {
			t.Fatalf("value %d of %d documents is at %d, noted %d", number, v.docs.len(), pos, v.pos)
		}
		last = v.docs.len()
		pairs += last
	}
	if pairs != want {
		t.Errorf("%d pairs, want %d", pairs, want)
	}
}

// TestDocSet_AgreesWithAMap adds and removes at random, so that the set changes
// to bits and back.
func TestDocSet_AgreesWithAMap(t *testing.T) {
	const docs = 3000
	r := rand.New(rand.NewPCG(11, 12))
	var s docSet
	var many, few bool
	want := make(map[uint32]bool)
	for step := range 40_000 {
		doc := uint32(r.IntN(docs)) // grow for the first half, then shrink
		if want[doc] && (step > 20_000 || r.IntN(3) == 0) {
			s.remove(doc, docs)
			delete(want, doc)
		} else if !want[doc] && step < 20_000 {
			s.add(doc, docs)
			want[doc] = true
		}
		many, few = many || s.many != nil, few || many && s.many == nil
		if step%500 > 0 {
			continue
		}
		var got []uint32
		for doc := range s.eachDoc {
			got = append(got, doc)
		}
		bits, match, both := make(bm25.Bits, 0), make(bm25.Bits, docs/64/2), 0
		s.addTo(&bits)
		for doc := range uint32(docs / 2 / 64 * 64) {
			if r.IntN(3) == 0 {
				match.Add(int(doc))
				if want[doc] {
					both++
				}
			}
		}
		if !slices.Equal(got, slices.Sorted(maps.Keys(want))) || s.len() != len(want) || bits.Count() != len(want) || s.countIn(match) != both {
			t.Fatalf("step %d: %d documents, %d as bits, %d of the matches; want %d and %d", step, s.len(), bits.Count(), s.countIn(match), len(want), both)
		}
	}
	if !many || !few {
		t.Error("the set was never kept as bits, or never as a list again")
	}
}

// TestValues_AreThoseOfTheAgent puts, changes and removes agents.
func TestValues_AreThoseOfTheAgent(t *testing.T) {
	x, r := New(), rand.New(rand.NewPCG(9, 10))
	held := make(map[string]hub.Agent)
	for step := range 3000 {
		a := hub.Agent{ID: fmt.Sprint("id", r.IntN(150)), Name: "n", Visibility: hub.Public, Status: hub.Status{State: hub.Active}}
		if r.IntN(3) == 0 {
			x.Remove(a.ID)
			delete(held, a.ID)
		} else {
			for range r.IntN(6) {
				a.Skills = append(a.Skills, hub.Skill{Name: fmt.Sprint("s", r.IntN(1+r.IntN(100))), Tags: []string{fmt.Sprint("t", r.IntN(1+r.IntN(60)))}})
			}
			x.Put(a)
			held[a.ID] = a
		}
		if step%10 > 0 {
			continue
		}
		pairs := 0
		for id, a := range held {
			doc, _ := x.byID.Find(id)
			var got []facetValue
			for _, v := range x.values[doc] {
				got = append(got, facetValue{v.facet(), x.valueOf(v).text})
				if !slices.Contains(slices.Collect(x.valueOf(v).docs.eachDoc), doc) {
					t.Fatalf("step %d: %q does not list %s", step, x.valueOf(v).text, id)
				}
			}
			if want := facetValues(nil, &a); !slices.Equal(got, want) {
				t.Fatalf("step %d: %s has %v, want %v", step, id, got, want)
			}
			pairs += len(got)
		}
		for _, facet := range x.facets {
			for _, number := range facet.order {
				pairs -= facet.values[number].docs.len()
			}
		}
		if pairs != 0 {
			t.Fatalf("step %d: values list %d documents too few", step, pairs)
		}
	}
}
