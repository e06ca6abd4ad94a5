package hub

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"iter"
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
	// Loopback is true when the portal itself is on this machine only.
	Loopback bool
	// Model is the portal's own model, empty when it has none; ModelHost is
	// where it runs, empty when that is this very machine.
	Model, ModelHost string
	// Moved, when set, is called after the right to act as an agent may have
	// changed: it was given away, shared no longer, withdrawn or removed. It
	// must not block for long.
	Moved func(agentID string)
	// Told, when set, is called after accounts were left a notice. It must
	// not block.
	Told func(n Notice, accounts []string)
	Log  *slog.Logger
}

// Service is the directory of one portal. Create it with New, fill the index
// with Load, and keep Run running for liveness.
type Service struct {
	store   Store
	index   Index
	prober  Prober
	reader  Reader
	witness Witness
	trier   Trier
	sealer  Sealer
	cfg     Config

	// reads bounds how often somebody makes the portal fetch an address,
	// tries how often somebody makes an agent work before it is published.
	reads, tries *limit.Keyed
	stores       *limit.Keyed  // keyed by who stores
	looks        *limit.Keyed  // at names
	trying       chan struct{} // the places of tries under way
	// reportsBy and callsBy are keyed by who acts; the latter by agent too.
	reportsBy, callsBy *limit.Keyed
	callsOn            dayCalls
	// shares bounds how often somebody makes others co-owners or offers them
	// agents: each of that is a notice.
	shares  *limit.Keyed
	probes  chan probeJob
	drawing chan struct{} // the place for a picture being drawn
	edits   edits
}

// Ports is what the service needs of others.
type Ports struct {
	Store   Store
	Index   Index
	Prober  Prober
	Reader  Reader
	Witness Witness
	Trier   Trier
	Sealer  Sealer
}

// New returns a service over its ports.
func New(ports Ports, cfg Config) *Service {
	return &Service{
		store: ports.Store, index: ports.Index, prober: ports.Prober, reader: ports.Reader, witness: ports.Witness, trier: ports.Trier,
		sealer: ports.Sealer, cfg: cfg,
		reads:     limit.New(2*time.Second, 20, 50_000),
		looks:     limit.New(200*time.Millisecond, 100, 50_000),
		trying:    make(chan struct{}, maxTrying),
		stores:    limit.New(time.Second, storeBurst, 50_000),
		tries:     limit.New(5*time.Second, 12, 50_000),
		shares:    limit.New(30*time.Second, 40, 50_000),
		reportsBy: limit.New(10*time.Minute, 5, 50_000),
		callsBy:   limit.New(time.Second, 60, 200_000),
		probes:    make(chan probeJob, 256),
		drawing:   make(chan struct{}, 1),
	}
}

// rules is what a draft is checked against.
func (s *Service) rules() rules {
	return rules{kinds: s.cfg.Kinds, checkURL: s.cfg.CheckURL, model: s.cfg.Model}
}

// apply puts a draft over an agent and checks the outcome, also what only the
// store knows.
func (s *Service) apply(ctx context.Context, d Draft, a *Agent) error {
	err := d.apply(a, s.rules())
	if err == nil && a.Publisher != "" && !s.controls(ctx, a.OwnerID, a.Publisher) {
		text := "prove first that you control this domain, on your account page"
		err = &fault.Error{Kind: fault.Invalid, Safe: "publisher: " + text, Fields: map[string]string{"publisher": text}}
	}
	if err == nil && d.Limits != nil {
		for _, name := range a.Limits.Listed {
			if _, lerr := s.store.Account(ctx, name); fault.Is(lerr, fault.NotFound) {
				text := "there is nobody called " + name + " on this portal"
				err = &fault.Error{Kind: fault.Invalid, Safe: "limits.listed: " + text, Fields: map[string]string{"limits.listed": text}}
				break
			}
		}
	}
	if err == nil && d.Icon != nil && a.Icon != "" {
		if _, ierr := s.store.Icon(ctx, a.Icon); ierr != nil {
			err = errIcon("send the picture again")
		}
	}
	return err
}

// Kinds lists the kinds people may register.
func (s *Service) Kinds() []Kind { return slices.Clone(s.cfg.Kinds) }

// Model is the portal's own model, empty when it has none.
func (s *Service) Model() string { return s.cfg.Model }

// TextGoesTo is where what is said to an agent ends up: a host, or words for
// one, empty when it stays on this portal.
func (s *Service) TextGoesTo(a Agent) string {
	switch {
	case a.Portal != "":
		return a.Portal
	case a.Endpoint != "":
		return a.Host()
	case a.Kind == Prompt:
		return s.cfg.ModelHost
	case a.Kind == Link:
		return "a program of " + a.OwnerName
	}
	return ""
}

// Portal is the portal's part of handles.
func (s *Service) Portal() string { return s.cfg.Portal }

