package hub

import (
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

func errNoAgent(name string) error {
	return fault.New(fault.NotFound, "There is no agent %.80q here. Search for it, or check the spelling.", name)
}

// Get returns an agent the actor may see, by name or handle. One of another
// portal is as it was learnt: see Agent.Elsewhere.
func (s *Service) Get(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) && !actor.May(ident.ChatWrite) {
		return Agent{}, fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.AgentsRead)
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

// Listed returns an agent by name that Search may find, whoever asks: its
// owner sees no more of it here than others.
func (s *Service) Listed(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if !actor.May(ident.AgentsRead) {
		return Agent{}, fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.AgentsRead)
	}
	a, err := s.Anywhere(ctx, actor, name)
	if err == nil && !a.Listable() {
		return Agent{}, errNoAgent(name)
	}
	return a, err
}

// Callable returns an agent the actor may give work to, of this portal or, by
// its handle or id in the network, of another one: see Met and Anywhere for those.
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

// Addressed returns the agent that a protocol endpoint's URL names: of this portal as Get does, of
// another one as Callable does.
func (s *Service) Addressed(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if h, ok := ident.ParseHandle(name, s.cfg.Portal); ok && h.Portal != "" {
		return s.Callable(ctx, actor, name)
	}
	return s.Get(ctx, actor, name)
}

// Open returns an agent with its opened credential, for the one call about to
// be made. It is for the runtime, which checked nothing yet: it refuses
// agents that take no work any more.
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
	// Read again: a credential belongs to the address it was given for, and
	// the agent may have been edited between the two reads.
	if now, err := s.store.AgentByID(ctx, agentID); err != nil {
		return Agent{}, "", err
	} else if now.Version != a.Version {
		return Agent{}, "", fault.New(fault.Unavailable, "%s was changed at this very moment. Ask again.", a.Name)
	}
	secret, err := s.sealer.Open(sealed, agentID)
	return a, secret, err
}

// Mine lists the actor's agents.
func (s *Service) Mine(ctx context.Context, actor ident.Actor) ([]Agent, error) {
	if !actor.IsPerson() {
		return nil, fault.New(fault.Unauthenticated, "Sign in to see your agents.")
	}
	if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) {
		return nil, fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.AgentsRead)
	}
	return s.store.AgentsOf(ctx, actor.ID)
}

// maxCursor bounds a cursor in bytes. The cursor of a long text holds the match of each of its
// words.
const maxCursor = 16 << 10

// Search finds public agents.
func (s *Service) Search(ctx context.Context, actor ident.Actor, q Query) (Page, error) {
	if !actor.May(ident.AgentsRead) {
		return Page{}, fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.AgentsRead)
	}
	var c fault.Check
	c.Field(len(q.Text) <= 500, "q", "use at most 500 characters")
	c.Field(len(q.Cursor) <= maxCursor, "cursor", "is not a cursor of this search")
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	c.Field(q.Limit >= 1 && q.Limit <= 100, "limit", "use 1 to 100")
	c.Field(q.Sort == "" || slices.Contains(Sorts, q.Sort), "sort", "use relevance, name, newest or updated")
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

// defaultLimit is how many results a page has.
const defaultLimit = 20

// localPortal is this portal in Query.Portals.
const localPortal = "local"

// State changes whenever results of Search may have changed: the same state gives the same pages.
// Read it before Search.
func (s *Service) State() uint64 { return s.index.State() }

// Count is the number of agents that searches find, those of other portals
// among them.
func (s *Service) Count() int { return s.index.Len() }

// Own is the number of this portal's agents that searches find.
func (s *Service) Own() int { return s.index.Count("") }

// Read describes the agent found at an address, for a form to be filled.
func (s *Service) Read(ctx context.Context, actor ident.Actor, address string) (Described, error) {
	if err := RequireWriter(actor); err != nil {
		return Described{}, err
	}
	return s.readTarget(ctx, actor, Target{Endpoint: strings.TrimSpace(address)})
}

// readTimeout is how long a person waits for the card of an address.
const readTimeout = 12 * time.Second

func (s *Service) readTarget(ctx context.Context, actor ident.Actor, t Target) (Described, error) {
	if wait, ok := s.reads.Allow(actor.ID); !ok {
		return Described{}, fault.Limited(wait, "You asked for many addresses in a short time. Wait a moment.")
	}
	var c fault.Check
	checkEndpoint(&c, s.addresses, t.Endpoint, A2A)
	if err := c.Err(); err != nil {
		return Described{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if t.Kind == "" {
		return s.reader.Read(ctx, t.Endpoint)
	}
	return s.reader.ReadAs(ctx, t)
}
