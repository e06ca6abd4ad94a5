package index

import (
	"slices"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Bounds of one page and of its suggestions.
const (
	defaultLimit   = 20
	maxLimit       = 100
	maxSuggestions = 5
)

// scratch is the memory of one search.
type scratch struct {
	filters [facetCount]bm25.Bits // by facet; empty where nothing is asked
	rest    bm25.Bits             // matches under all filters but one
	counts  []uint32              // by value, all 0 between uses
	seen    []uint32
}

// Search implements hub.Index. A limit of 0 means 20; one beyond 1 to 100 is
// brought into it.
func (x *Index) Search(q hub.Query) (hub.Page, error) {
	after, err := decodeCursor(q)
	if err != nil {
		return hub.Page{}, err
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(max(q.Limit, 1), maxLimit)
	s, _ := x.scratch.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	defer x.scratch.Put(s)

	x.mu.RLock()
	defer x.mu.RUnlock()
	m := x.words.Match(q.Text)
	defer m.Close()
	page := hub.Page{Facets: make(map[string][]hub.FacetCount, facetCount)}
	page.Total = x.narrow(m.Bits, q, s, page.Facets)
	if page.Total == 0 {
		page.Results = []hub.Result{}
		if !m.Any {
			page.Suggestions = x.words.Suggest(q.Text, maxSuggestions)
		}
		return page, nil
	}
	// One more than the page shows whether there is another.
	var hits []bm25.Hit
	if m.Any {
		hits = x.list(m.Bits, page.Total, q.Limit+1, after)
	} else {
		hits = m.Top(q.Limit+1, after)
	}
	if len(hits) > q.Limit {
		hits = hits[:q.Limit]
		last := hits[q.Limit-1]
		page.NextCursor = encodeCursor(q, bm25.After{Score: last.Score, Key: x.words.Key(last.ID)})
	}
	page.Results = x.results(hits, m.Any)
	return page, nil
}

// narrow applies the filters of q to the matches and returns how many are
// left. It fills in the facets, each counted under the filters of the others.
// The caller must hold mu.
func (x *Index) narrow(match bm25.Bits, q hub.Query, s *scratch, facets map[string][]hub.FacetCount) int {
	asked := filters(q)
	for f, values := range asked {
		s.filters[f] = s.filters[f][:0]
		if len(values) > 0 {
			s.filters[f] = append(s.filters[f], make(bm25.Bits, len(match))...)
			x.facets[f].union(values, &s.filters[f])
		}
	}
	for f := range x.facets {
		if len(asked[f]) == 0 {
			continue
		}
		s.rest = append(s.rest[:0], match...)
		for o := range x.facets {
			if o != f && len(asked[o]) > 0 {
				s.rest.And(s.filters[o])
			}
		}
		facets[facetNames[f]] = x.facets[f].count(s.rest, s.rest.Count(), x.entries, s)
	}
	for f := range x.facets {
		if len(asked[f]) > 0 {
			match.And(s.filters[f])
		}
	}
	total := match.Count()
	for f := range x.facets {
		if len(asked[f]) == 0 {
			facets[facetNames[f]] = x.facets[f].count(match, total, x.entries, s)
		}
	}
	return total
}

// list returns the first limit matches without words: those alive first,
// each part by name. Its scores are the ones cursors of listings carry.
func (x *Index) list(match bm25.Bits, total, limit int, after *bm25.After) []bm25.Hit {
	alive := match.CountAnd(x.alive)
	hits := make([]bm25.Hit, 0, min(limit, total))
	for _, part := range []struct {
		score float64
		left  int
	}{{1, alive}, {0, total - alive}} {
		key := ""
		if after != nil {
			if after.Score < part.score {
				continue
			}
			if after.Score == part.score {
				key = after.Key
			}
		}
		if part.left == 0 || len(hits) == limit {
			continue
		}
		x.words.Ascend(key, func(id int) bool {
			if !match.Has(id) || x.alive.Has(id) != (part.score == 1) || key != "" && x.words.Key(id) == key {
				return true
			}
			hits = append(hits, bm25.Hit{ID: id, Score: part.score})
			part.left--
			return len(hits) < limit && part.left > 0
		})
	}
	return hits
}

// results copies the agents of a page. Those not alive sink below the others
// without changing the order within.
func (x *Index) results(hits []bm25.Hit, listing bool) []hub.Result {
	results := make([]hub.Result, len(hits))
	for i, h := range hits {
		results[i] = hub.Result{Agent: *x.entries[h.ID].agent, Score: h.Score, Matched: h.Matched}
		if listing {
			results[i].Score = 0
		}
	}
	slices.SortStableFunc(results, func(a, b hub.Result) int { return sunk(a) - sunk(b) })
	return results
}

func sunk(r hub.Result) int {
	if r.Agent.Liveness.State == hub.Alive {
		return 0
	}
	return 1
}