// Load puts every listed agent into the index.
func (s *Service) Load(ctx context.Context) error {
	s.edits.begin()
	var err error
	next, stop := iter.Pull(func(yield func(Agent) bool) {
		err = s.store.AllAgents(ctx, func(a Agent) bool { return ctx.Err() == nil && yield(listed(a)) })
	})
	s.index.Load(next)
	stop()
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

func (s *Service) moved(agentID string) {
	if s.cfg.Moved != nil {
		s.cfg.Moved(agentID)
	}
}

// list puts an agent into the index as it was just stored; unlist takes it out.
func (s *Service) list(a Agent) {
	s.edits.note(a.ID)
	s.index.Put(listed(a))
}

// listed is an agent without what no list shows.
func listed(a Agent) Agent {
	a.Config = nil
	return a
}

// listAll is list for many agents that are new.
func (s *Service) listAll(all []Agent) {
	for _, a := range all {
		s.edits.note(a.ID)
	}
	next := 0
	s.index.Load(func() (Agent, bool) {
		if next == len(all) {
			return Agent{}, false
		}
		next++
		return listed(all[next-1]), true
	})
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
		if a.OwnerID != ownerID {
			continue // shared with it: its owner is still there
		}
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
	if err := s.apply(ctx, d, &a); err != nil {
		return Agent{}, err
	}
	if n, err := s.store.CountAgents(ctx, actor.ID); err != nil {
		return Agent{}, err
	} else if n >= MaxAgentsPerOwner {
		return Agent{}, fault.New(fault.Conflict, "You have %d agents already; remove one first.", MaxAgentsPerOwner)
	}
	var sealed []byte
	if d.Secret != nil && *d.Secret != "" {
		sealed = s.sealer.Seal(*d.Secret, a.ID)
		a.HasSecret = true
	}
	if err := s.mayStore(actor, a); err != nil {
		return Agent{}, err
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
	if d.Endpoint == nil || strings.TrimSpace(*d.Endpoint) == "" {
		return d, nil
	}
	must := d.Name == nil || d.Kind == nil
	if !must {
		// What the address itself must say of these kinds.
		need, asks := map[Kind]string{A2A: "binding", MCP: "tools"}[*d.Kind]
		if _, told := d.Config[need]; !asks || told {
			return d, nil
		}
	}
	if !must {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, consultWait)
		defer cancel()
	}
	typed := *d.Endpoint
	t := Target{Endpoint: strings.TrimSpace(typed)}
	if d.Kind != nil {
		t.Kind = *d.Kind
	}
	if d.Secret != nil && t.Kind != "" {
		t.Secret, t.Config = *d.Secret, d.settings()
	}
	described, err := s.read(ctx, actor, t)
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
	list := func(p **[]string, v []string) {
		if *p == nil && len(v) > 0 {
			*p = &v
		}
	}
	list(&d.InputModes, in.InputModes)
	list(&d.OutputModes, in.OutputModes)
	// The tools of an MCP server are its skills.
	if d.Skills == nil || in.Kind == MCP && len(*d.Skills) == 0 {
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

// Update stores a new version of one of the actor's agents. A draft that
// changes nothing stores nothing and returns the agent as it is.
func (s *Service) Update(ctx context.Context, actor ident.Actor, name string, d Draft) (Agent, error) {
	a, err := s.owned(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if d.Name != nil && strings.ToLower(strings.TrimSpace(*d.Name)) != a.Name {
		return Agent{}, &fault.Error{Kind: fault.Invalid, Safe: "A name cannot be changed, because others know the agent by it.", Fields: map[string]string{"name": "cannot be changed; register a new agent instead"}}
	}
	if d.BaseVersion != 0 && d.BaseVersion != a.Version {
		return Agent{}, errStale(d.BaseVersion, a.Version)
	}
	if err := s.mayStatus(actor, a, d); err != nil {
		return Agent{}, err
	}
	next := a
	if d.onlyStatus() {
		// Withdrawing must work whatever has become of the rest.
		next.Status = *d.Status
		next.Status.Message, next.Status.Held = clean(next.Status.Message), a.Status.Held
		if err := checkStatus(next.Status); err != nil {
			return Agent{}, err
		}
	} else if err := s.apply(ctx, d, &next); err != nil {
		return Agent{}, err
	}
	if err := s.mayUse(ctx, actor, a, next); err != nil {
		return Agent{}, err
	}
	// Only the operator gets here with another status of an agent that is held.
	// What an operator withdraws who does not own it is held.
	next.Status.Held = next.Status.State == Withdrawn && (a.Status.Held || a.Status.State != Withdrawn && !owns(actor, a))
	sealed := s.keepSecret(a, &next)
	switch {
	case d.Secret != nil && *d.Secret == "" && a.HasSecret:
		sealed, next.HasSecret = []byte{}, false
	case d.Secret != nil && *d.Secret != "" && sealed == nil && s.knows(ctx, a, *d.Secret):
		// Given again, it changes nothing.
	case d.Secret != nil && *d.Secret != "":
		sealed, next.HasSecret = s.sealer.Seal(*d.Secret, a.ID), true
	}
	if sealed == nil && len(Diff(a, next)) == 0 && a.Status == next.Status {
		return a, nil
	}
	note := d.note()
	if note == "" && a.Status.State != next.Status.State {
		note = map[string]string{Active: "Published", Deprecated: "Marked as deprecated", Withdrawn: "Withdrawn"}[next.Status.State]
	}
	published := a.Status.State == StatusDraft && next.Status.State == Active
	moved := a.Endpoint != next.Endpoint || a.Kind != next.Kind
	if next, err = s.save(ctx, actor, next, a.Version, sealed, note); err != nil {
		return Agent{}, err
	}
	if next.Status.Held && !a.Status.Held {
		s.moved(next.ID)
		s.tellOwners(ctx, next, Notice{Kind: NoticeHeld, Text: "The operator of this portal withdrew " + next.Name + ". " + next.Status.Message})
	}
	if published {
		s.cfg.Log.Info("agent published", "agent", next.ID, "name", next.Name)
	}
	if sealed == nil && !moved && !published && string(a.Config) == string(next.Config) {
		return next, nil // what was last seen of it still holds
	}
	return s.checked(ctx, next), nil
}

// knows reports whether the stored credential of an agent is this one.
func (s *Service) knows(ctx context.Context, a Agent, secret string) bool {
	if !a.HasSecret {
		return false
	}
	sealed, err := s.store.SealedSecret(ctx, a.ID)
	if err != nil {
		return false
	}
	stored, err := s.sealer.Open(sealed, a.ID)
	return err == nil && subtle.ConstantTimeCompare([]byte(stored), []byte(secret)) == 1
}

// mayStatus refuses changes of status that are not the actor's to make.
func (s *Service) mayStatus(actor ident.Actor, a Agent, d Draft) error {
	if d.Status == nil || d.Status.State == a.Status.State && d.Status.Message == a.Status.Message {
		return nil
	}
	if a.Status.Held && !(actor.IsOperator() && actor.May(ident.Admin)) {
		return fault.New(fault.Forbidden, "The operator of this portal withdrew %s; ask them to give it back.", a.Name)
	}
	if d.Status.State == StatusDraft && a.Status.State != StatusDraft {
		return &fault.Error{Kind: fault.Invalid, Safe: "status: it was published already; withdraw it instead", Fields: map[string]string{"status": "it was published already; withdraw it instead"}}
	}
	return nil
}

// Delete removes one of the actor's agents. Its name is never given away.
func (s *Service) Delete(ctx context.Context, actor ident.Actor, name string) error {
	a, err := s.given(ctx, actor, name)
	if err != nil {
		return err
	}
	if err := s.store.DeleteAgent(ctx, a.ID); err != nil {
		return err
	}
	s.unlist(a.ID)
	s.moved(a.ID)
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
	if !sees(actor, a) {
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
	if (a.Visibility == Private || a.Status.State == StatusDraft) && !owns(actor, a) {
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
	c.Field(q.Sort == "" || slices.Contains(Sorts, q.Sort), "sort", "use relevance, name, newest or updated")
	among := func(field string, values, known []string) {
		for _, v := range values {
			c.Field(slices.Contains(known, v), field, "%.40q is none of %s", v, strings.Join(known, ", "))
		}
	}
	among("proof", q.Proofs, []string{Hosted, Proved, Unproven})
	among("signed", q.Signed, []string{"true", "false"})
	among("modality", q.Modalities, []string{"text", "image", "audio", "video", "data", "file"})
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
	return s.read(ctx, actor, Target{Endpoint: strings.TrimSpace(address)})
}

// readTimeout is how long somebody waits for the card of an address.
const readTimeout = 12 * time.Second

func (s *Service) read(ctx context.Context, actor ident.Actor, t Target) (Described, error) {
	if wait, ok := s.reads.Allow(actor.ID); !ok {
		return Described{}, fault.Limited(wait, "You asked for many addresses in a short time. Wait a moment.")
	}
	var c fault.Check
	checkEndpoint(&c, s.cfg.CheckURL, t.Endpoint, "https://example.org/a2a")
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

// EnsureBuiltin registers an agent of the portal itself, or brings it up to
// date after an upgrade. Built-in agents are alive while the portal is.
func (s *Service) EnsureBuiltin(ctx context.Context, d Draft) error {
	now := clock.Now()
	live := Liveness{State: Alive, CheckedAt: now, Reason: "Runs on this portal."}
	have, err := s.store.AgentByName(ctx, *d.Name)
	if fault.Is(err, fault.NotFound) {
		a := Agent{ID: ident.NewID(), Kind: Builtin, Version: 1, CreatedAt: now, UpdatedAt: now, Liveness: live}
		if err := d.apply(&a, rules{kinds: []Kind{Builtin}, checkURL: s.cfg.CheckURL}); err != nil {
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
	if err := d.apply(&a, rules{kinds: []Kind{Builtin}, checkURL: s.cfg.CheckURL}); err != nil {
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
