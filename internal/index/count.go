package index

import (
	"math"
	"math/bits"
	"slices"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Prices of counting, in words of bits that are intersected: half a
// nanosecond each.
const (
	costPerDoc     = 24 // of counting up the frequent values of a document
	costPerPart    = 8  // and its other ones of a facet
	costPerProfile = 4  // of counting up its profile
	costPerPortal  = 4  // of counting up its portal
	costPerValue   = 30 // of coming to a value that is intersected
	fewMatches     = 64 // so few are counted up without a thought
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
		var price [inventedFacets]int
		sum := 0
		for f := range inventedFacets {
			if rest[f] {
				price[f] = x.price(f, n)
				sum += price[f]
			}
		}
		for f := range inventedFacets {
			// The price is a guess; who finds it wrong stops in time.
			if rest[f] && (sum <= up*costPerDoc || price[f] <= up*costPerPart) && x.intersect(f, b, n, 2*price[f], out) {
				rest[f] = false
			}
		}
		portal := rest
		rest[portalFacet] = false
		x.intersectCheap(b, n, &rest, up*costPerProfile, out)
		if portal[portalFacet] {
			portal = [facetCount]bool{portalFacet: true}
			x.intersectCheap(b, n, &portal, up*costPerPortal, out)
			rest[portalFacet] = portal[portalFacet]
		}
	}
	if up < n {
		x.countLess(b, up, &rest, s, out)
	} else {
		x.countUp(b, &rest, s, out)
	}
}

const unbounded = 1 << 62

// intersectCheap counts all values of the facets asked for, but those that people
// invent, if that costs less than budget; then it asks for them no more.
func (x *Index) intersectCheap(b bm25.Bits, n int, asked *[facetCount]bool, budget int, out *[facetCount][]hub.FacetCount) {
	if !x.cheap(asked, budget) {
		return
	}
	for f := inventedFacets; f < facetCount; f++ {
		if asked[f] {
			x.intersect(f, b, n, unbounded, out)
			asked[f] = false
		}
	}
}

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

// price guesses what it costs to intersect one facet with n matches. Were they
// like all agents, the last value shown had so many of them, and all values
// with more would have to be looked at.
func (x *Index) price(f, n int) int {
	o, docs := &x.facets.of[f], x.words.Len()
	last := 0
	if most := facetMost[f]; most > 0 && len(o.order) >= most {
		last = int(x.facets.values[o.order[most-1]].docs.n) * n / docs
	}
	sum := 0
	for from := max(last-1, 0); from < len(o.above)-1; {
		to := min(from+1+from/4, len(o.above)-1) // values with more than from and at most to documents
		sum += int(o.above[from]-o.above[to]) * (costPerValue + min(to, docs/64))
		from = to
	}
	return sum
}

