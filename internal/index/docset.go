package index

import (
	"slices"

	"agentsite/internal/index/bm25"
)

// docSet is a set of document numbers: a small set is a sorted list, a large one a bit set. The zero
// value is the empty set.
type docSet struct {
	list []uint32
	many *manyDocs // nil while the set is a list
}

type manyDocs struct {
	bits  bm25.Bits
	count int
}

// A set with more than listMost documents becomes a bit set if a list would take more memory.
const (
	listMost   = 64
	bitsFactor = 32 // a list entry takes 32 bits, a bit set 1 bit for each document of the index
)

func (s *docSet) len() int {
	if s.many != nil {
		return s.many.count
	}
	return len(s.list)
}

// add inserts doc, which must not be in the set. docs is the number of documents in the index; it
// decides between list and bit set.
func (s *docSet) add(doc uint32, docs int) {
	if s.many != nil {
		s.many.bits.Add(int(doc))
		s.many.count++
		return
	}
	at := len(s.list)
	if at > 0 && doc < s.list[at-1] {
		at, _ = slices.BinarySearch(s.list, doc)
	}
	if at == cap(s.list) { // grow by a quarter: most values have few documents
		s.list = append(make([]uint32, 0, at+at/4+1), s.list...)
	}
	s.list = slices.Insert(s.list, at, doc)
	if n := len(s.list); n > listMost && n*bitsFactor > docs {
		bits := make(bm25.Bits, (docs+63)/64)
		s.addTo(&bits)
		s.list, s.many = nil, &manyDocs{bits: bits, count: n}
	}
}

// remove deletes doc, which must be in the set. docs is the number of documents in the index.
func (s *docSet) remove(doc uint32, docs int) {
	if s.many == nil {
		at, _ := slices.BinarySearch(s.list, doc)
		s.list = slices.Delete(s.list, at, at+1)
		return
	}
	s.many.bits.Drop(int(doc))
	s.many.count--
	// The threshold is well below that of add, so that a set near it does not switch back and forth.
	if n := s.many.count; n < listMost/2 || n*bitsFactor*4 < docs {
		list := make([]uint32, 0, n)
		for doc := range s.eachDoc {
			list = append(list, doc)
		}
		s.list, s.many = list, nil
	}
}

// eachDoc calls yield with the documents in ascending order until yield returns false.
func (s *docSet) eachDoc(yield func(doc uint32) bool) {
	if s.many != nil {
		s.many.bits.Each(func(doc int) bool { return yield(uint32(doc)) })
		return
	}
	for _, doc := range s.list {
		if !yield(doc) {
			return
		}
	}
}

// countIn returns the size of the intersection with bits.
func (s *docSet) countIn(bits bm25.Bits) (n int) {
	if s.many != nil {
		return s.many.bits.CountAnd(bits)
	}
	for _, doc := range s.list {
		if int(doc>>6) >= len(bits) {
			break
		}
		n += int(bits[doc>>6] >> (doc & 63) & 1)
	}
	return n
}

// addTo adds the documents to bits, which grows as needed.
func (s *docSet) addTo(bits *bm25.Bits) {
	if s.many != nil {
		for len(*bits) < len(s.many.bits) {
			*bits = append(*bits, 0)
		}
		for i, w := range s.many.bits {
			(*bits)[i] |= w
		}
	}
	for _, doc := range s.list {
		bits.Add(int(doc))
	}
}
