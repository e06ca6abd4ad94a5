package bm25

import (
	"bytes"
	"hash/maphash"
)

// Lexicon assigns numbers 0, 1, 2 … to distinct texts in order of first appearance. A Segment uses it to
// look up each distinct word in the large index only once: the table of a Lexicon is small enough for
// the processor's cache. The zero value is empty. It is not safe for concurrent use.
type Lexicon struct {
	slots  []uint64 // upper half of the hash and number+1; 0 is a free slot
	hashes []uint64 // HashOf of each text, by number
	ends   []uint32 // end of each text in text, by number
	text   []byte
}

// Len returns the number of distinct texts.
func (l *Lexicon) Len() int { return len(l.hashes) }

// Reset removes all texts and keeps the memory for reuse.
func (l *Lexicon) Reset() {
	clear(l.slots)
	l.hashes, l.ends, l.text = l.hashes[:0], l.ends[:0], l.text[:0]
}

// textBytes returns the text with a number. The slice is valid until the next call of Number.
func (l *Lexicon) textBytes(n uint32) []byte {
	from := uint32(0)
	if n > 0 {
		from = l.ends[n-1]
	}
	return l.text[from:l.ends[n]]
}

// Number returns the number of a text and adds a copy of the text if it is new.
func (l *Lexicon) Number(text []byte) uint32 {
	if len(l.hashes)*2 >= len(l.slots) {
		l.growTable()
	}
	h := maphash.Bytes(tableSeed, text)
	mask := uint64(len(l.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := l.slots[i]
		if s == 0 {
			n := uint32(len(l.hashes))
			l.slots[i] = h&^(1<<32-1) | uint64(n+1)
			l.hashes = append(l.hashes, h)
			l.text = append(l.text, text...)
			l.ends = append(l.ends, uint32(len(l.text)))
			return n
		}
		if (s^h)>>32 == 0 {
			if n := uint32(s) - 1; bytes.Equal(l.textBytes(n), text) {
				return n
			}
		}
	}
}

func (l *Lexicon) growTable() {
	l.slots = make([]uint64, max(1024, 2*len(l.slots)))
	mask := uint64(len(l.slots) - 1)
	for n, h := range l.hashes {
		i := h & mask
		for l.slots[i] != 0 {
			i = (i + 1) & mask
		}
		l.slots[i] = h&^(1<<32-1) | uint64(n+1)
	}
}

// Texts appends all texts to dst, in the order of their numbers. The strings stay valid after Reset.
func (l *Lexicon) Texts(dst []string) []string {
	all := string(l.text)
	from := uint32(0)
	for _, end := range l.ends {
		dst = append(dst, all[from:end])
		from = end
	}
	return dst
}

// dense assigns numbers 0, 1, 2 … to distinct keys in order of first appearance, as Lexicon does for texts.
type dense struct {
	keys  []uint64
	slots []uint32 // number+1; 0 is a free slot
}

func (d *dense) reset() {
	d.keys = d.keys[:0]
	clear(d.slots)
}

func (d *dense) numberOf(key uint64) uint32 {
	if len(d.keys)*2 >= len(d.slots) {
		d.slots = make([]uint32, max(1024, 2*len(d.slots)))
		for n, k := range d.keys {
			i := d.homeSlot(k)
			for d.slots[i] != 0 {
				i = (i + 1) & uint64(len(d.slots)-1)
			}
			d.slots[i] = uint32(n + 1)
		}
	}
	for i := d.homeSlot(key); ; i = (i + 1) & uint64(len(d.slots)-1) {
		s := d.slots[i]
		if s == 0 {
			d.keys = append(d.keys, key)
			d.slots[i] = uint32(len(d.keys))
			return uint32(len(d.keys) - 1)
		}
		if d.keys[s-1] == key {
			return s - 1
		}
	}
}

func (d *dense) homeSlot(key uint64) uint64 {
	return (key * 0x9E3779B97F4A7C15 >> 32) & uint64(len(d.slots)-1)
}
