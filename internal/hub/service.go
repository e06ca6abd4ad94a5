package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
)

// Config is what a portal decides about its directory.
type Config struct {
	// Portal is the host (and port, if not the default) of the portal's URL.
	Portal string
	// Kinds are the kinds people may register, in the order forms show them.
	Kinds []Kind
	// CheckURL says, in words for the form, why an address may not be called,
	// without looking it up.
	CheckURL func(string) error
	Log      *slog.Logger
}

// Service is the directory of one portal. Create it with New, fill the index
// with Load, and keep Run running for liveness.
type Service struct {
	store  Store
	index  Index
	prober Prober
	reader Reader
	sealer Sealer
	cfg    Config

	// reads bounds how often somebody makes the portal fetch an address.
	reads  *limit.Keyed
	probes chan probeJob
	edits  edits
}

// New returns a service over its ports.
func New(store Store, index Index, prober Prober, reader Reader, sealer Sealer, cfg Config) *Service {
	return &Service{
		store: store, index: index, prober: prober, reader: reader, sealer: sealer, cfg: cfg,
		reads:  limit.New(2*time.Second, 20, 50_000),
		probes: make(chan probeJob, 256),
	}
}

// Kinds lists the kinds people may register.
func (s *Service) Kinds() []Kind { return slices.Clone(s.cfg.Kinds) }

// Portal is the portal's part of handles.
func (s *Service) Portal() string { return s.cfg.Portal }

// Load puts every listed agent into the index.
func (s *Service) Load(ctx context.Context) error {
	s.edits.begin()
	err := s.store.AllAgents(ctx, func(a Agent) bool {
		s.index.Put(a)
		return ctx.Err() == nil
	})
	// What was read may be older than what was edited meanwhile.
	for _, id := range s.edits.end() {
		s.reindex(ctx, id)
	}
	return err
}

// edits remembers, while the index is filled from the store, which agents were
// changed. The zero value remembers nothing.
type edits struct {
	mu  sync.Mutex // guards ids
	ids map[string]bool
}

func (e *edits) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ids = make(map[string]bool)
}

func (e *edits) note(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ids != nil {
		e.ids[id] = true
	}
}

func (e *edits) end() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := slices.Sorted(maps.Keys(e.ids))
	e.ids = nil
	return ids
}

// list puts an agent into the index as it was just stored; unlist takes it out.
func (s *Service) list(a Agent) {
	s.edits.note(a.ID)
	s.index.Put(a)
}

func (s *Service) unlist(id string) {
	s.edits.note(id)
	s.index.Remove(id)
}

// OwnerChanged brings an account's agents in the index up to date after the
// account was disabled or enabled.
func (s *Service) OwnerChanged(ctx context.Context, ownerID string, disabled bool) error {
	agents, err := s.store.AgentsOf(ctx, ownerID)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if disabled {
			s.unlist(a.ID)
		} else {
			s.list(a)
		}
	}
	return nil
}

// Publish registers an agent of the actor. A draft with nothing but the
// endpoint of an A2A agent is filled from its card. An endpoint that does not
// answer is registered all the same, as unreachable.
func (s *Service) Publish(ctx context.Context, actor ident.Actor, d Draft) (Agent, error) {
	if err := s.writer(actor); err != nil {
		return Agent{}, err
	}
	d, err := s.consult(ctx, actor, d)
	if err != nil {
		return Agent{}, err
	}
	now := clock.Now()
	a := Agent{ID: ident.NewID(), OwnerID: actor.ID, OwnerName: actor.Name, Version: 1, CreatedAt: now, UpdatedAt: now, Liveness: Liveness{State: Unknown, Reason: "Not checked yet."}}
	if err := d.apply(&a, s.cfg.Kinds, s.cfg.CheckURL); err != nil {
		return Agent{}, err
	}
	mine, err := s.store.AgentsOf(ctx, actor.ID)
	if err != nil {
		return Agent{}, err
	}
	if len(mine) >= MaxAgentsPerOwner {
		return Agent{}, fault.New(fault.Conflict, "You have %d agents already; remove one first.", MaxAgentsPerOwner)
	}
	var sealed []byte
	if d.Secret != nil && *d.Secret != "" {
		sealed = s.sealer.Seal(*d.Secret, a.ID)
		a.HasSecret = true
	}
	if err := s.store.CreateAgent(ctx, a, sealed); err != nil {
		if fault.Is(err, fault.Conflict) {
			return Agent{}, &fault.Error{Kind: fault.Conflict, Safe: "The name " + a.Name + " is taken. Choose another.", Fields: map[string]string{"name": "taken; choose another"}, Err: err}
		}
		return Agent{}, err
	}
	s.list(a)
	s.cfg.Log.Info("agent registered", "agent", a.ID, "name", a.Name, "kind", string(a.Kind))
	return s.checked(ctx, a), nil
}

