// Package vector keeps vectors of documents in memory and finds the documents whose vectors point in nearly the
// direction of a query's. A document has up to MaxRows vectors; the nearest one counts, so that no document gains
// by having many. It knows neither texts nor models.
//
// A vector is rotated, so that all of its dimensions matter alike, and kept twice: as one bit a dimension, which
// a search compares with all others, and as one byte a dimension, from which the cosines of the best few hundred
// are computed. The rotation is the same in every process.
//
// A Store does not lock: any number of goroutines may read it while none writes. Rows are made by NewRow, which
// needs no lock.
package vector

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"
)

// MaxRows is the number of vectors of one document. Further ones are ignored.
const MaxRows = 16

// rotationSeed makes the signs of the rotation.
const rotationSeed = 0x9E3779B97F4A7C15

// Row is a vector in the form in which a Store keeps it. The zero Row is a text without a meaning: it is never
// found.
type Row struct {
	code  []uint64
	bytes []int8
	scale float32 // the value of 1 in bytes
}

// Known reports whether the row has a direction.
func (r Row) Known() bool { return r.scale > 0 }

// Rotate returns a vector of the same length in other axes. The number of its dimensions is the next power of
// two, at least 64.
func Rotate(v []float32) []float32 {
	n := rotatedDims(len(v))
	out := make([]float32, n)
	copy(out, v)
	signs := signsOf(n)
	shrink := float32(1 / math.Sqrt(float64(n)))
	for ; len(signs) >= n; signs = signs[n:] { // a second time, so that no axis is kept
		for i, sign := range signs[:n] {
			out[i] *= sign
		}
		transform(out)
		for i := range out {
			out[i] *= shrink
		}
	}
	return out
}

// transform makes a Hadamard transform of a vector with a power of two as its size, at least 4.
func transform(out []float32) {
	for v := out; len(v) >= 4; v = v[4:] { // the steps of distance 1 and 2
		a, b, c, d := v[0]+v[1], v[0]-v[1], v[2]+v[3], v[2]-v[3]
		v[0], v[1], v[2], v[3] = a+c, b+d, a-c, b-d
	}
	for h := 4; h < len(out); h *= 2 {
		for i := 0; i < len(out); i += 2 * h {
			low, high := out[i:i+h], out[i+h:i+2*h]
			high = high[:len(low)]
			for k, a := range low {
				b := high[k]
				low[k], high[k] = a+b, a-b
			}
		}
	}
}

// usualDims is the number of dimensions of which the signs are kept.
const usualDims = 256

var usualSigns = sync.OnceValue(func() []float32 { return makeSigns(usualDims) })

// signsOf returns the signs of both turns of a rotation of n dimensions, each 1 or -1.
func signsOf(n int) []float32 {
	if n == usualDims {
		return usualSigns()
	}
	return makeSigns(n)
}

func makeSigns(n int) []float32 {
	list := make([]float32, 2*n)
	signs := uint64(rotationSeed)
	for i := range list {
		signs ^= signs << 13
		signs ^= signs >> 7
		signs ^= signs << 17
		list[i] = 1
		if signs&1 == 0 {
			list[i] = -1
		}
	}
	return list
}

// NewRow returns the row of a vector of length 1; of nil it is the zero Row.
func NewRow(v []float32) Row {
	most := float32(0)
	if v != nil {
		v = Rotate(v)
	}
	for _, f := range v {
		most = max(most, f, -f)
	}
	if !(most > 0) || math.IsInf(float64(most), 0) {
		return Row{}
	}
	r := Row{code: codeOf(v), bytes: make([]int8, len(v)), scale: most / math.MaxInt8}
	for i, f := range v {
		r.bytes[i] = int8(math.Round(float64(f / r.scale)))
	}
	return r
}

// codeOf returns the signs of a rotated vector.
func codeOf(v []float32) []uint64 {
	code := make([]uint64, len(v)/64)
	for i, f := range v {
		if f > 0 {
			code[i/64] |= 1 << (i % 64)
		}
	}
	return code
}

// chunkRows is the number of rows that are allocated together.
const chunkRows = 512

// none is the row after the last one of a document, and the document of a free row.
const none = math.MaxUint32

