package index

import (
	"slices"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
	"agentsite/internal/index/vector"
)

// Bounds of a page of results and of its suggestions.
const (
	defaultLimit   = 20
	maxLimit       = 100
	maxWhy         = 8
	maxSuggestions = 5
	maxTries       = 10 // texts that are tried to find suggestions
)

// scratch holds the buffers of one search, reused through Index.scratch.
type scratch struct {
	filters [facetCount]bm25.Bits // documents that pass each filter; set only for facets with a filter
	rest    bm25.Bits             // matches under the filters of all other facets
	class   bm25.Bits             // matches with one rank
	less    bm25.Bits             // matches without those of held-back portals
	allowed bm25.Bits             // documents that pass all filters, for a search by meaning
	nearest vector.Scratch
	counts  [facetCount][]uint32 // matches of each value, by facet and number; all 0 between uses
	seen    []valueID            // values whose counter is not 0
	best    []ranked
	model   uint32 // Model.ID of the vectors that are compared, 0 for those of the index itself
}

// Search implements hub.Index. A Limit of 0 means 20; other limits are brought into the range 1 to 100.
// A malformed cursor, a cursor of another query or order, and a Sort that is not in hub.Sorts are
// Invalid faults.
func (x *Index) Search(q hub.Query) (hub.Page, error) { return x.SearchBy(q, Sought{}) }

