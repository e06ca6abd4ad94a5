package index

import (
	"math/bits"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Prices of counting, in words of bits that are intersected.
const (
	costPerDoc     = 12  // of counting up the invented values of a document
	costPerProfile = 4   // of counting up its profile
	leastCost      = 8   // of intersecting a value
	fewMatches     = 64  // so few are counted up without a thought
	fewValues      = 512 // of so few matches all values are counted up at once
)

// count fills in the values of those facets that are asked for, of the n
// matches in b, most frequent first and then by name. There are three ways:
// counting up the values of each match; the same with each document that is
// no match, which tells how much less than all the matches have; and
// intersecting the frequent values with the matches.
func (x *Index) count(b bm25.Bits, n int, asked *[facetCount]bool, s *scratch, out *[facetCount][]hub.FacetCount) {
	if n == 0 {
		for f, want := range asked {
			if want {
				out[f] = []hub.FacetCount{}
			}
		}
		return
	}
	rest := *asked
	docs := x.words.Len()
	up := min(n, docs-n) // documents to count up
	if n > fewMatches {
		// What counting up costs bounds what trying to intersect can waste.
		for f := range inventedFacets {
			if rest[f] && x.intersect(f, b, n, up*costPerDoc/2, out) {
				rest[f] = false
			}
		}
		if x.cheap(&rest, up*costPerProfile) {
			for f := inventedFacets; f < facetCount; f++ {
				if rest[f] {
					x.intersect(f, b, n, unbounded, out)
					rest[f] = false
				}
			}
		}
	}
	if up < n {
		x.countLess(b, up, &rest, s, out)
	} else {
		x.countUp(b, n, &rest, s, out)
	}
}

const unbounded = 1 << 62

// cheap reports whether all values of the facets asked for, but those that
// people invent, can be intersected for less than budget.
func (x *Index) cheap(asked *[facetCount]bool, budget int) bool {
	for f := inventedFacets; f < facetCount; f++ {
		if !asked[f] {
			continue
		}
		for _, v := range x.facets.of[f].order {
			if budget -= x.facets.values[v].docs.cost(); budget < 0 {
				return false
			}
		}
	}
	return true
}

// intersect counts one facet of the n matches in b value by value, unless that
// costs more than budget.
func (x *Index) intersect(f int, b bm25.Bits, n, budget int, out *[facetCount][]hub.FacetCount) bool {
	r := ranking{of: x.facets, most: facetMost[f]}
	if o := &x.facets.of[f]; r.most > 0 && len(o.order) > r.most {
		// Were the matches like all agents, the last value shown had this
		// many of them, and all values with more would have to be looked at.
		last := int(x.facets.values[o.order[r.most-1]].docs.n) * n / x.words.Len()
		if int(o.above[last])*leastCost > budget {
			return false
		}
	}
	for _, v := range x.facets.of[f].order {
		val := &x.facets.values[v]
		if r.full() && int(val.docs.n) < r.last() {
			break
		}
		if budget -= val.docs.cost(); budget < 0 {
			return false
		}
		if c := val.docs.countIn(b); c > 0 {
			r.offer(v, c)
		}
	}
	out[f] = r.sorted()
	return true
}

// room prepares s for all values there are.
func (x *Index) room(s *scratch) {
	if n := len(x.facets.values); len(s.counts) < n {
		s.counts = make([]uint32, n+n/8)
	}
	if n := len(x.profiles.list); len(s.profiles) < n {
		s.profiles = make([]uint32, n+n/8)
	}
	s.seen = s.seen[:0]
}

// kindsOf says of which kind of facets any is asked for.
func kindsOf(asked *[facetCount]bool) (invented, profiled bool) {
	for f, want := range asked {
		if f < inventedFacets {
			invented = invented || want
		} else {
			profiled = profiled || want
		}
	}
	return invented, profiled
}

// tally adds up invented values of all documents of b in s.counts and s.seen.
func (x *Index) tally(b bm25.Bits, p part, s *scratch) {
	counts, seen := s.counts, s.seen
	for i, w := range b {
		if w == 0 {
			continue
		}
		c := &x.columns[i]
		for ; w != 0; w &= w - 1 {
			for _, v := range c.part(uint32(bits.TrailingZeros64(w)), p) {
				n := counts[v]
				counts[v] = n + 1
				if n == 0 {
					seen = append(seen, v)
				}
			}
		}
	}
	s.seen = seen
}

// tallyProfiles adds up the values of the profiles likewise.
func (x *Index) tallyProfiles(b bm25.Bits, s *scratch) {
	counts, seen := s.profiles, s.seenProfiles[:0]
	for i, w := range b {
		if w == 0 {
			continue
		}
		c := &x.columns[i].profiles
		for ; w != 0; w &= w - 1 {
			p := c[bits.TrailingZeros64(w)]
			n := counts[p]
			counts[p] = n + 1
			if n == 0 {
				seen = append(seen, p)
			}
		}
	}
	for _, p := range seen {
		for _, v := range x.profiles.list[p].values {
			if s.counts[v] == 0 {
				s.seen = append(s.seen, v)
			}
			s.counts[v] += counts[p]
		}
		counts[p] = 0
	}
	s.seenProfiles = seen
}

// countUp counts document by document, n of them; rare values only where they
// may be among those that are shown.
func (x *Index) countUp(b bm25.Bits, n int, asked *[facetCount]bool, s *scratch, out *[facetCount][]hub.FacetCount) {
	if *asked == ([facetCount]bool{}) {
		return
	}
	x.room(s)
	var r [facetCount]ranking
	for f := range r {
		r[f] = ranking{of: x.facets, most: facetMost[f]}
	}
	invented, profiled := kindsOf(asked)
	first := frequent
	if n <= fewValues {
		first = all
	}
	if invented {
		x.tally(b, first, s)
	}
	if profiled {
		x.tallyProfiles(b, s)
	}
	x.offer(&r, asked, s)
	if lacking := x.lacking(&r, asked); first != all && lacking != ([facetCount]bool{}) {
		x.tally(b, rare, s)
		x.offer(&r, &lacking, s)
	}
	for f := range r {
		if asked[f] {
			out[f] = r[f].sorted()
		}
	}
}

// offer ranks the values of s.seen, and clears them.
func (x *Index) offer(r *[facetCount]ranking, asked *[facetCount]bool, s *scratch) {
	counts, leads := s.counts, x.facets.leads
	for _, v := range s.seen {
		c := int(counts[v])
		counts[v] = 0
		if f := leadFacet(leads[v]); asked[f] && (!r[f].full() || c >= r[f].last()) {
			r[f].offer(v, c)
		}
	}
	s.seen = s.seen[:0]
}

// lacking returns the facets of those asked for in which a rare value may be
// among the most frequent.
func (x *Index) lacking(r *[facetCount]ranking, asked *[facetCount]bool) (list [facetCount]bool) {
	for f := range inventedFacets {
		order := x.facets.of[f].order
		list[f] = asked[f] && len(order) > 0 && !x.facets.values[order[len(order)-1]].frequent &&
			(!r[f].full() || r[f].last() < int(frequentFrom[f]))
	}
	return list
}

// countLess counts the documents that do not match, left of them, and takes
// them off the counts of all.
func (x *Index) countLess(b bm25.Bits, left int, asked *[facetCount]bool, s *scratch, out *[facetCount][]hub.FacetCount) {
	if *asked == ([facetCount]bool{}) {
		return
	}
	x.room(s)
	s.less = s.less[:0]
	if left > 0 {
		s.less = append(s.less, x.words.All()...)
		s.less.AndNot(b)
	}
	invented, profiled := kindsOf(asked)
	if invented {
		x.tally(s.less, frequent, s)
	}
	if profiled {
		x.tallyProfiles(s.less, s)
	}
	complete := false // rare values are counted too
	for f := range asked {
		if !asked[f] {
			continue
		}
		r := ranking{of: x.facets, most: facetMost[f]}
		for _, v := range x.facets.of[f].order {
			val := &x.facets.values[v]
			if r.full() && int(val.docs.n) < r.last() {
				break
			}
			if f < inventedFacets && !val.frequent && !complete {
				x.tally(s.less, rare, s)
				complete = true
			}
			if c := int(val.docs.n) - int(s.counts[v]); c > 0 && (!r.full() || c >= r.last()) {
				r.offer(v, c)
			}
		}
		out[f] = r.sorted()
	}
	for _, v := range s.seen {
		s.counts[v] = 0
	}
}