// chunk holds rows without their codes: of row i, dims of the bytes at i times their number.
type chunk struct {
	bytes  []int8
	scales []float32
	docs   []uint32 // document of each row
	next   []uint32 // next row of the same document, or none
	parts  []uint8  // number of the row in its document
}

// Store keeps the rows of documents by their numbers. Create it with New.
type Store struct {
	dims        int // after rotation
	gain, shift float32
	chunks      []*chunk
	codes       []uint64 // of all rows, in one array, because a search reads all of them and memory is read ahead
	first       []uint32 // by document: its first row, or none
	free        []uint32
	rows        int // rows in use
}

// New returns an empty store for vectors with a number of dimensions.
func New(dims int) *Store { return NewScaled(dims, 1, 0) }

// NewScaled is New with cosines on another scale: a cosine c is gain*c + shift wherever the store has or takes one.
// gain must be positive.
func NewScaled(dims int, gain, shift float32) *Store {
	return &Store{dims: rotatedDims(dims), gain: gain, shift: shift}
}

// rotatedDims returns the number of dimensions of a rotated vector.
func rotatedDims(dims int) int {
	n := 64
	for n < dims {
		n *= 2
	}
	return n
}

// Rows returns the number of vectors.
func (s *Store) Rows() int { return s.rows }

// Has reports whether a document has vectors.
func (s *Store) Has(doc uint32) bool { return int(doc) < len(s.first) && s.first[doc] != none }

// Put replaces the vectors of a document. Rows of another number of dimensions, and zero rows, are left out, but
// count as parts. Memory grows with the greatest document number.
func (s *Store) Put(doc uint32, list []Row) {
	s.Remove(doc)
	for int(doc) >= len(s.first) {
		s.first = append(s.first, none)
	}
	for part := min(len(list), MaxRows) - 1; part >= 0; part-- {
		r := &list[part]
		if !r.Known() || len(r.bytes) != s.dims {
			continue
		}
		row := s.newRow()
		c, i := s.chunks[row/chunkRows], int(row%chunkRows)
		copy(s.codes[int(row)*s.words():], r.code)
		copy(c.bytes[i*s.dims:], r.bytes)
		c.scales[i], c.docs[i], c.parts[i], c.next[i] = r.scale, doc, uint8(part), s.first[doc]
		s.first[doc] = row
		s.rows++
	}
}

// Remove deletes the vectors of a document; a document without vectors does nothing.
func (s *Store) Remove(doc uint32) {
	if !s.Has(doc) {
		return
	}
	for row := s.first[doc]; row != none; {
		c, i := s.chunks[row/chunkRows], row%chunkRows
		c.docs[i] = none
		s.free = append(s.free, row)
		s.rows--
		row = c.next[i]
	}
	s.first[doc] = none
}

func (s *Store) words() int { return s.dims / 64 }

// newRow returns the number of a free row.
func (s *Store) newRow() uint32 {
	if len(s.free) == 0 {
		first := uint32(len(s.chunks) * chunkRows)
		c := &chunk{
			bytes: make([]int8, chunkRows*s.dims), scales: make([]float32, chunkRows), docs: make([]uint32, chunkRows),
			next: make([]uint32, chunkRows), parts: make([]uint8, chunkRows),
		}
		for i := range c.docs {
			c.docs[i] = none
		}
		s.chunks = append(s.chunks, c)
		s.codes = append(s.codes, make([]uint64, chunkRows*s.words())...)
		for i := uint32(chunkRows); i > 0; i-- {
			s.free = append(s.free, first+i-1)
		}
	}
	row := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return row
}

// Near is a document near a query: the part of the nearest of its vectors, and the cosine.
type Near struct {
	Doc    uint32
	Part   int
	Cosine float32
}

// Query is a vector that is searched for. Create it with NewQuery.
type Query struct {
	exact []float32
	code  []uint64
}

// NewQuery returns the query of a vector of length 1.
func NewQuery(v []float32) *Query {
	q := &Query{exact: Rotate(v)}
	q.code = codeOf(q.exact)
	return q
}

// Scratch holds the buffers of a search, to be reused.
type Scratch struct {
	rows []rowAt
	near []Near
}

// rowAt is a row and the number of bits in which its code differs from a query's.
type rowAt struct {
	row      uint32
	distance uint16
}

