package index

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// facets is the dictionary of the values of all facets, with the documents of
// each value. Of each facet it keeps the order of the values by how many
// documents they have, with every change, so that counting among many matches
// can start with the frequent values and stop when no later one can reach the
// page.
type facets struct {
	byText bm25.Table
	values []value
	leads  []uint32 // of each value, apart because counting reads them a lot, see leadOf
	free   []uint32
	of     [facetCount]facet
	moved  []uint32 // values of another tier than where their documents list them
	// portals are the values of the portal facet by their numbers, which are as
	// few as they: all counting goes through them.
	portals, freePortals []uint32
	epoch                uint64 // changes when a value is forgotten and its id may mean another

	// The frequent values, tags and others, by slots: counting them touches few
	// places of memory. The slots of others begin at otherSlots; the first ones
	// of tags mean nothing, see slotsEach.
	tags, others slots

	// Memory of column.sort.
	ids, valueBuf []uint32
}

type slots struct {
	list    []slot
	unused  []uint16 // places in list
	left    []uint16 // unused once nothing is moved
	refused uint32   // so many documents had a value at most that found no slot
}

// slot is a frequent value, with its lead.
type slot struct{ value, lead uint32 }

const (
	slotCount  = 1 << 16
	otherSlots = slotCount / 2
)

// slot returns what is in a slot.
func (f *facets) slot(n uint16) slot {
	if n < otherSlots {
		return f.tags.list[n]
	}
	return f.others.list[n-otherSlots]
}

type facet struct {
	order []uint32 // values by descending count
	above []uint32 // by count: how many values have a greater one
}

type value struct {
	text facetText
	docs set
	pos  uint32 // in order
	slot uint16 // when frequent
	tier tier   // of an invented value
	// number is the place of a portal in facets.portals.
	number uint32
}

// tier is where the documents of an invented value list it.
type tier uint8

const (
	alone  tier = iota // had one document at most so far
	shared             // had more
	frequent
)

// part is where a value is listed that is not frequent.
func (v *value) part() part {
	switch {
	case v.tier == frequent:
		return parts
	case v.tier == alone:
		return single
	case v.facet() == tagFacet:
		return sharedTags
	}
	return sharedOthers
}

// A value is frequent from when so many documents have it until fewer than
// half as many do. Agents have more tags than skills, and fewer different ones.
var frequentFrom = [inventedFacets]uint32{tagFacet: 16, skillFacet: 4, publisherFacet: 4}

func (v *value) facet() int { return int(v.text[0]) }

func newFacets() *facets {
	f := new(facets)
	f.tags.list = make([]slot, slotsEach)
	f.byText.Text = func(id uint32) string { return f.values[id].text }
	for i := range f.of {
		f.of[i].above = make([]uint32, 1)
	}
	return f
}

// intern returns the id of a value, making it known. Somebody must add a
// document to it, or it stays without a use.
func (f *facets) intern(text facetText) uint32 {
	h := bm25.HashOf(text)
	if id, ok := f.byText.FindHash(text, h); ok {
		return id
	}
	return f.enter(strings.Clone(text), h)
}

// add notes that one of docs documents has a value; again does nothing.
func (f *facets) add(v, doc uint32, docs int) {
	val := &f.values[v]
	n := val.docs.n
	if !val.docs.add(doc, docs) {
		return
	}
	// The first value of count n changes places with v and grows by one.
	o := &f.of[val.facet()]
	f.swap(o, val.pos, o.above[n])
	o.above[n]++
	if int(n)+1 == len(o.above) {
		o.above = append(o.above, 0)
	}
	f.rise(v)
}

// rise notes that documents of a value were added: it may be of another tier.
func (f *facets) rise(v uint32) {
	val := &f.values[v]
	number := val.facet()
	switch {
	case number >= inventedFacets:
	case val.tier < frequent && val.docs.n >= frequentFrom[number] && f.takeSlot(v):
		f.moved = append(f.moved, v)
	case val.tier == alone && val.docs.n > 1:
		val.tier = shared
		f.moved = append(f.moved, v)
	}
}

