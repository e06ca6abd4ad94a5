package hub

import (
	"context"

	"agentsite/internal/federation"
	"agentsite/internal/ident"
)

// SearchEach is streaming search. It calls tell with the first page of local results, then once for each
// portal that answers with new results, and at last with an empty page whose Coverage is complete. Later
// pages have only Results, Total and the Coverage so far; each agent comes once, and together they hold
// at most q.Limit results. SearchEach returns about a second after the first page, later if it resolves
// an agent in the DHT. An error of tell ends the search and is returned.
func (s *Service) SearchEach(ctx context.Context, actor ident.Actor, q Query, tell func(Page) error) error {
	q.Wide = false
	page, err := s.Search(ctx, actor, q)
	if err == nil {
		err = tell(page)
	}
	if err != nil {
		return err
	}
	if q.Wide = true; !s.asksOthers(q) {
		return tell(Page{Results: []Result{}, Coverage: page.Coverage})
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := late{s: s, q: q, seen: make(map[string]bool), room: q.Limit}
	var meant func() *Agent
	if s.Seeks(q) {
		meant = s.resolveAsync(ctx, actor, q)
	}
	var failed error
	asked := s.wider.AskEach(ctx, q, func(list []Agent, asked federation.Coverage) {
		if failed != nil {
			return
		}
		var next Page
		if next, failed = l.nextPage(list); failed == nil && len(next.Results) > 0 {
			next.Coverage = withAsked(page.Coverage, asked)
			failed = tell(next)
		}
		if failed != nil {
			cancel()
		}
	})
	if failed != nil {
		return failed
	}
	if meant != nil {
		if a := meant(); a != nil && !l.seen[a.ID] {
			next := Page{Results: []Result{}, Coverage: withAsked(page.Coverage, asked)}
			next.putFirst(a, 1)
			if err := tell(next); err != nil {
				return err
			}
		}
	}
	last := Page{Results: []Result{}, Coverage: withAsked(page.Coverage, asked)}
	last.Coverage.Limited = last.Coverage.Limited || l.cut
	return tell(last)
}

// late converts the answers of other portals to pages, for one streaming search.
type late struct {
	s    *Service
	q    Query
	seen map[string]bool // ids of the agents already sent
	room int             // number of results that may still be sent
	cut  bool            // results beyond room were dropped
}

func (l *late) nextPage(list []Agent) (Page, error) {
	var few []Agent
	for _, a := range list {
		if !l.seen[a.ID] {
			l.seen[a.ID] = true
			few = append(few, a)
		}
	}
	found, err := l.s.searchOverlay(few, l.q)
	if err != nil {
		return Page{}, err
	}
	if n := len(found.Results); n > l.room {
		found.Results, l.cut = found.Results[:l.room], true
	}
	l.room -= len(found.Results)
	return Page{Results: found.Results, Total: len(found.Results)}, nil
}