// consult fills a draft from what its address says of itself: with nothing but
// the endpoint it must, for an A2A agent it does if the agent answers, because
// the card says how it is spoken to.
func (s *Service) consult(ctx context.Context, actor ident.Actor, d Draft) (Draft, error) {
	must := d.Name == nil || d.Kind == nil
	_, told := d.Config["binding"]
	if d.Endpoint == nil || !must && (*d.Kind != A2A || told) {
		return d, nil
	}
	if !must {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, consultWait)
		defer cancel()
	}
	typed := *d.Endpoint
	described, err := s.read(ctx, actor, typed)
	switch {
	case err != nil && must:
		return d, err
	case err == nil && must && d.Kind != nil && described.Kind != *d.Kind:
		text := fmt.Sprintf("there is no agent of kind %s there; it looks like one of kind %s", *d.Kind, described.Kind)
		return d, &fault.Error{Kind: fault.Invalid, Safe: "endpoint: " + text, Fields: map[string]string{"endpoint": text}}
	case err != nil || d.Kind != nil && described.Kind != *d.Kind:
		return d, nil
	}
	d = described.fill(d)
	if d.Secret != nil && *d.Secret != "" && origin(typed) != origin(*d.Endpoint) {
		return d, &fault.Error{Kind: fault.Invalid, Safe: "endpoint: its card names " + *d.Endpoint + " as the address to call; give that one, so that it is clear where the credential goes",
			Fields: map[string]string{"endpoint": "its card names " + *d.Endpoint + " as the address to call; give that one, so that it is clear where the credential goes"}}
	}
	return d, nil
}

// consultWait is how long a registration that says everything itself waits
// for the agent's card.
const consultWait = 3 * time.Second

// fill puts a description under a draft: what the draft says wins.
func (in Described) fill(d Draft) Draft {
	str := func(p **string, v string) {
		if *p == nil && v != "" {
			*p = &v
		}
	}
	str(&d.Name, in.Name)
	str(&d.Title, in.Title)
	str(&d.Description, in.Description)
	if in.Endpoint != "" {
		d.Endpoint = &in.Endpoint
	}
	if d.Kind == nil {
		d.Kind = &in.Kind
	}
	if d.Skills == nil {
		d.Skills = &in.Skills
	}
	config := make(map[string]json.RawMessage)
	if len(in.Config) > 0 {
		_ = json.Unmarshal(in.Config, &config) // our own JSON
	}
	for k, v := range d.Config {
		config[k] = v
	}
	d.Config = config
	return d
}

// writer demands an account whose credential may register agents.
func (s *Service) writer(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in to register agents.")
	}
	if !actor.May(ident.AgentsWrite) {
		return fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.AgentsWrite)
	}
	return nil
}

