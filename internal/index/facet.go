package index

import (
	"cmp"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// facet is the dictionary of the values of one facet, with the documents of
// each and the order of the values by how many those are. The order is kept
// with every change, so that counting among many matches can start with the
// frequent values and stop when no later one can reach the page.
type facet struct {
	number int
	most   int // values shown; 0: all
	ids    map[string]uint32
	values []value
	free   []uint32
	pairs  int // of document and value

	order []uint32 // values by descending count
	above []uint32 // by count: how many values have a greater one
}

type value struct {
	text string
	docs set
	pos  uint32 // in order
}

func newFacet(number int) facet {
	f := facet{number: number, ids: make(map[string]uint32), above: make([]uint32, 1)}
	if number == tagFacet || number == skillFacet {
		f.most = topValues
	}
	return f
}

// intern returns the id of a value, making it known. Somebody must add a
// document to it, or it stays without a use.
func (f *facet) intern(text string) uint32 {
	id, ok := f.ids[text]
	if ok {
		return id
	}
	if n := len(f.free); n > 0 {
		id, f.free = f.free[n-1], f.free[:n-1]
	} else {
		id = uint32(len(f.values))
		f.values = append(f.values, value{pos: uint32(len(f.order))})
		f.order = append(f.order, id) // the count 0 comes last
	}
	f.values[id].text = strings.Clone(text)
	f.ids[f.values[id].text] = id
	return id
}

// add notes that one of docs documents has a value; again does nothing.
func (f *facet) add(v, doc uint32, docs int) {
	val := &f.values[v]
	n := val.docs.n
	if !val.docs.add(doc, docs) {
		return
	}
	f.pairs++
	// The first value of count n changes places with v and grows by one.
	f.swap(val.pos, f.above[n])
	f.above[n]++
	if n+1 == len(f.above) {
		f.above = append(f.above, 0)
	}
}

// remove notes that a document no longer has a value, and forgets the value
// with its last document.
func (f *facet) remove(v, doc uint32, docs int) {
	val := &f.values[v]
	n := val.docs.n
	if !val.docs.remove(doc, docs) {
		return
	}
	f.pairs--
	// The last value of count n changes places with v and shrinks by one.
	f.above[n-1]--
	f.swap(val.pos, f.above[n-1])
	if n == 1 {
		delete(f.ids, val.text)
		val.text, val.docs = "", set{}
		f.free = append(f.free, v)
	}
}

func (f *facet) swap(i, j uint32) {
	a, b := f.order[i], f.order[j]
	f.order[i], f.order[j] = b, a
	f.values[a].pos, f.values[b].pos = j, i
}

// union adds the documents that have one of the values to b.
func (f *facet) union(texts []string, b *bm25.Bits) {
	for _, t := range texts {
		if id, ok := f.ids[facetValue(f.number, t)]; ok {
			f.values[id].docs.addTo(b)
		}
	}
}

// Prices of counting document by document, in words of bits.
const (
	costPerDoc  = 50
	costPerPair = 8
)

// count returns the values of the n matches in b, most frequent first and
// then by name. It either intersects the values with the matches, frequent
// values first, or counts up document by document; intersecting gives up
// when it has become the dearer way.
func (f *facet) count(b bm25.Bits, n int, entries []entry, s *scratch) []hub.FacetCount {
	if n == 0 {
		return []hub.FacetCount{}
	}
	// Half of what the other way costs bounds what trying this one can waste.
	budget := (n*costPerDoc + n*costPerPair*f.pairs/max(1, len(entries))) / 2
	r := ranking{most: f.most}
	for _, v := range f.order {
		val := &f.values[v]
		if val.docs.n == 0 || r.full() && val.docs.n < r.last() {
			break
		}
		if budget -= val.docs.cost(); budget < 0 {
			return f.countUp(b, entries, s)
		}
		if c := val.docs.countIn(b); c > 0 {
			r.offer(val.text, c)
		}
	}
	return r.sorted()
}

func (f *facet) countUp(b bm25.Bits, entries []entry, s *scratch) []hub.FacetCount {
	if len(s.counts) < len(f.values) {
		s.counts = make([]uint32, len(f.values)+len(f.values)/8)
	}
	counts, seen := s.counts, s.seen[:0]
	b.Each(func(id int) bool {
		for _, v := range entries[id].of(f.number) {
			if counts[v] == 0 {
				seen = append(seen, v)
			}
			counts[v]++
		}
		return true
	})
	r := ranking{most: f.most}
	for _, v := range seen {
		if c := int(counts[v]); !r.full() || c >= r.last() {
			r.offer(f.values[v].text, c)
		}
		counts[v] = 0
	}
	s.seen = seen
	return r.sorted()
}

// ranking collects the most frequent values.
type ranking struct {
	most int              // 0: all
	list []hub.FacetCount // in order, unless all are wanted
}

func byCount(a, b hub.FacetCount) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
}

func (r *ranking) full() bool { return r.most > 0 && len(r.list) == r.most }

func (r *ranking) last() int { return r.list[len(r.list)-1].Count }

func (r *ranking) offer(text string, count int) {
	c := hub.FacetCount{Value: text, Count: count}
	if r.most == 0 {
		r.list = append(r.list, c)
		return
	}
	if r.full() {
		if byCount(c, r.list[len(r.list)-1]) >= 0 {
			return
		}
		r.list = r.list[:len(r.list)-1]
	}
	i, _ := slices.BinarySearchFunc(r.list, c, byCount)
	r.list = slices.Insert(r.list, i, c)
}

func (r *ranking) sorted() []hub.FacetCount {
	if r.most == 0 {
		slices.SortFunc(r.list, byCount)
	}
	return r.list
}