// SearchBy is Search that compares the vector of a model outside, if by has one and the index has the vectors of
// that model; otherwise it is Search. Of a cursor's further pages the model decides with which the first was made.
func (x *Index) SearchBy(q hub.Query, by Sought) (hub.Page, error) {
	if q.Sort != "" && !slices.Contains(hub.Sorts, q.Sort) {
		return hub.Page{}, badField("sort", "is none of relevance, used, name, newest, updated")
	}
	var at *place // nil for the first page
	if q.Cursor != "" {
		var err error
		if at, err = decodeCursor(q); err != nil {
			return hub.Page{}, err
		}
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
	by, err := x.chooseModel(by, at)
	if err != nil {
		return hub.Page{}, err
	}
	s.model = by.Model
	var plan []byte
	if at != nil {
		plan = at.plan
	}
	m := x.words.MatchPlan(q.Text, plan)
	defer m.Close()
	r := x.rankMatches(&q, m, at, by, s)
	page := hub.Page{Facets: make(map[string][]hub.FacetCount, facetCount)}
	found := len(q.Text) > 0 && slices.ContainsFunc(m.Bits, func(w uint64) bool { return w != 0 })
	page.Total = x.applyFilters(m.Bits, &q, plan, s, page.Facets)
	if page.Total == 0 {
		page.Results = []hub.Result{}
		if !m.Any && !q.Bare {
			page.Suggestions = x.suggestOthers(&q, found, s)
		}
		return page, nil
	}
	o := orderOf(q)
	if o == byScore && m.Any {
		o = byUp
	}
	// One hit more than the page shows whether there is a next page.
	if o == byScore {
		x.pageByScore(&page, &q, r, at, s)
	} else {
		hits := x.listOrdered(o, m.Bits, page.Total, q.Limit+1, at, s)
		if cutPage(x, &hits, q.Limit, func(h ranked) int { return h.doc }) {
			last := hits[len(hits)-1]
			page.NextCursor = encodeCursor(q,
				place{rank: last.rank, key: x.words.Key(last.doc), plan: m.Plan(), blend: r.blend})
		}
		page.Results = make([]hub.Result, len(hits))
		for i, h := range hits {
			res := &page.Results[i]
			x.readAgent(&res.Agent, uint32(h.doc))
			if !m.Any {
				res.Why, res.Score = explainMatch(m, h.doc)
				res.Matched = m.Fields(h.doc)
				r.explain(res, h.doc)
			}
		}
	}
	if o == byScore || o == byUp {
		sinkDown(page.Results)
	}
	for i := range page.Results {
		page.Results[i].Users = x.users[page.Results[i].Agent.ID]
	}
	return page, nil
}

// pageByScore fills page with the next results in the order of r, and their cursor. The caller must hold mu.
func (x *Index) pageByScore(page *hub.Page, q *hub.Query, r *ranking, at *place, s *scratch) {
	var hits []bm25.Hit
	if len(q.Portals) == 0 {
		next, more := place{}, false
		if hits, next, more = x.pageFairly(r, q.Limit, at, s); more {
			next.plan, next.blend = r.m.Plan(), r.blend
			page.NextCursor = encodeCursor(*q, next)
		}
	} else if hits = r.Top(q.Limit+1, at.after()); cutPage(x, &hits, q.Limit, func(h bm25.Hit) int { return h.ID }) {
		last := hits[len(hits)-1]
		next := place{rank: scoreRank(last.Score), key: x.words.Key(last.ID), plan: r.m.Plan(), blend: r.blend}
		page.NextCursor = encodeCursor(*q, next)
	}
	page.Results = make([]hub.Result, len(hits))
	for i, h := range hits {
		res := &page.Results[i]
		x.readAgent(&res.Agent, uint32(h.ID))
		res.Score, res.Matched = h.Score, h.Matched
		if !q.Bare {
			res.Why, _ = explainMatch(r.m, h.ID)
			r.explain(res, h.ID)
		}
	}
}

// cutPage cuts hits to limit, and after the one with which their texts exceed a page. It reports whether
// it cut anything. The caller must hold x.mu.
func cutPage[H any](x *Index, hits *[]H, limit int, doc func(H) int) bool {
	size := 0
	for i, h := range *hits {
		if i == limit || size > hub.PageBytes {
			*hits = (*hits)[:i]
			return true
		}
		size += x.docs[doc(h)].size()
	}
	return false
}

// sinkDown moves agents that are not up to the end of list and keeps the order within both groups.
func sinkDown(list []hub.Result) {
	var sunk []hub.Result
	kept := 0
	for i := range list {
		if a := &list[i].Agent; a.Liveness.State != hub.Alive || a.Status.State == hub.Deprecated {
			sunk = append(sunk, list[i])
			continue
		}
		if kept < i {
			list[kept] = list[i]
		}
		kept++
	}
	copy(list[kept:], sunk)
}

// explainMatch returns how each query word was found in a document, at most maxWhy words, and the
// document's score.
func explainMatch(m *bm25.Match, id int) ([]hub.Match, float64) {
	found, score := m.Explain(id)
	list := make([]hub.Match, min(len(found), maxWhy))
	for i := range list {
		f := &found[i]
		list[i] = hub.Match{Word: f.Word, Found: f.Found, How: f.How, Field: f.Field}
	}
	return list, score
}

// applyFilters removes from match the documents that do not pass the filters of q, and returns the
// number of those that remain. match holds the documents for q.Text, found with plan. Unless q.Bare is
// set, facets receives the counts of all facets: a facet with a filter is counted without its own
// filter, so that the other choices stay visible, or, if q.CountMatches is set, under all filters. The
// caller must hold mu.
func (x *Index) applyFilters(match bm25.Bits, q *hub.Query, plan []byte, s *scratch, facets map[string][]hub.FacetCount) int {
	dropOlder(x, match, q)
	asked := filtersOf(q)
	var free [facetCount]bool // free marks facets without a filter
	for f, values := range asked {
		free[f] = len(values) == 0
		if !free[f] {
			s.filters[f] = append(s.filters[f][:0], make(bm25.Bits, len(match))...)
			x.facets[f].unionDocs(f, values, &s.filters[f])
		}
	}
	if q.Bare {
		for f := range asked {
			if !free[f] {
				match.And(s.filters[f])
			}
		}
		return match.Count()
	}
	key, state := countedKey(q, plan, s.model), x.state.Load()
	kept, known := x.counted.getFacets(key, state)
	var out facetCounts
	for f := range asked {
		if free[f] || known || q.CountMatches {
			continue
		}
		s.rest = append(s.rest[:0], match...)
		for o := range asked {
			if o != f && !free[o] {
				s.rest.And(s.filters[o])
			}
		}
		var one [facetCount]bool
		one[f] = true
		x.countFacets(s.rest, s.rest.Count(), one, s, &out)
	}
	for f := range asked {
		if !free[f] {
			match.And(s.filters[f])
		}
	}
	total := match.Count()
	if q.CountMatches {
		for f := range free {
			free[f] = true
		}
	}
	if known {
		out = *kept
	} else {
		x.countFacets(match, total, free, s, &out)
		x.counted.putFacets(key, state, &out)
	}
	for f, name := range facetNames {
		facets[name] = out[f]
	}
	return total
}

// dropOlder removes from match the documents that were created or updated before the times in q; the
// caller must hold mu.
func dropOlder(x *Index, match bm25.Bits, q *hub.Query) {
	if q.CreatedAfter.IsZero() && q.UpdatedAfter.IsZero() {
		return
	}
	created, updated := timeNumber(q.CreatedAfter), timeNumber(q.UpdatedAfter)
	for doc := range match.Each {
		t := x.times[doc]
		if !q.CreatedAfter.IsZero() && t.created <= created || !q.UpdatedAfter.IsZero() && t.updated <= updated {
			match.Drop(doc)
		}
	}
}

// suggestOthers returns texts that match something in place of q.Text, at most maxSuggestions. Texts
// with matches that pass the filters of q come first and exclude the others. If there are none, found
// decides: true means that q.Text itself matches and only the filters exclude everything, so that
// another text does not help and the result is empty. The caller must hold mu and must have called
// applyFilters with s.
func (x *Index) suggestOthers(q *hub.Query, found bool, s *scratch) []string {
	asked := filtersOf(q)
	var kept, dropped []string
	for _, text := range x.words.Suggest(q.Text, maxTries) {
		m := x.words.Match(text)
		if !m.Any && slices.ContainsFunc(m.Bits, func(w uint64) bool { return w != 0 }) {
			dropped = append(dropped, text)
			for f, values := range asked {
				if len(values) > 0 {
					m.Bits.And(s.filters[f])
				}
			}
			if slices.ContainsFunc(m.Bits, func(w uint64) bool { return w != 0 }) {
				kept = append(kept, text)
			}
		}
		m.Close()
		if len(kept) == maxSuggestions {
			break
		}
	}
	switch {
	case len(kept) > 0:
		return kept
	case found:
		return nil
	}
	return dropped[:min(len(dropped), maxSuggestions)]
}
