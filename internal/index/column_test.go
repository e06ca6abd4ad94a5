package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// TestColumns_ListEachValueWhereItBelongs puts, changes and removes agents
// whose tags and skills come to have more documents and fewer again.
func TestColumns_ListEachValueWhereItBelongs(t *testing.T) {
	x, r := New(), rand.New(rand.NewPCG(9, 10))
	here := make(map[int]hub.Agent)
	for step := range 3000 {
		i := r.IntN(150)
		if r.IntN(3) == 0 {
			x.Remove(fmt.Sprint("id", i))
			delete(here, i)
		} else {
			a := hub.Agent{ID: fmt.Sprint("id", i), Name: fmt.Sprint("n", i), Visibility: hub.Public, Status: hub.Status{State: hub.Active}}
			for range r.IntN(6) {
				a.Skills = append(a.Skills, hub.Skill{Name: fmt.Sprint("s", r.IntN(1+r.IntN(100))), Tags: []string{fmt.Sprint("t", r.IntN(1+r.IntN(60)))}})
			}
			x.Put(a)
			here[i] = a
		}
		if step%10 > 0 {
			continue
		}
		seen := make(map[part]int)
		for i, a := range here {
			doc, _ := x.byID.Find(fmt.Sprint("id", i))
			c, at := &x.columns[doc/columnSize], doc%columnSize
			var want, got []facetText
			for _, v := range facetTexts(nil, &a) {
				if int(v[0]) < inventedFacets {
					want = append(want, v)
				}
			}
			var all []facetText
			for _, v := range x.valuesOf(nil, doc) {
				all = append(all, x.facets.values[v].text)
			}
			if whole := facetTexts(nil, &a); !slices.Equal(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(whole))) {
				t.Fatalf("step %d, agent %d has %q, want %q", step, i, all, whole)
			}
			for _, v := range x.invented(nil, doc) {
				got = append(got, x.facets.values[v].text)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("step %d, agent %d has %q, want %q", step, i, got, want)
			}
			for p := range parts {
				if has := c.has[p]>>at&1 == 1; has != (len(c.part(at, p)) > 0) {
					t.Fatalf("step %d, agent %d: the bit of part %d is %v", step, i, p, has)
				}
				if p == spare {
					if n := len(c.part(at, p)); n > 0 && len(slices.Collect(c.frequent(at))) != slotsEach+n {
						t.Fatalf("step %d, agent %d: frequent values are spare before their places are taken", step, i)
					} else if n > 0 {
						seen[p]++
					}
					continue
				}
				for _, v := range c.part(at, p) {
					val := &x.facets.values[v]
					if val.part() != p || val.docs.n >= frequentFrom[val.facet()] || p == single && val.docs.n > 1 {
						t.Fatalf("step %d: %q of %d documents is in part %d", step, val.text, val.docs.n, p)
					}
					seen[p]++
				}
			}
			for n := range c.frequent(at) {
				slot := x.facets.slot(n)
				if val := &x.facets.values[slot.value]; val.tier != frequent || val.slot != n || slot.lead != leadOf(val.text) || val.docs.n < frequentFrom[val.facet()]/2 {
					t.Fatalf("step %d: %q of %d documents is in slot %d", step, val.text, val.docs.n, n)
				}
				seen[parts]++
			}
		}
		if step > 1000 && len(seen) <= int(parts) {
			t.Fatalf("step %d: only some parts are in use: %v", step, seen)
		}
	}
}

func TestSet_GivesUpOnlyBelowTheLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		const docs = 20_000
		var s set
		b := make(bm25.Bits, docs/64+1)
		for id := range uint32(docs) {
			if r.IntN(40) == 0 {
				s.add(id, 1<<20)
			}
			if r.IntN(3) == 0 {
				b.Add(int(id))
			}
		}
		want := s.countIn(b, 0)
		plain := 0
		s.each(func(id uint32) {
			if b.Has(int(id)) {
				plain++
			}
		})
		if want != plain {
			t.Fatalf("counted %d, want %d", want, plain)
		}
		least := r.IntN(400)
		if got := s.countIn(b, least); got != want && (got != 0 || want >= least) {
			t.Fatalf("counted %d of %d that are at least %d", got, want, least)
		}
	}
}