// intersect counts one facet of the n matches in b value by value, unless that
// costs more than budget.
func (x *Index) intersect(f int, b bm25.Bits, n, budget int, out *[facetCount][]hub.FacetCount) bool {
	r := ranking{of: x.facets, most: facetMost[f]}
	for _, v := range x.facets.of[f].order {
		val := &x.facets.values[v]
		if r.full() && int(val.docs.n) < r.last() {
			break
		}
		if budget -= val.docs.cost(); budget < 0 {
			return false
		}
		least := 0
		if r.full() {
			least = r.last()
		}
		if c := val.docs.countIn(b, least); c > 0 && c >= least {
			r.offer(valueCount{count: uint32(c), lead: x.facets.leads[v], value: v})
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
	if s.slots == nil {
		s.slots = new([slotCount]uint32)
	}
	if n := len(x.profiles.list); len(s.profiles) < n {
		s.profiles = make([]uint32, n+n/8)
	}
	if n := len(x.facets.portals); len(s.portals) < n {
		s.portals = make([]uint32, n+n/8)
	}
	s.seenPortals = slices.Grow(s.seenPortals[:0], len(s.portals)+1)[:len(s.portals)+1]
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

// tallyFrequent adds up the frequent values of all documents of b in s.slots.
func (x *Index) tallyFrequent(b bm25.Bits, s *scratch) {
	counts := s.slots
	for i, w := range b {
		if w == 0 {
			continue
		}
		c := &x.columns[i]
		for w := w; w != 0; w &= w - 1 {
			slots := &c.slots[bits.TrailingZeros64(w)&(columnSize-1)]
			counts[slots[0]]++
			counts[slots[1]]++
			counts[slots[2]]++
			counts[slots[3]]++
		}
		for w &= c.has[spare]; w != 0; w &= w - 1 {
			for _, slot := range c.part(uint32(bits.TrailingZeros64(w)), spare) {
				counts[uint16(slot)]++
			}
		}
	}
}

// tally adds up a part of their values in s.counts and s.seen.
func (x *Index) tally(b bm25.Bits, p part, s *scratch) {
	counts, seen := s.counts, s.seen
	for i, w := range b {
		if w == 0 {
			continue
		}
		c := &x.columns[i]
		for w &= c.has[p]; w != 0; w &= w - 1 {
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

// tallyStands adds up the values of the profiles likewise, and the portals by
// their numbers in s.portals and s.seenPortals; those only if asked.
func (x *Index) tallyStands(b bm25.Bits, portals bool, s *scratch) {
	counts, seen := s.profiles, s.seenProfiles[:0]
	hosts, seenHosts, k := s.portals, s.seenPortals, 0
	for i, w := range b {
		if w == 0 {
			continue
		}
		c := &x.columns[i].stands
		for ; w != 0; w &= w - 1 {
			at := c[bits.TrailingZeros64(w)&(columnSize-1)]
			n := counts[at.profile]
			counts[at.profile] = n + 1
			if n == 0 {
				seen = append(seen, at.profile)
			}
			if !portals {
				continue
			}
			// Written each time and kept the first: nobody can guess when that
			// is, where there are as many portals as matches.
			n = hosts[at.portal]
			hosts[at.portal] = n + 1
			seenHosts[k] = at.portal
			first := 0
			if n == 0 {
				first = 1
			}
			k += first
		}
	}
	seenHosts = seenHosts[:k]
	for _, p := range seen {
		for _, v := range x.profiles.list[p].values {
			if leadFacet(x.facets.leads[v]) == portalFacet { // a further portal of the same agent
				if at := x.facets.values[v].number; portals {
					if hosts[at] == 0 {
						seenHosts = append(seenHosts, at)
					}
					hosts[at] += counts[p]
				}
				continue
			}
			if s.counts[v] == 0 {
				s.seen = append(s.seen, v)
			}
			s.counts[v] += counts[p]
		}
		counts[p] = 0
	}
	s.seenProfiles, s.seenPortals = seen, seenHosts
}

// offerPortals ranks the portals of s.seenPortals, and clears them.
func (x *Index) offerPortals(r *[facetCount]ranking, asked *[facetCount]bool, s *scratch) {
	if !asked[portalFacet] {
		return
	}
	rank, least := &r[portalFacet], uint32(1)
	for _, p := range s.seenPortals {
		c := s.portals[p]
		s.portals[p] = 0
		if c < least {
			continue
		}
		v := x.facets.portals[p]
		if lead := x.facets.leads[v]; rank.takes(int(c), lead) {
			rank.offer(valueCount{count: c, lead: lead, value: v})
			if rank.full() {
				least = uint32(rank.last())
			}
		}
	}
}

// countUp counts document by document; rare values only where they may be
// among those that are shown.
func (x *Index) countUp(b bm25.Bits, asked *[facetCount]bool, s *scratch, out *[facetCount][]hub.FacetCount) {
	if *asked == ([facetCount]bool{}) {
		return
	}
	x.room(s)
	var r [facetCount]ranking
	for f := range r {
		r[f] = ranking{of: x.facets, most: facetMost[f]}
	}
	invented, profiled := kindsOf(asked)
	if invented {
		x.tallyFrequent(b, s)
		x.offerFrequent(&r, asked, s)
	}
	if profiled {
		x.tallyStands(b, asked[portalFacet], s)
		x.offerPortals(&r, asked, s)
	}
	x.offer(&r, asked, s)
	for p := spare + 1; p < parts; p++ {
		if lacking := x.lacking(p, &r, asked); lacking != ([facetCount]bool{}) {
			if p == single {
				x.offerSingles(b, &r, &lacking)
				continue
			}
			x.tally(b, p, s)
			x.offer(&r, &lacking, s)
		}
	}
	for f := range r {
		if asked[f] {
			out[f] = r[f].sorted()
		}
	}
}

// offerFrequent ranks the values of s.slots, and clears them.
func (x *Index) offerFrequent(r *[facetCount]ranking, asked *[facetCount]bool, s *scratch) {
	counts := s.slots[:len(x.facets.tags.list)]
	clear(counts[:slotsEach])
	tags := [facetCount]bool{tagFacet: asked[tagFacet]}
	offerSlots(counts, x.facets.tags.list, r, &tags)
	clear(counts)
	counts = s.slots[otherSlots:][:len(x.facets.others.list)]
	others := [facetCount]bool{skillFacet: asked[skillFacet], publisherFacet: asked[publisherFacet]}
	offerSlots(counts, x.facets.others.list, r, &others)
	clear(counts)
}

func offerSlots(counts []uint32, list []slot, r *[facetCount]ranking, asked *[facetCount]bool) {
	least := leastOf(r, asked)
	for i, c := range counts {
		if c < least {
			continue
		}
		slot := list[i]
		if f := leadFacet(slot.lead); asked[f] && r[f].takes(int(c), slot.lead) {
			r[f].offer(valueCount{count: c, lead: slot.lead, value: slot.value})
			least = leastOf(r, asked)
		}
	}
}

// offer ranks the values of s.seen, and clears them.
func (x *Index) offer(r *[facetCount]ranking, asked *[facetCount]bool, s *scratch) {
	least := leastOf(r, asked)
	for _, v := range s.seen {
		c := s.counts[v]
		s.counts[v] = 0
		if c < least {
			continue
		}
		lead := x.facets.leads[v]
		if f := leadFacet(lead); asked[f] && r[f].takes(int(c), lead) {
			r[f].offer(valueCount{count: c, lead: lead, value: v})
			least = leastOf(r, asked)
		}
	}
	s.seen = s.seen[:0]
}

// leastOf returns a count below which no value of those facets is ranked, at
// least 1.
func leastOf(r *[facetCount]ranking, asked *[facetCount]bool) uint32 {
	least := uint32(math.MaxUint32)
	for f, want := range asked {
		switch {
		case !want:
		case !r[f].full():
			return 1
		default:
			least = min(least, uint32(r[f].last()))
		}
	}
	return least
}

// offerSingles ranks the values that one document has, of those in b.
func (x *Index) offerSingles(b bm25.Bits, r *[facetCount]ranking, asked *[facetCount]bool) {
	leads := x.facets.leads
	for i, w := range b {
		if w == 0 {
			continue
		}
		c := &x.columns[i]
		for w &= c.has[single]; w != 0; w &= w - 1 {
			for _, v := range c.part(uint32(bits.TrailingZeros64(w)), single) {
				lead := leads[v]
				if f := leadFacet(lead); asked[f] && r[f].takes(1, lead) {
					r[f].offer(valueCount{count: 1, lead: lead, value: v})
				}
			}
		}
	}
}

// lacking returns the facets of those asked for in which a value of a part
// may be among the most frequent.
func (x *Index) lacking(p part, r *[facetCount]ranking, asked *[facetCount]bool) (list [facetCount]bool) {
	for f := range inventedFacets {
		refused := x.facets.others.refused
		if f == tagFacet {
			refused = x.facets.tags.refused
		}
		most := max(frequentFrom[f]-1, refused) // documents of a value of this part
		if p == single {
			most = 1
		}
		list[f] = asked[f] && (p == single || p == sharedTags == (f == tagFacet)) && len(x.facets.of[f].order) > 0 &&
			(!r[f].full() || r[f].last() <= int(most))
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
		x.tallyFrequent(s.less, s)
	}
	if profiled {
		x.tallyStands(s.less, asked[portalFacet], s)
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
			less := s.counts[v]
			switch {
			case f == portalFacet:
				less = s.portals[val.number]
			case f >= inventedFacets:
			case val.tier == frequent:
				less = s.slots[val.slot]
			case !complete:
				for p := spare + 1; p < parts; p++ {
					x.tally(s.less, p, s)
				}
				complete, less = true, s.counts[v]
			}
			if c := int(val.docs.n) - int(less); c > 0 && r.takes(c, x.facets.leads[v]) {
				r.offer(valueCount{count: uint32(c), lead: x.facets.leads[v], value: v})
			}
		}
		out[f] = r.sorted()
	}
	for _, v := range s.seen {
		s.counts[v] = 0
	}
	if profiled {
		for _, p := range s.seenPortals {
			s.portals[p] = 0
		}
	}
	if invented {
		clear(s.slots[:len(x.facets.tags.list)])
		clear(s.slots[otherSlots:][:len(x.facets.others.list)])
	}
}
