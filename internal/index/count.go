package index

import (
	"math"
	"math/bits"
	"slices"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// facetCounts lists the values of each facet with their numbers of matches, the most frequent value
// first.
type facetCounts [facetCount][]hub.FacetCount

// Estimated costs of the two ways to count a facet, in 64-bit words of a bit set that are intersected.
// countByValue compares them to choose the cheaper way.
const (
	pricePerMatch = 100 // reading one match in countByWalk
	pricePerValue = 20  // intersecting one value in countByValue, in addition to the words of its documents
)

// fewMatches: if fewer than 1/fewMatches of the documents match, a facet with many values is counted by
// countByWalk without an attempt by value.
const fewMatches = 32

// countFacets stores in out the values of the facets marked in asked, counted over the n documents in
// match. Each facet is counted by value if that is cheaper than a walk over the matches. All other
// facets share one walk. The caller must hold mu.
func (x *Index) countFacets(match bm25.Bits, n int, asked [facetCount]bool, s *scratch, out *facetCounts) {
	for f := range asked {
		if asked[f] && x.countByValue(f, match, n, out) {
			asked[f] = false
		}
	}
	if asked != [facetCount]bool{} {
		x.countByWalk(match, asked, s, out)
	}
}

// countByValue counts facet f by intersecting match with the documents of each value, the most frequent
// value first, until no further value can get on the page. It returns false, with out unchanged, as soon
// as that would cost more than a walk over the n matches.
func (x *Index) countByValue(f int, match bm25.Bits, n int, out *facetCounts) bool {
	facet := x.facets[f]
	if n > 0 && n < x.words.Len()/fewMatches && len(facet.order) > n/8 {
		return false
	}
	budget := n * pricePerMatch
	top := newTopValues(f, facet)
	for i, number := range facet.order {
		docs := &facet.values[number].docs
		total := docs.len()
		if n == 0 || total < top.least {
			break
		}
		count := total
		if n < x.words.Len() {
			budget -= pricePerValue + min(total, len(match))
			// left is the number of values that may still get on the page.
			left := int(facet.above[top.least-1]) - i
			if budget < 0 || i%64 == 0 && i >= 256 && left*pricePerValue > budget {
				return false
			}
			count = docs.countIn(match)
		}
		top.offerValue(number, count)
	}
	out[f] = top.sortedCounts()
	return true
}

// countByWalk reads the values of every matching document and counts them, for all facets marked in
// asked at once.
func (x *Index) countByWalk(match bm25.Bits, asked [facetCount]bool, s *scratch, out *facetCounts) {
	var top [facetCount]topValues
	// end is the first id after those of the last facet in asked. The ids of a document are ordered by
	// facet, so the loop below can stop there.
	end := valueID(0)
	for f, facet := range x.facets {
		if n := len(facet.values); len(s.counts[f]) < n {
			s.counts[f] = make([]uint32, n+n/8)
		}
		if asked[f] {
			top[f] = newTopValues(f, facet)
			end = newValueID(f+1, 0)
		}
	}
	counts, seen := &s.counts, s.seen[:0]
	for i, w := range match {
		for ; w != 0; w &= w - 1 {
			for _, id := range x.values[i<<6+bits.TrailingZeros64(w)] {
				if id >= end {
					break
				}
				count := &counts[id.facet()][id.number()]
				if *count == 0 {
					seen = append(seen, id)
				}
				*count++
			}
		}
	}
	s.seen = seen
	for _, id := range seen {
		f, number := id.facet(), id.number()
		if asked[f] {
			top[f].offerValue(number, int(counts[f][number]))
		}
		counts[f][number] = 0
	}
	for f := range top {
		if asked[f] {
			out[f] = top[f].sortedCounts()
		}
	}
}

// topValues collects the most frequent values of a facet, at most limit of them.
type topValues struct {
	facet *facet
	limit int          // 0: no limit
	list  []valueCount // sorted by compare if there is a limit
	// least is the count and lead the first bytes of the last value in list, once list is full. Most
	// values are rejected by these two without reading their text.
	least int
	lead  uint64
}

type valueCount struct {
	number uint32
	count  int
}

func newTopValues(f int, facet *facet) topValues {
	return topValues{facet: facet, limit: facetLimits[f], least: 1, lead: math.MaxUint64}
}

// compare orders values as on the page: by descending count, then by text.
func (t *topValues) compare(a, b valueCount) int {
	if a.count != b.count {
		return b.count - a.count
	}
	return t.facet.compareValues(a.number, b.number)
}

func (t *topValues) offerValue(number uint32, count int) {
	if count > t.least || count == t.least && t.facet.leads[number] <= t.lead {
		t.insertValue(valueCount{number, count})
	}
}

func (t *topValues) insertValue(v valueCount) {
	if t.limit == 0 {
		t.list = append(t.list, v)
		return
	}
	if len(t.list) == t.limit {
		if t.compare(v, t.list[t.limit-1]) > 0 {
			return
		}
		t.list = t.list[:t.limit-1]
	}
	at, _ := slices.BinarySearchFunc(t.list, v, t.compare)
	t.list = slices.Insert(t.list, at, v)
	if len(t.list) == t.limit {
		last := t.list[t.limit-1]
		t.least, t.lead = last.count, t.facet.leads[last.number]
	}
}

func (t *topValues) sortedCounts() []hub.FacetCount {
	if t.limit == 0 {
		slices.SortFunc(t.list, t.compare)
	}
	list := make([]hub.FacetCount, len(t.list))
	for i, v := range t.list {
		list[i] = hub.FacetCount{Value: t.facet.values[v.number].text, Count: v.count}
	}
	return list
}
