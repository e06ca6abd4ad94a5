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
	moved  []uint32 // values that became frequent or no longer are
	epoch  uint64   // changes when a value is forgotten and its id may mean another
}

type facet struct {
	order []uint32 // values by descending count
	above []uint32 // by count: how many values have a greater one
}

type value struct {
	text facetText
	docs set
	pos  uint32 // in order
	// frequent is set while the documents of an invented value list it among
	// the frequent ones.
	frequent bool
}

// A value is frequent from when so many documents have it until fewer than
// half as many do. Agents have more tags than skills, and fewer different ones.
var frequentFrom = [inventedFacets]uint32{tagFacet: 32, skillFacet: 8, publisherFacet: 8}

func (v *value) facet() int { return int(v.text[0]) }

func newFacets() *facets {
	f := new(facets)
	f.byText.Text = func(id uint32) string { return f.values[id].text }
	for i := range f.of {
		f.of[i].above = make([]uint32, 1)
	}
	return f
}

// intern returns the id of a value, making it known. Somebody must add a
// document to it, or it stays without a use.
func (f *facets) intern(text facetText) uint32 {
	if id, ok := f.byText.Find(text); ok {
		return id
	}
	o := &f.of[text[0]]
	var id uint32
	if n := len(f.free); n > 0 {
		id, f.free = f.free[n-1], f.free[:n-1]
	} else {
		id = uint32(len(f.values))
		f.values, f.leads = append(f.values, value{}), append(f.leads, 0)
	}
	f.leads[id] = leadOf(text)
	f.values[id] = value{text: strings.Clone(text), pos: uint32(len(o.order))}
	o.order = append(o.order, id) // the count 0 comes last
	f.byText.Insert(id)
	return id
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
	if number := val.facet(); number < inventedFacets && !val.frequent && n+1 >= frequentFrom[number] {
		val.frequent = true
		f.moved = append(f.moved, v)
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
	if val.frequent && n <= frequentFrom[val.facet()]/2 {
		val.frequent = false
		f.moved = append(f.moved, v)
	}
	if n == 1 {
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
	var b [4]byte
	copy(b[:], text)
	return binary.BigEndian.Uint32(b[:])
}

func leadFacet(lead uint32) int { return int(lead >> 24) }

// ranking collects the most frequent values of a facet.
type ranking struct {
	of   *facets
	most int          // 0: all
	list []valueCount // in order, unless all are wanted
}

// valueCount is a value with its count and, for ties, its lead.
type valueCount struct{ count, lead, value uint32 }

// compare orders values by descending count and then by text.
func (r *ranking) compare(a, b valueCount) int {
	if a.count != b.count {
		return cmp.Compare(b.count, a.count)
	}
	if a.lead != b.lead {
		return cmp.Compare(a.lead, b.lead)
	}
	return strings.Compare(r.of.values[a.value].text, r.of.values[b.value].text)
}

func (r *ranking) full() bool { return r.most > 0 && len(r.list) == r.most }

func (r *ranking) last() int { return int(r.list[len(r.list)-1].count) }

func (r *ranking) offer(value uint32, count int) {
	c := valueCount{uint32(count), r.of.leads[value], value}
	if r.most == 0 {
		r.list = append(r.list, c)
		return
	}
	switch {
	case r.list == nil:
		r.list = make([]valueCount, 0, r.most)
	case r.full():
		if r.compare(c, r.list[len(r.list)-1]) >= 0 {
			return
		}
		r.list = r.list[:len(r.list)-1]
	}
	from, to := 0, len(r.list)
	for from < to {
		if mid := (from + to) / 2; r.compare(r.list[mid], c) < 0 {
			from = mid + 1
		} else {
			to = mid
		}
	}
	r.list = slices.Insert(r.list, from, c)
}

func (r *ranking) sorted() []hub.FacetCount {
	if r.most == 0 {
		slices.SortFunc(r.list, r.compare)
	}
	list := make([]hub.FacetCount, len(r.list))
	for i, c := range r.list {
		list[i] = hub.FacetCount{Value: r.of.values[c.value].text[1:], Count: int(c.count)}
	}
	return list
}
