package index

import (
	"slices"

	"agentsite/internal/index/bm25"
)

// set holds document ids: few as a sorted list, many as bits, whichever is
// smaller. The zero value is empty.
type set struct {
	n    int
	list []uint32
	bits bm25.Bits // when not nil, list is unused
}

const (
	minBits    = 64 // a smaller set is always a list
	bitsFactor = 32 // a list entry takes as much as the bits of 32 documents
)

// add puts id in, which may be there already, in an index of that many
// documents, and reports whether it was new.
func (s *set) add(id uint32, docs int) bool {
	if s.bits != nil {
		if s.bits.Has(int(id)) {
			return false
		}
		s.bits.Add(int(id))
		s.n++
		return true
	}
	i, found := slices.BinarySearch(s.list, id)
	if found {
		return false
	}
	s.list = slices.Insert(s.list, i, id)
	s.n++
	if s.n > minBits && s.n*bitsFactor > docs {
		bits := make(bm25.Bits, (docs+63)/64)
		s.addTo(&bits)
		s.bits, s.list = bits, nil
	}
	return true
}

func (s *set) remove(id uint32, docs int) bool {
	if s.bits != nil {
		if !s.bits.Has(int(id)) {
			return false
		}
		s.bits.Drop(int(id))
		s.n--
		if s.n < minBits/2 || s.n*bitsFactor*4 < docs { // well below the change to bits
			list := make([]uint32, 0, s.n)
			s.bits.Each(func(id int) bool { list = append(list, uint32(id)); return true })
			s.list, s.bits = list, nil
		}
		return true
	}
	i, found := slices.BinarySearch(s.list, id)
	if found {
		s.list = slices.Delete(s.list, i, i+1)
		s.n--
	}
	return found
}

// countIn returns how many of the set are in b.
func (s *set) countIn(b bm25.Bits) int {
	if s.bits != nil {
		return s.bits.CountAnd(b)
	}
	n := 0
	for _, id := range s.list {
		if b.Has(int(id)) {
			n++
		}
	}
	return n
}

// cost is the work of countIn, in words of bits; a look-up takes as long as
// counting five.
func (s *set) cost() int {
	if s.bits != nil {
		return len(s.bits)
	}
	return 5 * len(s.list)
}

// addTo puts the set into b.
func (s *set) addTo(b *bm25.Bits) {
	if s.bits != nil {
		for len(*b) < len(s.bits) {
			*b = append(*b, 0)
		}
		for i, w := range s.bits {
			(*b)[i] |= w
		}
		return
	}
	for _, id := range s.list {
		b.Add(int(id))
	}
}