// owned returns an agent the actor may change.
func (s *Service) owned(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if err := s.writer(actor); err != nil {
		return Agent{}, err
	}
	a, err := s.Get(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if a.OwnerID != actor.ID && !(actor.IsOperator() && actor.May(ident.Admin)) || a.Kind == Builtin {
		if a.Visibility == Private {
			return Agent{}, errNoAgent(name)
		}
		return Agent{}, fault.New(fault.Forbidden, "Only the owner of %s may do that.", a.Name)
	}
	return a, nil
}

// MayEdit reports whether the actor may change the agent.
func (s *Service) MayEdit(actor ident.Actor, a Agent) bool {
	return a.Kind != Builtin && a.Portal == "" && actor.IsPerson() && actor.May(ident.AgentsWrite) &&
		(a.OwnerID == actor.ID || actor.IsOperator() && actor.May(ident.Admin))
}

// Update stores a new version of one of the actor's agents.
func (s *Service) Update(ctx context.Context, actor ident.Actor, name string, d Draft) (Agent, error) {
	a, err := s.owned(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if d.Name != nil && strings.ToLower(strings.TrimSpace(*d.Name)) != a.Name {
		return Agent{}, &fault.Error{Kind: fault.Invalid, Safe: "A name cannot be changed, because others know the agent by it.", Fields: map[string]string{"name": "cannot be changed; register a new agent instead"}}
	}
	base := a.Version
	if d.BaseVersion != 0 && d.BaseVersion != base {
		return Agent{}, fault.New(fault.Conflict, "The agent was changed since you opened it (version %d, now %d). Load it again.", d.BaseVersion, base)
	}
	before := a.Endpoint
	if d.onlyStatus() {
		// Withdrawing must work whatever has become of the rest.
		a.Status = *d.Status
		a.Status.Message = clean(a.Status.Message)
		if err := checkStatus(a.Status); err != nil {
			return Agent{}, err
		}
	} else if err := d.apply(&a, s.cfg.Kinds, s.cfg.CheckURL); err != nil {
		return Agent{}, err
	}
	var sealed []byte
	switch {
	case d.Secret != nil && *d.Secret == "":
		sealed, a.HasSecret = []byte{}, false
	case d.Secret != nil:
		sealed, a.HasSecret = s.sealer.Seal(*d.Secret, a.ID), true
	case a.HasSecret && origin(before) != origin(a.Endpoint):
		// A credential belongs to the origin it was given for.
		sealed, a.HasSecret = []byte{}, false
	}
	a.Version, a.UpdatedAt = base+1, clock.Now()
	if err := s.store.UpdateAgent(ctx, a, base, sealed, actor); err != nil {
		return Agent{}, err
	}
	s.list(a)
	return s.checked(ctx, a), nil
}

// Delete removes one of the actor's agents. Its name is never given away.
func (s *Service) Delete(ctx context.Context, actor ident.Actor, name string) error {
	a, err := s.owned(ctx, actor, name)
	if err != nil {
		return err
	}
	if err := s.store.DeleteAgent(ctx, a.ID); err != nil {
		return err
	}
	s.unlist(a.ID)
	s.cfg.Log.Info("agent removed", "agent", a.ID, "name", a.Name)
	return nil
}

func errNoAgent(name string) error {
	return fault.New(fault.NotFound, "There is no agent %.80q here. Search for it, or check the spelling.", name)
}

// Get returns an agent the actor may see, by name or handle.
func (s *Service) Get(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) && !actor.May(ident.ChatWrite) {
		return Agent{}, fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.AgentsRead)
	}
	h, ok := ident.ParseHandle(name, s.cfg.Portal)
	if !ok || h.Portal != "" {
		return Agent{}, errNoAgent(name)
	}
	a, err := s.store.AgentByName(ctx, h.Name)
	if fault.Is(err, fault.NotFound) {
		return Agent{}, errNoAgent(name)
	}
	if err != nil {
		return Agent{}, err
	}
	if a.Visibility == Private && a.OwnerID != actor.ID && !(actor.IsOperator() && actor.May(ident.Admin)) {
		return Agent{}, errNoAgent(name)
	}
	return a, nil
}

