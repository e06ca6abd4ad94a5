package hub

import (
	"context"
	"slices"
	"strings"

	"agentsite/internal/federation"
)

// Wider asks other portals for agents that are not held here.
type Wider interface {
	// Ask returns the results of portals that are not fully held here for a query, each proved to
	// be listed by its portal, in no order; and the numbers of asked and answering portals, with
	// the names of the silent ones. It returns within a second, and at once without portals to
	// ask.
	Ask(ctx context.Context, q Query) ([]Agent, federation.Coverage)
	// AskEach is Ask that does not wait for all: it calls heard with the results of each portal as
	// soon as they are verified, one call after the other, and with the number of answers so far.
	// An agent that several portals list comes as often.
	AskEach(ctx context.Context, q Query, heard func([]Agent, federation.Coverage)) federation.Coverage
	// Asks is how many portals Ask asks at most. It is cheap.
	Asks(q Query) int
}

// maxSilent is how many silent portals an answer names.
const maxSilent = 100

// Asks is how many other portals a search that is Wide asks at most; 0 when it
// does not wait for any.
func (s *Service) Asks(q Query) int {
	if q.Wide = true; !s.asksOthers(q) {
		return 0
	}
	n := s.wider.Asks(q)
	if s.Seeks(q) {
		n = max(n, 1) // its own, if it has one
	}
	return n
}

// asksOthers reports whether others are asked for a query.
func (s *Service) asksOthers(q Query) bool {
	return q.Wide && s.wider != nil && q.Cursor == "" && q.Scope != ScopePortal &&
		(q.Text != "" || len(q.Kinds)+len(q.Tags)+len(q.Skills)+len(q.Languages)+len(q.Portals) > 0)
}

// addRemote adds the results of other portals to the first page. The page keeps its size: local
// results that do not fit are on the next one.
func (s *Service) addRemote(ctx context.Context, q Query, page Page) (Page, error) {
	few, asked := s.wider.Ask(ctx, q)
	page.Coverage = withAsked(page.Coverage, asked)
	found, err := s.searchOverlay(few, q)
	if err != nil || len(found.Results) == 0 {
		return page, err
	}
	if list := mergeResults(page.Results, found.Results, q); len(list) > q.Limit {
		here := 0
		for _, r := range list[:q.Limit] {
			if !slices.ContainsFunc(found.Results, func(f Result) bool { return f.Agent.ID == r.Agent.ID }) {
				here++
			}
		}
		here = max(here, 1) // or there would be no next page
		shorter := q
		shorter.Limit = here
		coverage := page.Coverage
		if page, err = s.index.Search(shorter); err != nil {
			return page, err
		}
		page.Coverage = coverage
		room := max(q.Limit-len(page.Results), 0)
		page.Coverage.Limited = page.Coverage.Limited || room < len(found.Results)
		found.Results = found.Results[:min(room, len(found.Results))]
	}
	page.Results = mergeResults(page.Results, found.Results, q)
	page.Total += found.Total
	for name, counts := range found.Facets {
		page.Facets[name] = addCounts(page.Facets[name], counts)
	}
	if len(page.Results) > 0 {
		page.Suggestions = nil
	}
	return page, nil
}

// searchOverlay searches in agents that were heard of just now and are not held.
func (s *Service) searchOverlay(few []Agent, q Query) (Page, error) {
	var fresh []Agent
	for _, a := range few {
		if _, held := s.Learned(a.ID); held {
			continue
		}
		if a, ok := s.prepareAgent(a); ok {
			fresh = append(fresh, a)
		}
	}
	if len(fresh) == 0 { // nearly always: the asked portals are held, or there are none
		return Page{}, nil
	}
	q.Limit = 100
	return s.index.Beside(fresh, q)
}

// withAsked adds the asked portals to the coverage of the local search.
func withAsked(c, asked federation.Coverage) federation.Coverage {
	c.Asked += asked.Asked
	c.Answered += asked.Answered
	c.Named += asked.Named
	c.Silent = append(slices.Clip(c.Silent), asked.Silent...) // a list, though there are none
	c.Silent = c.Silent[:min(len(c.Silent), maxSilent)]
	c.Indexes += asked.Indexes
	c.OldestHead, c.Limited = max(c.OldestHead, asked.OldestHead), c.Limited || asked.Limited
	return c
}

// mergeResults puts two lists, each in the order of a query, into one.
func mergeResults(a, b []Result, q Query) []Result {
	out := make([]Result, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if precedes(&b[0], &a[0], q) {
			out, b = append(out, b[0]), b[1:]
		} else {
			out, a = append(out, a[0]), a[1:]
		}
	}
	return append(append(out, a...), b...)
}

// precedes reports whether one result comes before another in the order of a
// query. Of relevance those that answer come first on a page.
func precedes(a, b *Result, q Query) bool {
	switch q.Sort {
	case SortName:
		return strings.Compare(a.Agent.Name, b.Agent.Name) < 0
	case SortNewest:
		return a.Agent.CreatedAt.After(b.Agent.CreatedAt)
	case SortUpdated:
		return a.Agent.UpdatedAt.After(b.Agent.UpdatedAt)
	}
	if up, other := a.Agent.Liveness.State == Alive, b.Agent.Liveness.State == Alive; up != other {
		return up
	}
	if a.Score != b.Score {
		return a.Score > b.Score
	}
	return q.Text == "" && strings.Compare(a.Agent.Name, b.Agent.Name) < 0
}

// addCounts adds the counts of one facet, the values of b after those of a.
func addCounts(a, b []FacetCount) []FacetCount {
	a = slices.Clone(a)
	for _, f := range b {
		if i := slices.IndexFunc(a, func(o FacetCount) bool { return o.Value == f.Value }); i >= 0 {
			a[i].Count += f.Count
		} else if len(a) < MaxFacetValues {
			a = append(a, f)
		}
	}
	return a
}
