package hub

import (
	"context"
	"slices"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Seeker resolves agents of portals that are unknown here, through the DHT.
type Seeker interface {
	// Seek resolves an agent by its handle, name@host, or its network id. A NotFound fault means that no
	// portal lists it, a RateLimited fault that the actor has used up its lookups, an Unavailable fault
	// that no answer arrived in time. It takes a few seconds at most; later answers serve the next call.
	Seek(ctx context.Context, actor ident.Actor, what string) (Agent, error)
}

// Anywhere is Get that resolves unknown agents of other portals in the whole network, which may take seconds, and
// that also accepts network ids. It is for requests for one agent; code that handles mentions uses Get.
func (s *Service) Anywhere(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if foreignID(name) && !strings.Contains(name, "@") {
		if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) && !actor.May(ident.ChatWrite) {
			return Agent{}, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
		}
		if a, ok := s.Learned(name); ok {
			return a, nil
		}
		return s.resolveRemote(ctx, actor, name, errNoAgent(name))
	}
	a, err := s.Get(ctx, actor, name)
	if h, ok := ident.ParseHandle(name, s.cfg.Portal); ok && h.Portal != "" && fault.Is(err, fault.NotFound) {
		return s.resolveRemote(ctx, actor, h.String(), err)
	}
	return a, err
}

// resolveRemote resolves an agent that is unknown here; absent is the error of the local lookup and is returned if
// resolving is not possible. Actors of other portals are refused, because they must use their own portal.
func (s *Service) resolveRemote(ctx context.Context, actor ident.Actor, what string, absent error) (Agent, error) {
	if s.seeker == nil || actor.Kind == ident.Portal {
		return Agent{}, absent
	}
	a, err := s.seeker.Seek(ctx, actor, what)
	if err == nil && a.Portal == "" {
		err = absent
	}
	return a, err
}

// exactMatch returns the agent if the query is exactly a handle (name@host) or a network id and has no filters; nil
// for other queries or if the agent is not found. With q.Wide an unknown agent is resolved in the network.
func (s *Service) exactMatch(ctx context.Context, actor ident.Actor, q Query) *Agent {
	text, ok := q.handleText()
	if !ok {
		return nil
	}
	if h, ok := ident.ParseHandle(text, s.cfg.Portal); ok && strings.Contains(text, "@") {
		if list := s.index.Named(h.Name, h.Portal); len(list) > 0 {
			return &list[0]
		}
	}
	if a, ok := s.Learned(text); ok {
		return &a
	}
	if !q.Wide {
		return nil
	}
	a, err := s.Anywhere(ctx, actor, text)
	if err != nil || a.Portal == "" {
		return nil // Agents of this portal come from the index only, which respects their visibility.
	}
	if a, ok = s.prepareAgent(a); !ok {
		return nil
	}
	return &a
}

// handleText returns the text of a query that is exactly a handle with a host, or a network id, and has
// no filters; false for other queries.
func (q Query) handleText() (string, bool) {
	text := strings.TrimSpace(q.Text)
	if q.Cursor != "" || q.Scope == ScopePortal || len(text) > 300 ||
		strings.ContainsAny(text, " \t\n\"") ||
		len(q.Kinds)+len(q.Tags)+len(q.Skills)+len(q.Portals)+len(q.Live)+len(q.Languages)+len(q.Modalities)+
			len(q.Signed)+len(q.Proofs)+len(q.Publishers) > 0 {
		return "", false
	}
	name, host, _ := strings.Cut(strings.TrimPrefix(text, "@"), "@")
	return text, host != "" && ident.CheckForm(strings.ToLower(name)) == nil || host == "" && foreignID(text)
}

// resolveAsync starts exactMatch for a query and returns a function that waits for its result. The
// function must be called once.
func (s *Service) resolveAsync(ctx context.Context, actor ident.Actor, q Query) func() *Agent {
	if !s.Seeks(q) {
		q.Wide = false
		return func() *Agent { return s.exactMatch(ctx, actor, q) }
	}
	found := make(chan *Agent, 1)
	go func() { found <- s.exactMatch(ctx, actor, q) }()
	return func() *Agent { return <-found }
}

// Seeks reports whether a query with q.Wide would be resolved in the network: its text is the handle or
// network id of an agent of another portal that is not in the index.
func (s *Service) Seeks(q Query) bool {
	if s.seeker == nil {
		return false
	}
	text, ok := q.handleText()
	if !ok {
		return false
	}
	here := q
	here.Wide = false
	if s.exactMatch(context.Background(), ident.Actor{}, here) != nil {
		return false
	}
	h, ok := ident.ParseHandle(text, s.cfg.Portal)
	return foreignID(text) || ok && h.Portal != ""
}

// putFirst makes a the first result of the page, without a duplicate, and keeps at most limit results. A
// nil agent changes nothing.
func (p *Page) putFirst(a *Agent, limit int) {
	if a == nil {
		return
	}
	n := len(p.Results)
	p.Results = slices.DeleteFunc(p.Results, func(r Result) bool { return r.Agent.ID == a.ID })
	if len(p.Results) == n {
		p.Total++
	}
	p.Results = append([]Result{{Agent: *a, Matched: []string{"name"}}}, p.Results[:min(len(p.Results), limit-1)]...)
	p.Suggestions = nil
}