// takeSlot makes a value frequent, if there is a slot.
func (f *facets) takeSlot(v uint32) bool {
	val, l, from := &f.values[v], &f.others, otherSlots
	if val.facet() == tagFacet {
		l, from = &f.tags, 0
	}
	if len(f.moved) == 0 {
		l.unused, l.left = append(l.unused, l.left...), l.left[:0]
	}
	var at uint16
	switch n := len(l.unused); {
	case n > 0:
		at, l.unused = l.unused[n-1], l.unused[:n-1]
	case len(l.list) == otherSlots:
		l.refused = max(l.refused, val.docs.n)
		return false
	default:
		at = uint16(len(l.list))
		l.list = append(l.list, slot{})
	}
	l.list[at] = slot{v, f.leads[v]}
	val.tier, val.slot = frequent, uint16(from)+at
	return true
}

// leaveSlot makes a value one of the shared ones. The documents still list
// its slot, until they are sorted.
func (f *facets) leaveSlot(v uint32) {
	val := &f.values[v]
	val.tier = shared
	if val.facet() == tagFacet {
		f.tags.left = append(f.tags.left, val.slot)
	} else {
		f.others.left = append(f.others.left, val.slot-otherSlots)
	}
}

// remove notes that a document no longer has a value, and forgets the value
// with its last document.
func (f *facets) remove(v, doc uint32, docs int) {
	val := &f.values[v]
	n := val.docs.n
	if !val.docs.remove(doc, docs) {
		return
	}
	// The last value of count n changes places with v and shrinks by one.
	o := &f.of[val.facet()]
	o.above[n-1]--
	f.swap(o, val.pos, o.above[n-1])
	if val.tier == frequent && n <= frequentFrom[val.facet()]/2 {
		f.leaveSlot(v)
		f.moved = append(f.moved, v)
	}
	if n == 1 {
		if val.facet() == portalFacet {
			f.freePortals = append(f.freePortals, val.number)
		}
		f.swap(o, val.pos, uint32(len(o.order)-1))
		o.order = o.order[:len(o.order)-1]
		f.byText.Delete(v)
		f.epoch++
		*val = value{}
		f.free = append(f.free, v)
	}
}

func (f *facets) swap(o *facet, i, j uint32) {
	a, b := o.order[i], o.order[j]
	o.order[i], o.order[j] = b, a
	f.values[a].pos, f.values[b].pos = j, i
}

// union adds the documents that have one of the values to b.
func (f *facets) union(number int, values []string, b *bm25.Bits) {
	for _, v := range values {
		if id, ok := f.byText.Find(textOf(number, facetValue(number, v))); ok {
			f.values[id].docs.addTo(b)
		}
	}
}

// leadOf is the beginning of a value as a number: its facet and three letters.
// Those of one facet are in the order of their texts, but for equal ones.
func leadOf(text facetText) uint32 {
	var b [leadSize]byte
	copy(b[:], text)
	return binary.BigEndian.Uint32(b[:])
}

const leadSize = 4

func leadFacet(lead uint32) int { return int(lead >> 24) }

// ranking collects the most frequent values of a facet.
type ranking struct {
	of   *facets
	most int          // 0: all
	list []valueCount // in order, unless all are wanted
}

// valueCount is a value with its count and, for ties, its lead.
type valueCount struct {
	count, lead, value uint32
	more               uint64 // what follows the lead in the text, once it was compared
}

// compare orders values by descending count and then by text.
func (r *ranking) compare(a, b *valueCount) int {
	if a.count != b.count {
		return cmp.Compare(b.count, a.count)
	}
	if a.lead != b.lead {
		return cmp.Compare(a.lead, b.lead)
	}
	if d := cmp.Compare(r.moreOf(a), r.moreOf(b)); d != 0 {
		return d
	}
	return strings.Compare(r.of.values[a.value].text, r.of.values[b.value].text)
}