const (
	// rankedFor: of the rows with the nearest codes this many are ranked by their cosines, for each wanted document,
	// because several rows may be of one document and codes are coarse.
	rankedFor = 4
	// maxRanked bounds the rows that are ranked by one search, however many are equally near.
	maxRanked = 4096
)

// Reach decides for each row by itself whether it is near a query, so that other rows do not change the answer.
type Reach struct {
	Distance int     // greatest number of differing bits in the codes
	Cosine   float32 // least cosine
}

// Nearest returns the n documents with the greatest cosines, the greatest first, and those that are as near as the
// last. Within returns the same documents for reach. allowed is a set of documents as in bm25.Bits; nil allows all.
// The result is valid until b is used again.
func (s *Store) Nearest(q *Query, n int, allowed []uint64, b *Scratch) (near []Near, reach Reach) {
	reach = Reach{Distance: s.dims, Cosine: -2}
	b.near = b.near[:0]
	if s.rows == 0 || len(q.exact) != s.dims || n <= 0 {
		return b.near, reach
	}
	want := n * rankedFor
	if most := countUpTo(allowed, want+1); allowed != nil && most <= want {
		s.rankAll(q, allowed, b)
	} else {
		reach.Distance = s.findRows(q, want, s.dims, allowed, b)
		s.rankRows(q, reach.Distance, b)
	}
	near = bestOfDocs(b.near)
	if len(near) > n {
		reach.Cosine = near[n-1].Cosine
	}
	return cutBelow(near, reach.Cosine), reach
}

// Within returns the documents that are as near as reach says, the nearest first. The result is valid until b is used
// again.
func (s *Store) Within(q *Query, reach Reach, allowed []uint64, b *Scratch) []Near {
	b.near = b.near[:0]
	if s.rows == 0 || len(q.exact) != s.dims {
		return b.near
	}
	s.findRows(q, math.MaxInt, reach.Distance, allowed, b)
	s.rankRows(q, reach.Distance, b)
	return cutBelow(bestOfDocs(b.near), reach.Cosine)
}

// cutBelow returns the beginning of a sorted list with at least a cosine.
func cutBelow(list []Near, least float32) []Near {
	for i, n := range list {
		if n.Cosine < least {
			return list[:i]
		}
	}
	return list
}

// countUpTo returns the size of a set, or at least most if it is larger.
func countUpTo(set []uint64, most int) (n int) {
	for _, w := range set {
		if n += bits.OnesCount64(w); n >= most {
			break
		}
	}
	return n
}

// rankAll computes the cosine of every allowed document.
func (s *Store) rankAll(q *Query, allowed []uint64, b *Scratch) {
	for i, w := range allowed {
		for ; w != 0; w &= w - 1 {
			if near, ok := s.Best(q, uint32(i<<6+bits.TrailingZeros64(w))); ok {
				b.near = append(b.near, near)
			}
		}
	}
}

// nearRows collects rows and lowers the limit of their distances as soon as there are enough of them.
type nearRows struct {
	list   []rowAt
	counts []int // rows by distance
	limit  int   // rows beyond it are not wanted
	within int   // rows up to limit
	want   int
}

func (n *nearRows) addRow(row uint32, distance int) {
	n.list = append(n.list, rowAt{row, uint16(distance)})
	n.counts[distance]++
	for n.within++; n.within-n.counts[n.limit] >= n.want; n.limit-- {
		n.within -= n.counts[n.limit]
	}
}

// findRows sets b.rows to the rows up to a distance from the query, and some beyond it. It returns the least distance
// up to which there are want rows, or limit if there are fewer. Rows of documents that are not allowed are left out.
func (s *Store) findRows(q *Query, want, limit int, allowed []uint64, b *Scratch) int {
	n := nearRows{list: b.rows[:0], counts: make([]int, s.dims+1), limit: min(limit, s.dims), want: want}
	var distances [chunkRows]uint16
	for k, c := range s.chunks {
		codes := s.codes[k*chunkRows*s.words():]
		if s.words() == 4 {
			measureShort(&distances, codes, [4]uint64(q.code))
		} else {
			measureAny(&distances, codes, q.code)
		}
		first, limit := uint32(k*chunkRows), n.limit
		for i, d := range distances {
			if int(d) > limit {
				continue
			}
			if doc := c.docs[i]; doc != none && (allowed == nil || hasBit(allowed, doc)) {
				n.addRow(first+uint32(i), int(d))
				limit = n.limit
			}
		}
	}
	b.rows = n.list
	return n.limit
}

