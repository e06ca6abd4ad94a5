package index

import (
	"encoding/binary"
	"slices"
	"strings"
)

// codec writes text with fewer bytes: one for each of up to 255 frequent
// pieces of up to eight bytes, which it learnt from other texts of the index.
// Any part of a text can be read without the rest of the index, which no
// compressor of whole blocks allows, and reading takes a nanosecond a byte.
// After P. Boncz, T. Neumann, V. Leis: FSST, 2020.
type codec struct {
	pieces [escape]piece // those of one slot beside each other, long before short
	start  [pieceSlots + 1]uint8
	single [256]uint8 // code of each byte, escape if it has none
}

type piece struct {
	val  uint64 // the bytes, first one lowest
	mask uint64 // ones where it has bytes
	len  uint8
}

const (
	escape     = 255 // the next byte stands for itself
	maxPiece   = 8
	pieceSlots = 1 << 11
)

func pieceSlot(w uint64) int { return int(uint16(w) * 0x9E37 >> 5) }

// word returns the first eight bytes of s as a number, with zeros behind.
func word(s []byte) uint64 {
	if len(s) >= 8 {
		return binary.LittleEndian.Uint64(s)
	}
	var b [8]byte
	copy(b[:], s)
	return binary.LittleEndian.Uint64(b[:])
}

// newCodec returns the codec of at most 255 pieces.
func newCodec(pieces []string) *codec {
	c := new(codec)
	for i := range c.single {
		c.single[i] = escape
	}
	slices.SortFunc(pieces, func(a, b string) int {
		slot := func(s string) int {
			if len(s) == 1 {
				return pieceSlots
			}
			return pieceSlot(word([]byte(s)))
		}
		if d := slot(a) - slot(b); d != 0 {
			return d
		}
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var counts [pieceSlots]uint8
	for i, s := range pieces {
		c.pieces[i] = piece{word([]byte(s)), 1<<(8*len(s)) - 1, uint8(len(s))}
		if len(s) == 1 {
			c.single[s[0]] = uint8(i)
		} else {
			counts[pieceSlot(c.pieces[i].val)]++
		}
	}
	for i, n := range counts {
		c.start[i+1] = c.start[i] + n
	}
	return c
}

// match returns the code for the beginning of text and the bytes it stands
// for; escape for a byte without one.
func (c *codec) match(text []byte) (code uint8, n int) {
	if len(text) > 1 {
		w := word(text)
		slot := pieceSlot(w)
		for i := c.start[slot]; i < c.start[slot+1]; i++ {
			p := &c.pieces[i]
			if int(p.len) <= len(text) && (w^p.val)&p.mask == 0 {
				return i, int(p.len)
			}
		}
	}
	return c.single[text[0]], 1
}

func (c *codec) encode(dst, text []byte) []byte {
	for len(text) >= maxPiece { // as below, with no end to heed
		w := binary.LittleEndian.Uint64(text)
		slot := pieceSlot(w)
		code, n := c.single[byte(w)], uint8(1)
		for i, end := c.start[slot], c.start[slot+1]; i < end; i++ {
			if p := &c.pieces[i]; (w^p.val)&p.mask == 0 {
				code, n = i, p.len
				break
			}
		}
		dst = append(dst, code)
		if code == escape {
			dst = append(dst, text[0])
		}
		text = text[n:]
	}
	for len(text) > 0 {
		code, n := c.match(text)
		dst = append(dst, code)
		if code == escape {
			dst = append(dst, text[0])
		}
		text = text[n:]
	}
	return dst
}

func (c *codec) decode(dst []byte, packed string) []byte {
	for i := 0; i < len(packed); i++ {
		if packed[i] == escape {
			i++
			dst = append(dst, packed[i])
			continue
		}
		p := &c.pieces[packed[i]]
		dst = binary.LittleEndian.AppendUint64(dst, p.val)
		dst = dst[:len(dst)-maxPiece+int(p.len)]
	}
	return dst
}

// learnRounds is how often pieces are joined to longer ones.
const learnRounds = 5

// learn returns a codec for texts like the sample. In each round the pieces,
// and every two that follow each other as one, compete for the places.
func learn(sample []byte) *codec {
	c := newCodec(nil)
	for range learnRounds {
		counts := make(map[string]int)
		last := ""
		for rest := sample; len(rest) > 0; {
			_, n := c.match(rest)
			s := string(rest[:n])
			counts[s]++
			if n > 1 {
				counts[s[:1]]++
			}
			if last != "" && len(last)+n <= maxPiece {
				counts[last+s]++
			}
			last, rest = s, rest[n:]
		}
		pieces := make([]string, 0, len(counts))
		for s, n := range counts {
			if n > 1 {
				pieces = append(pieces, s)
			}
		}
		slices.SortFunc(pieces, func(a, b string) int {
			if d := counts[b]*len(b) - counts[a]*len(a); d != 0 {
				return d
			}
			return strings.Compare(a, b)
		})
		c = newCodec(pieces[:min(len(pieces), escape)])
	}
	return c
}
