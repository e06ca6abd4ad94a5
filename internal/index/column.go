package index

import (
	"encoding/binary"
	"slices"

	"agentsite/internal/index/bm25"
)

// column holds the facet values of 64 documents that follow each other by
// number, as many as a word of bits: counting goes through few places of
// memory, in their order. Values that people invent are listed document by
// document, the frequent ones first: those of a few documents cannot be among
// the most frequent of many matches. Of the other facets a document has a
// profile. The zero value is of documents without values.
type column struct {
	values   []uint32
	splits   [columnSize]uint16 // where the frequent values of each document end
	ends     [columnSize]uint16 // where all of them end
	profiles [columnSize]uint32
}

const columnSize = 64

func (c *column) bounds(i uint32) (from, to uint16) {
	if i > 0 {
		from = c.ends[i-1]
	}
	return from, c.ends[i]
}

// of returns the invented values of the i-th document; they change with set.
func (c *column) of(i uint32) []uint32 {
	from, to := c.bounds(i)
	return c.values[from:to]
}

// part returns some of them.
func (c *column) part(i uint32, part part) []uint32 {
	from, to := c.bounds(i)
	switch part {
	case frequent:
		to = c.splits[i]
	case rare:
		from = c.splits[i]
	}
	return c.values[from:to]
}

// part says which of the invented values of a document are meant.
type part uint8

const (
	all part = iota
	frequent
	rare
)

// sort puts the frequent values of the i-th document first.
func (c *column) sort(i uint32, f *facets) {
	from, to := c.bounds(i)
	split := from
	for k := from; k < to; k++ {
		if f.values[c.values[k]].frequent {
			c.values[k], c.values[split] = c.values[split], c.values[k]
			split++
		}
	}
	c.splits[i] = split
}

// set replaces the invented values of the i-th document, which must be sorted
// then.
func (c *column) set(i uint32, list []uint32) {
	from, to := c.bounds(i)
	if n := len(c.values) + len(list); n > cap(c.values) {
		c.values = append(make([]uint32, 0, n+n/8), c.values...)
	}
	c.values = slices.Replace(c.values, int(from), int(to), list...)
	if more := uint16(len(list)) - (to - from); more != 0 {
		c.ends[i] += more
		for k := i + 1; k < columnSize; k++ {
			c.splits[k] += more
			c.ends[k] += more
		}
	}
}

// fit gives back the room for growth.
func (c *column) fit() { c.values = bm25.Fitted(c.values) }

// A profile is what many documents have alike: one value or more of every
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