// measureShort stores the number of bits in which each of chunkRows codes differs from a query's, for codes of four
// words. It does nothing else, so that all that it needs stays in registers: it is most of the work of a search.
func measureShort(distances *[chunkRows]uint16, codes []uint64, q [4]uint64) {
	codes = codes[:4*chunkRows]
	for i := range distances {
		c := codes[4*i:][:4]
		distances[i] = uint16(bits.OnesCount64(c[0]^q[0]) + bits.OnesCount64(c[1]^q[1]) +
			bits.OnesCount64(c[2]^q[2]) + bits.OnesCount64(c[3]^q[3]))
	}
}

// measureAny is measureShort for codes of any number of words.
func measureAny(distances *[chunkRows]uint16, codes, q []uint64) {
	for i := range distances {
		d := 0
		for k, w := range codes[i*len(q):][:len(q)] {
			d += bits.OnesCount64(w ^ q[k])
		}
		distances[i] = uint16(d)
	}
}

// rankRows computes the cosines of the rows that were found up to a distance.
func (s *Store) rankRows(q *Query, limit int, b *Scratch) {
	for _, r := range b.rows {
		if int(r.distance) <= limit && len(b.near) < maxRanked {
			c, i := s.chunks[r.row/chunkRows], int(r.row%chunkRows)
			b.near = append(b.near, Near{c.docs[i], int(c.parts[i]), s.cosine(q, c, i)})
		}
	}
}

func hasBit(set []uint64, doc uint32) bool {
	return int(doc>>6) < len(set) && set[doc>>6]&(1<<(doc&63)) != 0
}

// Best returns the nearest vector of one document; false if it has none.
func (s *Store) Best(q *Query, doc uint32) (Near, bool) {
	if !s.Has(doc) || len(q.exact) != s.dims {
		return Near{}, false
	}
	best := Near{Doc: doc, Cosine: -2}
	for row := s.first[doc]; row != none; {
		c, i := s.chunks[row/chunkRows], int(row%chunkRows)
		if f := s.cosine(q, c, i); f > best.Cosine {
			best.Part, best.Cosine = int(c.parts[i]), f
		}
		row = c.next[i]
	}
	return best, true
}

// Part returns the cosine of one vector of a document; false if the document has no such vector.
func (s *Store) Part(q *Query, doc uint32, part int) (float32, bool) {
	if !s.Has(doc) || len(q.exact) != s.dims {
		return 0, false
	}
	for row := s.first[doc]; row != none; {
		c, i := s.chunks[row/chunkRows], int(row%chunkRows)
		if int(c.parts[i]) == part {
			return s.cosine(q, c, i), true
		}
		row = c.next[i]
	}
	return 0, false
}

func (s *Store) cosine(q *Query, c *chunk, i int) float32 {
	var a, b float32
	row := c.bytes[i*s.dims : (i+1)*s.dims]
	exact := q.exact[:len(row)]
	for k := 0; k+1 < len(row); k += 2 {
		a += exact[k] * float32(row[k])
		b += exact[k+1] * float32(row[k+1])
	}
	return (a+b)*c.scales[i]*s.gain + s.shift
}

// bestOfDocs keeps the nearest row of each document, the nearest document first.
func bestOfDocs(list []Near) []Near {
	slices.SortFunc(list, func(a, b Near) int {
		if a.Doc != b.Doc {
			return cmp.Compare(a.Doc, b.Doc)
		}
		return cmp.Compare(b.Cosine, a.Cosine)
	})
	list = slices.CompactFunc(list, func(a, b Near) bool { return a.Doc == b.Doc })
	slices.SortFunc(list, func(a, b Near) int {
		if a.Cosine != b.Cosine {
			return cmp.Compare(b.Cosine, a.Cosine)
		}
		return cmp.Compare(a.Doc, b.Doc)
	})
	return list
}

// Blank returns an empty store for the same vectors.
func (s *Store) Blank() *Store { return &Store{dims: s.dims, gain: s.gain, shift: s.shift} }
