package bm25

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
)

// chunkSize is the maximum number of ids in a chunk, which bounds those that an insertion moves.
const chunkSize = 512

// sorted keeps ids sorted by key, and equal keys by id, in chunks, so that an insertion among hundreds
// of thousands of ids moves only a few hundred. The first 8 bytes of each key are stored beside the id
// as a number, so that a search rarely reads a whole key.
type sorted struct {
	chunks []chunk
	lasts  []uint64 // keyHead of the last key of each chunk
	texts  Texts    // source of the keys
}

type chunk struct {
	heads []uint64
	ids   []uint32
}

// keyHead returns the first 8 bytes of a key as a number. Different heads are in the same order as their keys.
func keyHead(key string) uint64 {
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// comparePlace compares the document id with the position of the document at: by key, then by number.
// The result is negative, 0 or positive as in cmp.Compare. h and head are the keyHeads of the two; the
// key of id is read from texts only if they are equal.
func (s *sorted) comparePlace(h uint64, id uint32, head uint64, key string, at uint32) int {
	if h != head {
		return cmp.Compare(h, head)
	}
	return cmp.Or(strings.Compare(s.texts.Text(id), key), cmp.Compare(id, at))
}

// findKey returns the chunk and the position in it at which the entry with that key and id is or would
// be inserted. The chunk is len(s.chunks) if the position is after all entries.
func (s *sorted) findKey(key string, id uint32) (int, int) {
	h := keyHead(key)
	c := sort.Search(len(s.chunks), func(i int) bool {
		if s.lasts[i] != h {
			return s.lasts[i] > h
		}
		ids := s.chunks[i].ids
		return s.comparePlace(h, ids[len(ids)-1], h, key, id) >= 0
	})
	if c == len(s.chunks) {
		return c, 0
	}
	k := &s.chunks[c]
	return c, sort.Search(len(k.ids), func(i int) bool { return s.comparePlace(k.heads[i], k.ids[i], h, key, id) >= 0 })
}

func (s *sorted) insertID(id uint32) {
	key := s.texts.Text(id)
	c, i := s.findKey(key, id)
	if c == len(s.chunks) { // after all entries
		if c == 0 || len(s.chunks[c-1].ids) >= chunkSize {
			s.chunks, s.lasts = append(s.chunks, chunk{}), append(s.lasts, 0)
			c++
		}
		c--
		i = len(s.chunks[c].ids)
	}
	k := &s.chunks[c]
	k.heads, k.ids = insertAt(k.heads, i, keyHead(key)), insertAt(k.ids, i, id)
	if len(k.ids) > chunkSize {
		half := len(k.ids) / 2
		tail := chunk{slices.Clone(k.heads[half:]), slices.Clone(k.ids[half:])}
		k.heads, k.ids = slices.Clone(k.heads[:half]), slices.Clone(k.ids[:half])
		s.chunks, s.lasts = slices.Insert(s.chunks, c+1, tail), slices.Insert(s.lasts, c+1, 0)
		s.setLast(c + 1)
	}
	s.setLast(c)
}

// insertAt is slices.Insert but grows by an eighth instead of doubling, because every id is stored in such a list.
func insertAt[T any](list []T, i int, v T) []T {
	if len(list) == cap(list) {
		list = append(make([]T, 0, len(list)+len(list)/8+4), list...)
	}
	return slices.Insert(list, i, v)
}

func (s *sorted) setLast(c int) {
	h := s.chunks[c].heads
	s.lasts[c] = h[len(h)-1]
}

// removeID removes id. The key that texts returns for id must be the same as when id was inserted.
func (s *sorted) removeID(id uint32) {
	c, i := s.findKey(s.texts.Text(id), id)
	k := &s.chunks[c]
	k.heads, k.ids = slices.Delete(k.heads, i, i+1), slices.Delete(k.ids, i, i+1)
	if len(k.ids) == 0 {
		s.chunks, s.lasts = slices.Delete(s.chunks, c, c+1), slices.Delete(s.lasts, c, c+1)
		return
	}
	s.setLast(c)
}

// lessID reports whether a is before b: by key, then by id.
func (s *sorted) lessID(a, b uint32) bool {
	return cmp.Or(strings.Compare(s.texts.Text(a), s.texts.Text(b)), cmp.Compare(a, b)) < 0
}

// eachFrom calls yield with the ids whose key is key or greater, in order, until yield returns false.
func (s *sorted) eachFrom(key string, yield func(id uint32) bool) {
	c, i := s.findKey(key, 0)
	for ; c < len(s.chunks); c++ {
		for _, id := range s.chunks[c].ids[i:] {
			if !yield(id) {
				return
			}
		}
		i = 0
	}
}
