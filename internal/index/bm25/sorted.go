package bm25

import (
	"slices"
	"sort"
	"strings"
)

// chunkSize bounds what an insertion moves.
const chunkSize = 512

// sorted keeps ids in the order of their keys in chunks, so that inserting
// among hundreds of thousands moves a few hundred. Two ids of different
// chunks compare by the number of their chunk, without reading their keys.
type sorted struct {
	chunks []*chunk
	where  []*chunk // by id
	key    func(id uint32) string
}

type chunk struct {
	ord int
	ids []uint32
}

// find returns the chunk number and the place in it where key is or belongs.
func (s *sorted) find(key string) (int, int) {
	c := sort.Search(len(s.chunks), func(i int) bool {
		ids := s.chunks[i].ids
		return s.key(ids[len(ids)-1]) >= key
	})
	if c == len(s.chunks) {
		return c, 0
	}
	ids := s.chunks[c].ids
	return c, sort.Search(len(ids), func(i int) bool { return s.key(ids[i]) >= key })
}

func (s *sorted) insert(id uint32) {
	for int(id) >= len(s.where) {
		s.where = append(s.where, nil)
	}
	c, i := s.find(s.key(id))
	if c == len(s.chunks) { // behind everything
		if c == 0 || len(s.chunks[c-1].ids) >= chunkSize {
			s.chunks = append(s.chunks, &chunk{ord: c})
			c++
		}
		c--
		i = len(s.chunks[c].ids)
	}
	k := s.chunks[c]
	k.ids = slices.Insert(k.ids, i, id)
	s.where[id] = k
	if len(k.ids) > chunkSize {
		half := len(k.ids) / 2
		tail := &chunk{ids: slices.Clone(k.ids[half:])}
		k.ids = k.ids[:half]
		for _, moved := range tail.ids {
			s.where[moved] = tail
		}
		s.chunks = slices.Insert(s.chunks, c+1, tail)
		s.renumber(c + 1)
	}
}

// remove takes out id, whose key must still be the one it was inserted with.
func (s *sorted) remove(id uint32) {
	k := s.where[id]
	s.where[id] = nil
	k.ids = slices.Delete(k.ids, slices.Index(k.ids, id), slices.Index(k.ids, id)+1)
	if len(k.ids) == 0 {
		s.chunks = slices.Delete(s.chunks, k.ord, k.ord+1)
		s.renumber(k.ord)
	}
}

func (s *sorted) renumber(from int) {
	for i := from; i < len(s.chunks); i++ {
		s.chunks[i].ord = i
	}
}

// less orders two ids by key, equal keys by id.
func (s *sorted) less(a, b uint32) bool {
	ca, cb := s.where[a], s.where[b]
	if ca != cb {
		return ca.ord < cb.ord
	}
	if c := strings.Compare(s.key(a), s.key(b)); c != 0 {
		return c < 0
	}
	return a < b
}

// from calls yield with the ids whose keys are at least key, in order.
func (s *sorted) from(key string, yield func(id uint32) bool) {
	c, i := s.find(key)
	for ; c < len(s.chunks); c++ {
		for _, id := range s.chunks[c].ids[i:] {
			if !yield(id) {
				return
			}
		}
		i = 0
	}
}
