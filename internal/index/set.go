package index

import (
	"slices"

	"agentsite/internal/index/bm25"
)

// set holds document ids: one in place, few as a sorted list, many as bits,
// whichever is smaller. The zero value is empty.
type set struct {
	n    uint32
	one  uint32 // when n is 1
	many *manyIDs
}

type manyIDs struct {
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
	switch s.n {
	case 0:
		s.n, s.one = 1, id
		return true
	case 1:
		if s.one == id {
			return false
		}
		s.many = &manyIDs{list: []uint32{min(s.one, id), max(s.one, id)}}
		s.n = 2
		return true
	}
	m := s.many
	if m.bits != nil {
		if m.bits.Has(int(id)) {
			return false
		}
		m.bits.Add(int(id))
		s.n++
		return true
	}
	i, found := len(m.list), false
	if id <= m.list[i-1] {
		i, found = slices.BinarySearch(m.list, id)
	}
	if found {
		return false
	}
	if n := len(m.list); n == cap(m.list) {
		m.list = append(make([]uint32, 0, n+n/4+2), m.list...)
	}
	m.list = slices.Insert(m.list, i, id)
	s.n++
	if s.n > minBits && int(s.n)*bitsFactor > docs {
		bits := make(bm25.Bits, (docs+63)/64)
		s.addTo(&bits)
		m.bits, m.list = bits, nil
	}
	return true
}

func (s *set) remove(id uint32, docs int) bool {
	if s.n < 2 {
		if s.n == 0 || s.one != id {
			return false
		}
		*s = set{}
		return true
	}
	m := s.many
	if m.bits != nil {
		if !m.bits.Has(int(id)) {
			return false
		}
		m.bits.Drop(int(id))
		s.n--
		if s.n < minBits/2 || int(s.n)*bitsFactor*4 < docs { // well below the change to bits
			list := make([]uint32, 0, s.n)
			m.bits.Each(func(id int) bool { list = append(list, uint32(id)); return true })
			m.list, m.bits = list, nil
		}
		return true
	}
	i, found := slices.BinarySearch(m.list, id)
	if !found {
		return false
	}
	m.list = slices.Delete(m.list, i, i+1)
	if s.n--; s.n == 1 {
		s.one, s.many = m.list[0], nil
	}
	return true
}

// each calls yield with all of the set.
func (s *set) each(yield func(id uint32)) {
	switch {
	case s.n == 1:
		yield(s.one)
	case s.n > 1 && s.many.bits != nil:
		s.many.bits.Each(func(id int) bool { yield(uint32(id)); return true })
	case s.n > 1:
		for _, id := range s.many.list {
			yield(id)
		}
	}
}

// countIn returns how many of the set are in b; it may give up and return 0
// where they are fewer than least.
func (s *set) countIn(b bm25.Bits, least int) int {
	n := 0
	switch {
	case s.n == 1:
		if b.Has(int(s.one)) {
			n = 1
		}
	case s.n > 1 && s.many.bits != nil:
		return s.many.bits.CountAnd(b)
	case s.n > 1:
		list := s.many.list
		for end := uint32(len(b)) << 6; len(list) > 0 && list[len(list)-1] >= end; {
			list = list[:len(list)-1] // b ends before
		}
		for len(list) > 0 && n+len(list) >= least {
			// One cannot give up before so many are missing.
			part := list[:min(len(list), max(32, n+len(list)-least+1))]
			list = list[len(part):]
			sum := uint64(0)
			for _, id := range part {
				sum += b[id>>6] >> (id & 63) & 1
			}
			n += int(sum)
		}
		if len(list) > 0 {
			return 0
		}
	}
	return n
}

// cost is the work of countIn, in words of bits; a look-up takes as long as
// counting one.
func (s *set) cost() int {
	if s.n > 1 && s.many.bits != nil {
		return costPerValue + len(s.many.bits)
	}
	return costPerValue + int(s.n)
}

// addTo puts the set into b.
func (s *set) addTo(b *bm25.Bits) {
	switch {
	case s.n == 1:
		b.Add(int(s.one))
	case s.n > 1 && s.many.bits != nil:
		for len(*b) < len(s.many.bits) {
			*b = append(*b, 0)
		}
		for i, w := range s.many.bits {
			(*b)[i] |= w
		}
	case s.n > 1:
		for _, id := range s.many.list {
			b.Add(int(id))
		}
	}
}

// addRun puts ids in that are all greater than those of the set, given by what
// they are beyond first, in an index of that many documents.
func (s *set) addRun(first uint32, run []uint32, docs int) {
	if s.n == 0 {
		s.n, s.one = 1, first+run[0]
		run = run[1:]
	}
	if len(run) == 0 {
		return
	}
	if s.n == 1 {
		s.many = &manyIDs{list: append(make([]uint32, 0, 1+len(run)), s.one)}
	}
	m := s.many
	n := len(m.list) + len(run)
	s.n += uint32(len(run))
	if m.bits == nil && s.n > minBits && int(s.n)*bitsFactor > docs {
		bits := make(bm25.Bits, (docs+63)/64)
		for _, id := range m.list {
			bits.Add(int(id))
		}
		m.bits, m.list = bits, nil
	}
	if m.bits != nil {
		for _, id := range run {
			m.bits.Add(int(first + id))
		}
		return
	}
	if n > cap(m.list) {
		m.list = append(make([]uint32, 0, n+n/8), m.list...)
	}
	for _, id := range run {
		m.list = append(m.list, first+id)
	}
}