// Callable returns an agent the actor may give work to.
func (s *Service) Callable(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	a, err := s.Get(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if a.Visibility == Private && a.OwnerID != actor.ID {
		return Agent{}, errNoAgent(name)
	}
	if a.Status.State == Withdrawn {
		return Agent{}, fault.New(fault.Conflict, "%s was withdrawn by its owner and takes no work. %s", a.Name, a.Status.Message)
	}
	return a, nil
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

// Versions lists what an agent was, newest first, for those who may see it.
// What it said while it was private is for those who may edit it.
func (s *Service) Versions(ctx context.Context, actor ident.Actor, name string) ([]Agent, error) {
	a, err := s.Get(ctx, actor, name)
	if err != nil {
		return nil, err
	}
	list, err := s.store.Versions(ctx, a.ID)
	if !s.MayEdit(actor, a) && a.OwnerID != actor.ID {
		list = slices.DeleteFunc(list, func(v Agent) bool { return v.Visibility == Private })
	}
	for i := range list {
		list[i].Name, list[i].OwnerName, list[i].OwnerID = a.Name, a.OwnerName, a.OwnerID
	}
	return list, err
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

// Search finds public agents.
func (s *Service) Search(ctx context.Context, actor ident.Actor, q Query) (Page, error) {
	if !actor.May(ident.AgentsRead) {
		return Page{}, fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.AgentsRead)
	}
	var c fault.Check
	c.Field(len(q.Text) <= 500, "q", "use at most 500 characters")
	c.Field(len(q.Cursor) <= 500, "cursor", "is not a cursor of this search")
	if q.Limit == 0 {
		q.Limit = 20
	}
	c.Field(q.Limit >= 1 && q.Limit <= 100, "limit", "use 1 to 100")
	for _, l := range q.Live {
		c.Field(slices.Contains([]Live{Alive, NeedsAuth, WrongProtocol, Unreachable, Unknown}, Live(l)), "live", "%.80q is no state of liveness; use alive, needs_auth, wrong_protocol, unreachable or unknown", l)
	}
	if err := c.Err(); err != nil {
		return Page{}, err
	}
	return s.index.Search(q)
}

// State tells whether what Search finds has changed: the same state, the same
// pages. Read it before Search.
func (s *Service) State() uint64 { return s.index.State() }

// Count is the number of listed agents.
func (s *Service) Count() int { return s.index.Len() }

// Read describes the agent found at an address, for a form to be filled.
func (s *Service) Read(ctx context.Context, actor ident.Actor, address string) (Described, error) {
	if err := s.writer(actor); err != nil {
		return Described{}, err
	}
	return s.read(ctx, actor, address)
}

// readTimeout is how long somebody waits for the card of an address.
const readTimeout = 12 * time.Second

func (s *Service) read(ctx context.Context, actor ident.Actor, address string) (Described, error) {
	if wait, ok := s.reads.Allow(actor.ID); !ok {
		return Described{}, fault.Limited(wait, "You asked for many addresses in a short time. Wait a moment.")
	}
	var c fault.Check
	checkEndpoint(&c, s.cfg.CheckURL, strings.TrimSpace(address), "https://example.org/a2a")
	if err := c.Err(); err != nil {
		return Described{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return s.reader.Read(ctx, strings.TrimSpace(address))
}

// EnsureBuiltin registers an agent of the portal itself, or brings it up to
// date after an upgrade. Built-in agents are alive while the portal is.
func (s *Service) EnsureBuiltin(ctx context.Context, d Draft) error {
	now := clock.Now()
	live := Liveness{State: Alive, CheckedAt: now, Reason: "Runs on this portal."}
	have, err := s.store.AgentByName(ctx, *d.Name)
	if fault.Is(err, fault.NotFound) {
		a := Agent{ID: ident.NewID(), Kind: Builtin, Version: 1, CreatedAt: now, UpdatedAt: now, Liveness: live}
		if err := d.apply(&a, []Kind{Builtin}, s.cfg.CheckURL); err != nil {
			return err
		}
		err := s.store.CreateAgent(ctx, a, nil)
		if fault.Is(err, fault.Conflict) { // an account, or an agent that is gone
			s.cfg.Log.Warn("the name of a built-in agent is taken; it stays off", "name", a.Name)
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	if have.Kind != Builtin {
		s.cfg.Log.Warn("a registered agent has the name of a built-in one, which stays off", "name", have.Name)
		return nil
	}
	a := have
	if err := d.apply(&a, []Kind{Builtin}, s.cfg.CheckURL); err != nil {
		return err
	}
	if same(a, have) {
		return nil
	}
	a.Version, a.UpdatedAt = have.Version+1, now
	return s.store.UpdateAgent(ctx, a, have.Version, nil, ident.Actor{Kind: ident.System})
}

func same(a, b Agent) bool {
	x, _ := json.Marshal([]any{a.Title, a.Description, a.Skills, a.Visibility})
	y, _ := json.Marshal([]any{b.Title, b.Description, b.Skills, b.Visibility})
	return string(x) == string(y)
}
