package hub

import (
	"context"
	"slices"
	"strings"

	"agentsite/internal/federation"
)

// Wider is the remote search: it asks other portals for agents that are not replicated here.
type Wider interface {
	// Ask sends a query to portals that are not fully replicated here. It returns their results in no
	// order, each verified against its portal's head, and how many portals were asked and answered, with
	// the names of silent ones. It returns within a second, and at once if there is no portal to ask.
	Ask(ctx context.Context, q Query) ([]Agent, federation.Coverage)
	// AskEach is Ask for streaming search: it calls heard with the verified results of each portal as
	// they arrive, never concurrently, and with the number of answers so far. An agent that several
	// portals list is passed several times.
	AskEach(ctx context.Context, q Query, heard func([]Agent, federation.Coverage)) federation.Coverage
	// Asks returns the greatest number of portals that Ask would ask. It is cheap.
	Asks(q Query) int
}

// maxSilent is how many silent portals Coverage.Silent names.
const maxSilent = 100

// Asks returns how many other portals a search with q.Wide would ask at most; 0 if it asks none.
func (s *Service) Asks(q Query) int {
	if q.Wide = true; !s.asksOthers(q) {
		return 0
	}
	n := s.wider.Asks(q)
	if s.Seeks(q) {
		n = max(n, 1) // a query for one unknown agent asks at least that agent's portal
	}
	return n
}

// asksOthers reports whether a remote search is made for a query: it needs a criterion, and only the
// first page has one.
func (s *Service) asksOthers(q Query) bool {
	return q.Wide && s.wider != nil && q.Cursor == "" && q.Scope != ScopePortal &&
		(q.Text != "" || len(q.Kinds)+len(q.Tags)+len(q.Skills)+len(q.Languages)+len(q.Portals) > 0)
}

// addRemote merges the results of other portals into the first page. The page keeps its size: local
// results that no longer fit are on the next page.
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
		// At least one local result stays on the page, because without one the index returns no cursor
		// for the next page.
		here = max(here, 1)
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

// searchOverlay searches in agents that other portals just returned and that are not in the index.
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
	if len(fresh) == 0 { // The usual case: all returned agents are in the index, or there are none.
		return Page{}, nil
	}
	q.Limit = 100
	return s.index.Beside(fresh, q)
}

// withAsked returns c, the coverage of the local search, extended by the portals of a remote search.
func withAsked(c, asked federation.Coverage) federation.Coverage {
	c.Asked += asked.Asked
	c.Answered += asked.Answered
	c.Named += asked.Named
	// Clip makes the append copy, because c.Silent is shared.
	c.Silent = append(slices.Clip(c.Silent), asked.Silent...)
	c.Silent = c.Silent[:min(len(c.Silent), maxSilent)]
	c.Indexes += asked.Indexes
	c.OldestHead, c.Limited = max(c.OldestHead, asked.OldestHead), c.Limited || asked.Limited
	return c
}

// mergeResults merges two lists that are both in the order of the query.
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

// precedes reports whether a comes before b in the order of the query. By relevance, alive agents come
// before all others.
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
	if q.Text == "" || q.Sort == SortUsed {
		if a.Users != b.Users {
			return a.Users > b.Users
		}
		return strings.Compare(a.Agent.Name, b.Agent.Name) < 0
	}
	if a.Score != b.Score {
		return a.Score > b.Score
	}
	return false
}

// addCounts adds the counts of the facet b to a; values that only b has are appended, up to MaxFacetValues.
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
