package index

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// order is the sort order of a search result: by descending rank, and by key within one rank. Each order
// defines the rank.
type order uint8

const (
	byScore   order = iota
	byUp            // for agents that are up the rank is 1 plus the number of people that use it, 0 for others
	byName          // rank 0 for all
	byCreated       // rank is the time as timeNumber, newest first
	byUpdated
)

// orderOf returns the order that a query asks for. For a query without words, Search replaces byScore by
// byUp, because all scores would be 0.
func orderOf(q hub.Query) order {
	switch q.Sort {
	case hub.SortName:
		return byName
	case hub.SortNewest:
		return byCreated
	case hub.SortUpdated:
		return byUpdated
	case hub.SortUsed:
		return byUp
	}
	return byScore
}

// ranked is a matching document with its rank in the order; see order.
type ranked struct {
	rank int64
	doc  int
}

// listOrdered returns the first limit matches in any order but byScore, after the position at, or from
// the start if at is nil. total is the number of matches. The caller must hold mu.
func (x *Index) listOrdered(o order, match bm25.Bits, total, limit int, at *place, s *scratch) []ranked {
	hits := make([]ranked, 0, min(limit, total))
	from, key := int64(math.MaxInt64), ""
	if at != nil {
		from, key = at.rank, at.key
	}
	switch o {
	case byName:
		return x.byKey(hits, match, total, limit, 0, key)
	case byUp:
		s.class = append(s.class[:0], match...)
		s.class.And(x.up)
		for _, r := range x.users.rank(x, match) {
			s.class.Drop(r.doc)
			if len(hits) < limit && (r.rank < from || r.rank == from && x.words.Key(r.doc) > key) {
				hits = append(hits, r)
			}
		}
		n := s.class.Count()
		if from > 1 {
			key = "" // the page began among the used ones
		}
		if from >= 1 {
			hits = x.byKey(hits, s.class, n, limit, 1, key)
			key = ""
		}
		if len(hits) < limit {
			s.class = append(s.class[:0], match...)
			s.class.AndNot(x.up)
			hits = x.byKey(hits, s.class, total-n, limit, 0, key)
		}
		return hits
	}
	return x.byTime(o, hits, match, limit, at, s)
}

// byKey appends to hits the documents of set with the lowest keys greater than key, until hits has limit
// entries; all get the given rank. n is the size of set. If set is a large part of the index, the
// documents are read in key order; otherwise keys are compared.
func (x *Index) byKey(hits []ranked, set bm25.Bits, n, limit int, rank int64, key string) []ranked {
	want := limit - len(hits)
	if n == 0 || want <= 0 {
		return hits
	}
	if walk := (want + 1) * x.words.Len() / n; n > 64 && walk < 8*n {
		x.words.Ascend(key, func(id int) bool {
			if !set.Has(id) || key != "" && x.words.Key(id) == key {
				return true
			}
			hits = append(hits, ranked{rank, id})
			n--
			return len(hits) < limit && n > 0
		})
		return hits
	}
	start := len(hits)
	less := func(a, b ranked) int { return strings.Compare(x.words.Key(a.doc), x.words.Key(b.doc)) }
	for id := range set.Each {
		if key != "" && x.words.Key(id) <= key {
			continue
		}
		r := ranked{rank, id}
		if len(hits) == limit {
			if less(r, hits[limit-1]) >= 0 {
				continue
			}
			hits = hits[:limit-1]
		}
		i, _ := slices.BinarySearchFunc(hits[start:], r, less)
		hits = slices.Insert(hits, start+i, r)
	}
	return hits
}

// byTime appends the matches in descending order of the creation or update time. It first finds the time
// of the last hit by comparing numbers, then compares keys only among the documents with that time,
// because reading keys is slow.
func (x *Index) byTime(o order, hits []ranked, match bm25.Bits, limit int, at *place, s *scratch) []ranked {
	rank := func(id int) int64 { return x.times[id].created }
	if o == byUpdated {
		rank = func(id int) int64 { return x.times[id].updated }
	}
	of := func(r int64) int {
		s.class = append(s.class[:0], match...)
		for id := range match.Each {
			if rank(id) != r {
				s.class.Drop(id)
			}
		}
		return s.class.Count()
	}
	if at != nil {
		n := of(at.rank)
		hits = x.byKey(hits, s.class, n, limit, at.rank, at.key)
	}
	want := limit - len(hits)
	if want == 0 {
		return hits
	}
	best := s.best[:0] // the greatest ranks, in descending order
	for id := range match.Each {
		r := ranked{rank(id), id}
		if at != nil && r.rank >= at.rank || len(best) == want && r.rank <= best[want-1].rank {
			continue
		}
		if len(best) == want {
			best = best[:want-1]
		}
		i, _ := slices.BinarySearchFunc(best, r, func(a, b ranked) int {
			return cmp.Or(cmp.Compare(b.rank, a.rank), -1)
		})
		best = slices.Insert(best, i, r)
	}
	s.best = best
	if len(best) == 0 {
		return hits
	}
	last := best[len(best)-1].rank
	above, _ := slices.BinarySearchFunc(best, last, func(a ranked, r int64) int { return cmp.Compare(r, a.rank) })
	best = best[:above]
	slices.SortFunc(best, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), strings.Compare(x.words.Key(a.doc), x.words.Key(b.doc)))
	})
	hits = append(hits, best...)
	n := of(last)
	return x.byKey(hits, s.class, n, limit, last, "")
}
