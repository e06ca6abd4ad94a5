package bm25

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Documents evenly spread, in heaps, and nearly all at one end.
func TestPostings_FindEachDocument(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 60 {
		docs, rare, heap := 1+r.Uint32N(300_000), 1+r.IntN(40), 1+r.Uint32N(30_000)
		var p postings
		var list []uint32
		for doc := uint32(0); doc < docs; doc++ {
			if r.IntN(rare) > 0 {
				doc += r.Uint32N(200)
			}
			if r.IntN(2000) == 0 {
				doc += heap
			}
			p.putDoc(doc, 1+doc%fullImpact, 1, int(docs))
			list = append(list, doc)
		}
		for range len(list) / 3 {
			i := r.IntN(len(list))
			p.removeDoc(list[i], int(docs))
			list = slices.Delete(list, i, i+1)
			if len(list) < 3 {
				break
			}
		}
		if p.many == nil {
			continue
		}
		for range 2000 {
			doc := r.Uint32N(list[len(list)-1] + 2)
			if r.IntN(2) == 0 {
				doc = list[r.IntN(len(list))]
			}
			want := slices.IndexFunc(p.many.list, func(b block) bool { return b.lastDoc() >= doc })
			if want < 0 {
				want = len(p.many.list)
			}
			b, at := p.many.findDoc(doc)
			if b != want {
				t.Fatalf("document %d is looked for in block %d of %d, want %d", doc, b, len(p.many.list), want)
			}
			if b < len(p.many.list) {
				l := &p.many.list[b]
				if place := slices.IndexFunc(l.list, func(e posting) bool { return l.base|e.low() >= doc }); at != place {
					t.Fatalf("document %d is looked for at %d, want %d", doc, at, place)
				}
			}
			_, is := slices.BinarySearch(list, doc)
			if e, ok := p.getPosting(doc); ok != is || ok && e.impact() != 1+doc%fullImpact {
				t.Fatalf("document %d: found is %v, want %v", doc, ok, is)
			}
		}
	}
}
