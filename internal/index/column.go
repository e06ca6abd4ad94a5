package index

import (
	"encoding/binary"
	"iter"
	"slices"

	"agentsite/internal/index/bm25"
)

// column holds the facet values of 64 documents that follow each other by
// number, as many as a word of bits: counting goes through few places of
// memory, in their order. Values that people invent are listed document by
// document: the frequent ones by their short numbers and apart, because all
// counting needs them, and the others by how rarely they are needed. Of the
// other facets a document has a profile, but for its portal: with that there
// would be almost as many profiles as documents. New ones come from newColumn.
type column struct {
	slots  [columnSize][slotsEach]uint16 // frequent values, see slots
	values []uint32                      // the others, of each document part by part
	has    [parts]uint64                 // the documents with values of a part, as bits
	marks  [columnSize + 1]marks
	stands [columnSize]standing
}

// standing is what else a document has: its profile, and the number of its first
// portal. They are beside each other because both are counted at once.
type standing struct{ profile, portal uint32 }

// noPortal stands for the portal of no document.
const noPortal = 1<<32 - 1

// slotsEach is how many frequent values of a document stand in a place of
// their own: most have fewer. Where there is none, at k, slot k is named, which
// means nothing: all are counted without asking.
const slotsEach = 4

// marks are where the parts of the values of a document begin; the last one
// ends where those of the next document begin.
type marks [parts]uint16

const columnSize = 64

// newColumn is of documents without values.
func newColumn() (c column) {
	for i := range c.slots {
		c.slots[i], c.stands[i].portal = noSlots, noPortal
	}
	return c
}

// part says which of the invented values of a document are meant that have no
// place of their own: frequent ones beyond slotsEach, by their slots, and the
// others, of which those of few documents cannot be among the most frequent of
// many matches.
type part uint8

const (
	spare part = iota
	sharedTags
	sharedOthers
	single // that one document had so far
	parts
)

func (c *column) part(i uint32, p part) []uint32 {
	from, to := c.marks[i][p], c.marks[i+1][0]
	if p+1 < parts {
		to = c.marks[i][p+1]
	}
	return c.values[from:to]
}

// frequent yields the slots of the i-th document.
func (c *column) frequent(i uint32) iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		for _, slot := range c.slots[i] {
			if slot >= slotsEach && !yield(slot) {
				return
			}
		}
		for _, slot := range c.part(i, spare) {
			if !yield(uint16(slot)) {
				return
			}
		}
	}
}

// of appends the invented values of the i-th document to dst. It may be called
// by many at once who only read: it changes nothing else.
func (c *column) of(dst []uint32, i uint32, f *facets) []uint32 {
	for slot := range c.frequent(i) {
		dst = append(dst, f.slot(slot).value)
	}
	return append(dst, c.values[c.marks[i][spare+1]:c.marks[i+1][0]]...)
}

// sort puts each value of the i-th document where it belongs.
func (c *column) sort(i uint32, f *facets) {
	f.ids = c.of(f.ids[:0], i, f)
	slots, values, begin := f.arrange(f.ids)
	c.put(i, slots, values, begin)
}

// arrange returns the slots of the frequent values among ids that have fixed
// places, and the others part by part, in memory that the next call
// overwrites, with where each part begins.
func (f *facets) arrange(ids []uint32) (slots [slotsEach]uint16, values []uint32, begin [parts]int) {
	values = f.valueBuf[:0]
	slots, placed := noSlots, 0
	for _, v := range ids {
		switch val := &f.values[v]; {
		case val.tier != frequent:
		case placed < slotsEach:
			slots[placed] = val.slot
			placed++
		default:
			values = append(values, uint32(val.slot))
		}
	}
	for p := spare + 1; p < parts; p++ {
		begin[p] = len(values)
		for _, v := range ids {
			if f.values[v].part() == p {
				values = append(values, v)
			}
		}
	}
	f.valueBuf = values
	return slots, values, begin
}

