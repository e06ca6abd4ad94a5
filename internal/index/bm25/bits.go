package bm25

import "math/bits"

// Bits is a set of document ids. Operations on two sets accept different lengths; missing words count as zero.
type Bits []uint64

// Has reports whether id is in the set. Any id that is not negative is allowed.
func (b Bits) Has(id int) bool {
	w := uint(id) >> 6
	return w < uint(len(b)) && b[w]&(1<<(uint(id)&63)) != 0
}

// Add adds id to the set, which grows as needed.
func (b *Bits) Add(id int) {
	for id>>6 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[id>>6] |= 1 << (uint(id) & 63)
}

// Drop removes id from the set; an id that is not in the set does nothing.
func (b Bits) Drop(id int) {
	if id>>6 < len(b) {
		b[id>>6] &^= 1 << (uint(id) & 63)
	}
}

// Count returns the number of ids. It reads the whole set.
func (b Bits) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// CountAnd returns the size of the intersection with o, without building it.
func (b Bits) CountAnd(o Bits) int {
	if len(o) < len(b) {
		b, o = o, b
	}
	n := 0
	for len(b) >= 4 && len(o) >= 4 {
		n += bits.OnesCount64(b[0]&o[0]) + bits.OnesCount64(b[1]&o[1]) + bits.OnesCount64(b[2]&o[2]) + bits.OnesCount64(b[3]&o[3])
		b, o = b[4:], o[4:]
	}
	for i, w := range b {
		n += bits.OnesCount64(w & o[i])
	}
	return n
}

// And removes all ids that are not in o.
func (b Bits) And(o Bits) {
	k := min(len(b), len(o))
	for i, w := range o[:k] {
		b[i] &= w
	}
	clear(b[k:])
}

// AndNot removes all ids that are in o.
func (b Bits) AndNot(o Bits) {
	for i, w := range o[:min(len(b), len(o))] {
		b[i] &^= w
	}
}

// Each calls yield with the ids in ascending order until yield returns false. yield may drop the current id.
func (b Bits) Each(yield func(id int) bool) {
	for i, w := range b {
		for w != 0 {
			if !yield(i<<6 + bits.TrailingZeros64(w)) {
				return
			}
			w &= w - 1
		}
	}
}