func (r *ranking) moreOf(c *valueCount) uint64 {
	if c.more == 0 {
		var b [8]byte
		if s := r.of.values[c.value].text; len(s) > leadSize {
			copy(b[:], s[leadSize:])
		}
		c.more = binary.BigEndian.Uint64(b[:])
	}
	return c.more
}

func (r *ranking) full() bool { return r.most > 0 && len(r.list) == r.most }

func (r *ranking) last() int { return int(r.list[len(r.list)-1].count) }

// takes reports whether a value of that count and lead may be among the most
// frequent.
func (r *ranking) takes(count int, lead uint32) bool {
	if !r.full() {
		return true
	}
	last := &r.list[len(r.list)-1]
	return count > int(last.count) || count == int(last.count) && lead <= last.lead
}

func (r *ranking) offer(c valueCount) {
	if r.most == 0 {
		r.list = append(r.list, c)
		return
	}
	switch {
	case r.list == nil:
		r.list = make([]valueCount, 0, r.most)
	case r.full():
		if r.compare(&c, &r.list[len(r.list)-1]) >= 0 {
			return
		}
		r.list = r.list[:len(r.list)-1]
	}
	from, to := 0, len(r.list)
	for from < to {
		if mid := (from + to) / 2; r.compare(&r.list[mid], &c) < 0 {
			from = mid + 1
		} else {
			to = mid
		}
	}
	r.list = slices.Insert(r.list, from, c)
}

func (r *ranking) sorted() []hub.FacetCount {
	if r.most == 0 {
		slices.SortFunc(r.list, func(a, b valueCount) int { return r.compare(&a, &b) })
	}
	list := make([]hub.FacetCount, len(r.list))
	for i, c := range r.list {
		list[i] = hub.FacetCount{Value: r.of.values[c.value].text[1:], Count: int(c.count)}
	}
	return list
}

// addRun notes that documents, all behind those of the value, have it; they
// are given by what they are beyond first. There are docs documents.
func (f *facets) addRun(v, first uint32, run []uint32, docs int) {
	val := &f.values[v]
	from := int(val.docs.n)
	val.docs.addRun(first, run, docs)
	to := int(val.docs.n)
	o := &f.of[val.facet()]
	for n := from; n < to; n++ { // as add does
		if at := o.above[n]; val.pos != at {
			f.swap(o, val.pos, at)
		}
		o.above[n]++
		if n+1 == len(o.above) {
			o.above = append(o.above, 0)
		}
	}
	f.rise(v)
}

// internHash is intern for a text of which the hash is known, and which is
// kept when it is new.
func (f *facets) internHash(text facetText, h uint64) uint32 {
	if id, ok := f.byText.FindHash(text, h); ok {
		return id
	}
	return f.enter(text, h)
}

// enter makes a value known.
func (f *facets) enter(text facetText, h uint64) uint32 {
	o := &f.of[text[0]]
	var id uint32
	if n := len(f.free); n > 0 {
		id, f.free = f.free[n-1], f.free[:n-1]
	} else {
		id = uint32(len(f.values))
		f.values, f.leads = append(f.values, value{}), append(f.leads, 0)
	}
	f.leads[id] = leadOf(text)
	f.values[id] = value{text: text, pos: uint32(len(o.order))}
	if text[0] == portalFacet {
		f.values[id].number = f.number(id)
	}
	o.order = append(o.order, id) // the count 0 comes last
	f.byText.InsertHash(id, h)
	return id
}

// number gives a portal a number.
func (f *facets) number(v uint32) uint32 {
	if n := len(f.freePortals); n > 0 {
		number := f.freePortals[n-1]
		f.freePortals = f.freePortals[:n-1]
		f.portals[number] = v
		return number
	}
	f.portals = append(f.portals, v)
	return uint32(len(f.portals) - 1)
}
