package index

import (
	"slices"

	"agentsite/internal/index/bm25"
)

// docSet is a set of documents: few as a sorted list, many as bits. The zero
// value is empty.
type docSet struct {
	list []uint32
	many *manyDocs // not nil: list is unused
}

type manyDocs struct {
	bits  bm25.Bits
	count int
}

// A set of more than listMost documents is kept as bits if a list of them would
// be larger.
const (
	listMost   = 64
	bitsFactor = 32 // a number in a list takes as much as 32 documents as bits
)

func (s *docSet) len() int {
	if s.many != nil {
		return s.many.count
	}
	return len(s.list)
}

// add puts a document in, which is not there. The index has docs documents.
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

// remove takes a document out, which is there.
func (s *docSet) remove(doc uint32, docs int) {
	if s.many == nil {
		at, _ := slices.BinarySearch(s.list, doc)
		s.list = slices.Delete(s.list, at, at+1)
		return
	}
	s.many.bits.Drop(int(doc))
	s.many.count--
	// Well below the size at which add changes to bits.
	if n := s.many.count; n < listMost/2 || n*bitsFactor*4 < docs {
		list := make([]uint32, 0, n)
		for doc := range s.eachDoc {
			list = append(list, doc)
		}
		s.list, s.many = list, nil
	}
}

// eachDoc calls yield with the documents in ascending order until it returns false.
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

// countIn returns the number of documents that are in bits too.
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

// addTo adds the documents to bits.
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