// noSlots are those of a document without frequent values.
var noSlots = [slotsEach]uint16{0, 1, 2, 3}

// set replaces the invented values of the i-th document, which must be sorted
// then.
func (c *column) set(i uint32, list []uint32) {
	c.put(i, noSlots, list, [parts]int{})
}

// put replaces all values of the i-th document; begin is where each part of
// the new ones begins.
func (c *column) put(i uint32, slots [slotsEach]uint16, values []uint32, begin [parts]int) {
	c.slots[i] = slots
	at, next := &c.marks[i], &c.marks[i+1]
	more := len(values) - int(next[0]-at[0])
	c.values = slices.Replace(room(c.values, more), int(at[0]), int(next[0]), values...)
	for p, n := range begin {
		at[p] = at[0] + uint16(n)
	}
	if more != 0 {
		for k := i + 1; k <= columnSize; k++ {
			m := &c.marks[k]
			for p := range m {
				m[p] += uint16(more)
			}
		}
	}
	for p := range parts {
		c.has[p] &^= 1 << i
		if len(c.part(i, p)) > 0 {
			c.has[p] |= 1 << i
		}
	}
}

// room makes room for n more by an eighth instead of doubling.
func room[E any](list []E, n int) []E {
	if n += len(list); n > cap(list) {
		list = append(make([]E, 0, n+n/8), list...)
	}
	return list
}

// fit gives back the room for growth.
func (c *column) fit() { c.values = bm25.Fitted(c.values) }

// A profile is what many documents have alike: one value or more of nearly every
// facet but those that people invent. It lives as long as a document has it.
type profile struct {
	values []uint32
	docs   int
}

// profiles is the dictionary of the profiles; id 0 is that without values.
type profiles struct {
	list   []profile
	byKey  map[string]uint32
	free   []uint32
	keyBuf []byte
}

func newProfiles() *profiles {
	return &profiles{list: make([]profile, 1), byKey: make(map[string]uint32)}
}

func (p *profiles) key(values []uint32) []byte {
	key := p.keyBuf[:0]
	for _, v := range values {
		key = binary.LittleEndian.AppendUint32(key, v)
	}
	p.keyBuf = key
	return key
}

// take returns the profile of those values for one more document.
func (p *profiles) take(values []uint32) uint32 {
	if len(values) == 0 {
		return 0
	}
	key := p.key(values)
	id, known := p.byKey[string(key)]
	if !known {
		if n := len(p.free); n > 0 {
			id, p.free = p.free[n-1], p.free[:n-1]
		} else {
			id = uint32(len(p.list))
			p.list = append(p.list, profile{})
		}
		p.list[id].values = slices.Clone(values)
		p.byKey[string(key)] = id
	}
	p.list[id].docs++
	return id
}

// drop is take, reversed.
func (p *profiles) drop(id uint32) {
	if id == 0 {
		return
	}
	o := &p.list[id]
	if o.docs--; o.docs == 0 {
		delete(p.byKey, string(p.key(o.values)))
		*o = profile{}
		p.free = append(p.free, id)
	}
}

// push is set and sort for a document behind all that have values; pushed must
// follow.
func (c *column) push(i uint32, list []uint32, f *facets) {
	slots, values, begin := f.arrange(list)
	c.slots[i] = slots
	for p, n := range begin {
		c.marks[i][p] = uint16(len(c.values) + n)
	}
	c.values = append(c.values, values...)
	for p := range parts {
		c.marks[i+1][p] = uint16(len(c.values))
	}
	for p := range parts {
		if len(c.part(i, p)) > 0 {
			c.has[p] |= 1 << i
		}
	}
}

// pushed says that the i-th document was the last one that was pushed.
func (c *column) pushed(i uint32) {
	for k := i + 2; k <= columnSize; k++ {
		c.marks[k] = c.marks[i+1]
	}
}
