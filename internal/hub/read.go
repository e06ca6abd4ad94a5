package hub

import (
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/weborigin"
)

func errNoAgent(name string) error {
	return fault.New(fault.NotFound, "There is no agent %.80q here. Search for it, or check the spelling.", name)
}

// Get returns an agent that the actor may see, by name or handle; else a NotFound fault. For an agent of
// another portal it returns the replicated form.
func (s *Service) Get(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) && !actor.May(ident.ChatWrite) {
		return Agent{}, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	h, ok := ident.ParseHandle(name, s.cfg.Portal)
	if !ok {
		return Agent{}, errNoAgent(name)
	}
	if h.Portal != "" {
		return s.findRemote(ctx, h)
	}
	a, err := s.store.AgentByName(ctx, h.Name)
	if fault.Is(err, fault.NotFound) {
		return Agent{}, errNoAgent(name)
	}
	if err != nil {
		return Agent{}, err
	}
	if !canSee(actor, a) {
		return Agent{}, errNoAgent(name)
	}
	return a, nil
}

// Listed returns an agent by name if Search may find it; else a NotFound fault. Owners get no private view here.
func (s *Service) Listed(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if !actor.May(ident.AgentsRead) {
		return Agent{}, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	a, err := s.Anywhere(ctx, actor, name)
	if err == nil && !a.Listable() {
		return Agent{}, errNoAgent(name)
	}
	return a, err
}

// Callable returns an agent that the actor may call, of this portal or, by handle or network id, of
// another one. An unknown agent of another portal is resolved as by Anywhere. Met must be called before
// a task for the agent is stored.
func (s *Service) Callable(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if foreignID(name) && !strings.Contains(name, "@") {
		a, err := s.Anywhere(ctx, actor, name)
		if err != nil {
			return Agent{}, err
		}
		name = a.Handle()
	}
	if h, ok := ident.ParseHandle(name, s.cfg.Portal); ok && h.Portal != "" {
		return s.callableElsewhere(ctx, actor, h)
	}
	a, err := s.Get(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if (a.Visibility == Private || a.Status.State == StatusDraft) && !isOwner(actor, a) {
		return Agent{}, errNoAgent(name)
	}
	if a.Status.State == Withdrawn {
		return Agent{}, fault.New(fault.Conflict, "%s was withdrawn by its owner and takes no work. %s", a.Name,
			a.Status.Message)
	}
	return a, nil
}

// Addressed returns the agent named by the URL of a protocol endpoint: an agent of this portal as Get
// does, one of another portal as Callable does.
func (s *Service) Addressed(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if h, ok := ident.ParseHandle(name, s.cfg.Portal); ok && h.Portal != "" {
		return s.Callable(ctx, actor, name)
	}
	return s.Get(ctx, actor, name)
}

// Open returns an agent with its decrypted credential, for one call. The runtime calls it with an id and
// has checked nothing yet, so withdrawn agents are a Conflict fault.
func (s *Service) Open(ctx context.Context, agentID string) (Agent, string, error) {
	a, err := s.store.AgentByID(ctx, agentID)
	if err != nil {
		return Agent{}, "", err
	}
	if a.Status.State == Withdrawn {
		return Agent{}, "", fault.New(fault.Conflict, "%s was withdrawn by its owner.", a.Name)
	}
	if a.Kind == Peer {
		a, err = s.openElsewhere(ctx, a)
		return a, "", err
	}
	if !a.HasSecret {
		return a, "", nil
	}
	sealed, err := s.store.SealedSecret(ctx, agentID)
	if err != nil {
		return Agent{}, "", err
	}
	// The credential belongs to the address it was given for. If the agent was edited between the two
	// reads, they may not fit together.
	if now, err := s.store.AgentByID(ctx, agentID); err != nil {
		return Agent{}, "", err
	} else if now.Version != a.Version {
		return Agent{}, "", fault.New(fault.Unavailable, "%s was changed at this very moment. Ask again.", a.Name)
	}
	secret, err := s.sealer.Open(sealed, agentID)
	return a, secret, err
}

// Mine lists a page of the agents that the actor owns or co-owns, by name after a name. next is the name
// after which the next page begins, "" at the end.
func (s *Service) Mine(ctx context.Context, actor ident.Actor, after string) (list []Agent, next string, err error) {
	if !actor.IsPerson() {
		return nil, "", fault.New(fault.Unauthenticated, "Sign in to see your agents.")
	}
	if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) {
		return nil, "", fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	list, more, err := s.store.AgentsAfter(ctx, actor.ID, after)
	if more {
		next = list[len(list)-1].Name
	}
	return list, next, err
}

// maxCursor is the largest accepted cursor, in bytes: a cursor contains the match of each word of the query.
const maxCursor = 16 << 10

// Search finds public agents in the index and, with q.Wide, at other portals.
func (s *Service) Search(ctx context.Context, actor ident.Actor, q Query) (Page, error) {
	if !actor.May(ident.AgentsRead) {
		return Page{}, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	q.Portals, q.Publishers = weborigin.ReadHosts(q.Portals), weborigin.ReadHosts(q.Publishers)
	var c fault.Check
	c.Field(len(q.Text) <= 500, "q", "use at most 500 characters")
	c.Field(len(q.Cursor) <= maxCursor, "cursor", "is not a cursor of this search")
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	c.Field(q.Limit >= 1 && q.Limit <= 100, "limit", "use 1 to 100")
	c.Field(q.Sort == "" || slices.Contains(Sorts, q.Sort), "sort", "use relevance, used, name, newest or updated")
	c.Field(q.Mode == "" || slices.Contains(Modes, q.Mode), "mode", "use auto, words or meaning")
	among := func(field string, values, known []string) {
		for _, v := range values {
			c.Field(slices.Contains(known, v), field, "%.40q is none of %s", v, strings.Join(known, ", "))
		}
	}
	among("proof", q.Proofs, []string{Hosted, Proved, Claimed, Unproven})
	among("signed", q.Signed, []string{"true", "false"})
	among("modality", q.Modalities, []string{"text", "image", "audio", "video", "data", "file"})
	for _, l := range q.Live {
		c.Field(slices.Contains([]Live{Alive, NeedsAuth, WrongProtocol, Unreachable, Unknown}, Live(l)), "live",
			"%.80q is no state of liveness; use alive, needs_auth, wrong_protocol, unreachable or unknown", l)
	}
	c.Field(q.Scope == "" || q.Scope == ScopePortal || q.Scope == ScopeFederation, "scope", "use portal or federation")
	if err := c.Err(); err != nil {
		return Page{}, err
	}
	coverage := s.Coverage(q)
	if q.Scope == ScopePortal {
		if len(q.Portals) > 0 && !slices.Contains(q.Portals, "") && !slices.Contains(q.Portals, localPortal) {
			return Page{Results: []Result{}, Facets: map[string][]FacetCount{}, Coverage: coverage}, nil
		}
		q.Portals = []string{localPortal}
	}
	page, err := s.index.Search(q)
	page.Coverage = coverage
	if err != nil {
		return page, err
	}
	if !s.asksOthers(q) {
		q.Wide = false
		page.putFirst(s.exactMatch(ctx, actor, q), q.Limit)
		return page, nil
	}
	meant := s.resolveAsync(ctx, actor, q)
	if page, err = s.addRemote(ctx, q, page); err != nil {
		return page, err
	}
	page.putFirst(meant(), q.Limit)
	return page, nil
}

// defaultLimit is the number of results of a page if Query.Limit is 0.
const defaultLimit = 20

// localPortal stands for this portal in Query.Portals.
const localPortal = "local"

// State returns a number that changes whenever results of Search may have changed. Read it before Search
// to use it as a cache key.
func (s *Service) State() uint64 { return s.index.State() }

// Count returns the number of agents in the index, including those of other portals.
func (s *Service) Count() int { return s.index.Len() }

// Own returns the number of this portal's agents in the index.
func (s *Service) Own() int { return s.index.Count("") }

// Read describes the agent at an address, to fill the registration form. An address without a scheme is tried with
// https and, on this machine only, with http. Without a kind, the error wraps an offer.ElsewhereError if agents answer
// at other addresses of the host only. With a kind, the secret is sent to the address; without a secret, that of the
// actor's agent of the given name is, "" for none, if it belongs to the origin of the address. The rate of an actor is
// limited, because each call is an outgoing request.
func (s *Service) Read(ctx context.Context, actor ident.Actor, name string, t Target) (Described, error) {
	if err := RequireWriter(actor); err != nil {
		return Described{}, err
	}
	t.Endpoint = strings.TrimSpace(t.Endpoint)
	if name != "" && t.Kind != "" && t.Secret == "" {
		a, err := s.ownedAgent(ctx, actor, name)
		if err != nil {
			return Described{}, err
		}
		if a.HasSecret && originOf(a.Endpoint) == originOf(t.Endpoint) {
			if now, stored, err := s.Open(ctx, a.ID); err == nil && now.Version == a.Version {
				t.Secret = stored
			}
		}
	}
	d, _, err := s.readTarget(ctx, actor, t)
	return d, err
}

// readTimeout is the longest wait for the description at an address while a person waits.
const readTimeout = 12 * time.Second

// readTarget returns the description of the agent at the target's address and the address that answered: the target's,
// with the scheme that it may lack.
func (s *Service) readTarget(ctx context.Context, actor ident.Actor, t Target) (d Described, at string, err error) {
	if wait, ok := s.reads.Allow(actor.ID); !ok {
		return Described{}, "", fault.Limited(wait, "You asked for many addresses in a short time. Wait a moment.")
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for _, t.Endpoint = range weborigin.WithScheme(t.Endpoint) {
		var c fault.Check
		checkEndpoint(&c, s.addresses, t.Endpoint, A2A)
		if err := c.Err(); err != nil {
			return Described{}, "", err
		}
		if t.Kind == "" {
			d, err = s.reader.Read(ctx, t.Endpoint)
		} else {
			d, err = s.reader.ReadAs(ctx, t)
		}
		if err == nil {
			return d, t.Endpoint, nil
		}
	}
	return d, "", err
}
