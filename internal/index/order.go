package index

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// order is how the matches of a query are ranked: by descending rank, those
// of one rank by key.
type order uint8

const (
	byScore   order = iota
	byUp            // those that are up first
	byName          // all have one rank
	byCreated       // newest first
	byUpdated
)

// orderOf returns the order of a query with words; one without has no scores,
// and byUp stands in.
func orderOf(q hub.Query) order {
	switch q.Sort {
	case hub.SortName:
		return byName
	case hub.SortNewest:
		return byCreated
	case hub.SortUpdated:
		return byUpdated
	}
	return byScore
}

// ranked is a document with its rank.
type ranked struct {
	rank int64
	doc  int
}

// listOrdered returns the first limit of the matches in an order other than byScore,
// from behind at unless that is nil. The caller must hold mu.
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
		n := s.class.Count()
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

// byKey appends those of a set that come first by key, from behind key, up to
// limit hits. Of a large set it walks over all documents in order, of a small
// one it compares keys.
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

// byTime lists by one of the times. It first finds the rank of the last hit
// by numbers alone, and compares keys only among those of that rank.
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
