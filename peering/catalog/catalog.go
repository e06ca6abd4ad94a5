// Package catalog keeps the agents of other portals in this portal's directory. It decides from the
// registry which portals' agents are displayed, and holds the summaries by which remote search chooses
// portals.
package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/livereport"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

// Directory is the directory that holds the agents. hub.Service implements it: Learn adds or replaces
// agents of other portals, Unlearn removes them by network id.
type Directory interface {
	Learn(list []hub.Agent)
	LearnAll(next func() (hub.Agent, bool))
	Unlearn(ids []string)
	Learned(id string) (hub.Agent, bool)
	LearnedAs(name, portal string) []hub.Agent
	LearnedFrom(portal string) []string
	// Builtin returns the built-in agent with that name of this portal.
	Builtin(name string) (hub.Agent, bool)
}

// Config is the configuration of a Catalog. Every field is required except those with a meaning of nil.
type Config struct {
	// Self is this portal's id, Host the host of its URL.
	Self record.PortalID
	Host string
	// Tiers returns the tier of this portal; nil means that it keeps all records.
	Tiers Tiers
	// Network is the network name that all records contain.
	Network  string
	Replica  federation.Replica
	Registry Registry
	// Directory receives the agents to display.
	Directory Directory
	// Packages receives the packages of other portals and the agents that run them; nil ignores both.
	Packages Packages
	// Verdicts returns the liveness of agents; nil leaves it unknown.
	Verdicts Verdicts
	Log      *slog.Logger
}

// Packages are the packages of other portals. packages.Service implements it.
type Packages interface {
	// TakeRecord adds or replaces the package in a record of the portal at a host, or the package that an agent runs.
	TakeRecord(host string, verified bool, a *record.Agent)
	// DropRecords removes those of a portal by network ids.
	DropRecords(portal record.PortalID, ids []string)
	// DropPortal removes those of a portal.
	DropPortal(portal record.PortalID)
}

// noPackages implements Packages by ignoring them.
type noPackages struct{}

func (noPackages) TakeRecord(string, bool, *record.Agent) {}
func (noPackages) DropRecords(record.PortalID, []string)  {}
func (noPackages) DropPortal(record.PortalID)             {}

// Registry holds the other portals and the operator's policy on their agents. federation.Peers implements
// it.
type Registry interface {
	federation.Registry
	// Imports reports whether the policy allows to display an agent.
	Imports(a *record.Agent) bool
	// Changed returns a channel that is closed at the next change of a portal or of the policy. A nil
	// channel means that changes are found only every settleEvery.
	Changed() <-chan struct{}
}

// Tiers returns how much this portal keeps of others, one of the record.Tier constants. federation.Tiers
// implements it.
type Tiers interface{ Tier() string }

// Verdicts returns the liveness of an agent by its network id, as judged from all reports. live.Service
// implements it.
type Verdicts interface {
	Verdict(portal record.PortalID, agentID string) livereport.Verdict
}

// LivenessOf converts a verdict to the form of the directory. Without any report the state is hub.Unknown.
func LivenessOf(v livereport.Verdict) hub.Liveness {
	l := hub.Liveness{State: hub.Unknown, CheckedAt: v.At, Reason: v.Reason}
	if v.Reach != 0 {
		l.State = hub.Live(v.Reach.String())
	}
	return l
}

// Catalog displays the agents of other portals in the directory: of each portal that the policy allows, as
// long as its head has not expired. It implements replication.Directory. Create it with New and keep Run
// running; it is safe for concurrent use.
type Catalog struct {
	cfg Config

	settling sync.Mutex // held by Reconcile, so that only one runs at a time
	wake     chan struct{}
	view     atomic.Pointer[view] // state for queries; never nil
	rules    atomic.Int64         // version of the policy; increased by Reread
	sought   soughtPortals

	mu       sync.Mutex // guards the fields below; may be locked while stand.turn is held
	portals  map[record.PortalID]*stand
	portable map[string][]listing // listings of agents with their own key, by agent id
	handles  map[string]string    // agent id by each handle (name@host) other than the displayed one
}

// stand is the state of one portal's agents in the directory.
type stand struct {
	id record.PortalID
	// turn guards the fields below. It is held while the portal's agents are added or removed, and while
	// the Replica is read for this purpose, so that records which Put receives meanwhile are added after
	// the older ones that were read.
	turn  sync.Mutex
	shown shown
	card  *record.Card // current card; valid while shown is not zero
}

// shown is how the agents of a portal are displayed; the zero value means that they are not.
type shown struct {
	host     string
	verified bool
	rules    int64 // Catalog.rules when the policy was applied
}

// Run calls Reconcile every settleEvery, because heads expire, and earlier after a change, but at most once
// in settlePause.
const (
	settleEvery = 2 * time.Second
	settlePause = 100 * time.Millisecond
)

// New returns a Catalog without agents. A nil Log discards the log.
func New(cfg Config) *Catalog {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Packages == nil {
		cfg.Packages = noPackages{}
	}
	c := &Catalog{cfg: cfg, wake: make(chan struct{}, 1), portals: make(map[record.PortalID]*stand),
		portable: make(map[string][]listing), handles: make(map[string]string)}
	c.view.Store(newView(cfg, nil, nil, clock.Now()))
	return c
}

// Load displays all agents that the Replica holds. It is called once at the start, see hub.Network. It
// fails only when ctx ends.
func (c *Catalog) Load(ctx context.Context) error {
	c.Reconcile(ctx)
	return ctx.Err()
}

// Run applies changes of the registry, the policy and the records to the directory until ctx ends.
func (c *Catalog) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		news := c.cfg.Registry.Changed()
		c.Reconcile(ctx)
		if !clock.Sleep(ctx, settlePause) {
			break
		}
		tick := time.NewTimer(settleEvery - settlePause)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-c.wake:
		case <-news:
		}
		tick.Stop()
	}
	return nil
}

// Reread must be called after the import policy changed: the next Reconcile applies it to all agents. It
// does not block.
func (c *Catalog) Reread() {
	c.rules.Add(1)
	c.Changed("")
}

// Changed implements replication.Directory. It wakes Run and does not block.
func (c *Catalog) Changed(record.PortalID) {
	select {
	case c.wake <- struct{}{}:
	default: // a Reconcile of all portals is pending already
	}
}

// Reconcile makes the directory match the registry and the policy now, and then replaces the view for
// queries. It returns when that is done.
func (c *Catalog) Reconcile(ctx context.Context) {
	c.settling.Lock()
	defer c.settling.Unlock()
	now := clock.Now()
	peers := c.cfg.Registry.Portals(ctx)
	want := c.wantedPortals(ctx, peers, now)
	// Agents are removed before others are added, because of two portals with one host only one is
	// displayed.
	for _, s := range c.listAll() {
		if want[s.id] != s.shownNow() {
			c.hideAgents(ctx, s, want[s.id])
		}
	}
	for _, p := range peers {
		if w, ok := want[p.ID]; ok && ctx.Err() == nil {
			c.fillAgents(ctx, c.stateOf(p.ID), w)
		}
	}
	c.view.Store(newView(c.cfg, peers, want, now))
}

// wantedPortals returns the portals with agents that should be displayed, and how. If several portals claim
// the same host, and one of them was verified at it, only that one is displayed.
func (c *Catalog) wantedPortals(ctx context.Context, peers []federation.Peer, now time.Time) map[record.PortalID]shown {
	want := make(map[record.PortalID]shown)
	proved := make(map[string]bool)
	rules := c.rules.Load()
	for _, p := range peers {
		if p.ID == "" || p.ID == c.cfg.Self || p.Host() == "" || strings.EqualFold(p.Host(), c.cfg.Host) ||
			!isCurrent(p, now) {
			continue
		}
		if d := c.cfg.Registry.Decide(ctx, p.ID, p.URL); !d.Show {
			continue
		}
		w := shown{p.Host(), p.Proven(now), rules}
		want[p.ID] = w
		proved[w.host] = proved[w.host] || w.verified
	}
	for id, w := range want {
		if proved[w.host] && !w.verified {
			delete(want, id)
		}
	}
	return want
}

// isCurrent reports whether a portal's state allows to display its agents and its head has not expired.
func isCurrent(p federation.Peer, now time.Time) bool {
	switch p.State {
	case federation.Pending, federation.Denied, federation.Quarantined, federation.Stale:
		return false
	}
	return p.HeadExpires.After(now)
}

func (c *Catalog) listAll() []*stand {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*stand, 0, len(c.portals))
	for _, s := range c.portals {
		list = append(list, s)
	}
	return list
}

func (c *Catalog) stateOf(id record.PortalID) *stand {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.portals[id]
	if s == nil {
		s = &stand{id: id}
		c.portals[id] = s
	}
	return s
}

func (s *stand) shownNow() shown {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.shown
}

// Clear implements replication.Directory: it removes the portal's agents and wakes Run, which reads them
// again.
func (c *Catalog) Clear(portal record.PortalID) {
	c.hideAgents(context.Background(), c.stateOf(portal), shown{})
	c.Changed(portal) // the next Reconcile reads the covered records again
}

// hideAgents removes the agents of a portal from the directory, unless want keeps them under the same host.
func (c *Catalog) hideAgents(ctx context.Context, s *stand, want shown) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.shown.host == "" || s.shown.host == want.host {
		return
	}
	ids := c.cfg.Directory.LearnedFrom(s.shown.host)
	own := string(s.id) + "/"
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, own) })
	s.shown = shown{}
	c.cfg.Directory.Unlearn(ids)
	c.cfg.Packages.DropPortal(s.id)
	c.dropListings(ctx, s.id)
}

// fillAgents adds the agents of a portal to the directory as want says. It reads the records that the
// Replica holds and a head covers. It does nothing if they are displayed this way already.
func (c *Catalog) fillAgents(ctx context.Context, s *stand, want shown) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.shown == want {
		return
	}
	card, err := c.Card(ctx, s.id)
	if err == nil {
		s.shown, s.card = want, card
		err = c.readAgents(ctx, s)
	}
	if err != nil {
		// The zero value makes the next Reconcile try again.
		s.shown = shown{}
		c.cfg.Log.Warn("read agents of a portal", "portal", s.id, "error", err)
	}
}

// Card returns the current card of a portal from the Replica. It is an error if the Replica has none.
func (c *Catalog) Card(ctx context.Context, id record.PortalID) (*record.Card, error) {
	wire, err := c.cfg.Replica.Card(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := record.Open(c.cfg.Network, wire)
	if err != nil {
		return nil, fmt.Errorf("card of %s: %w", id, err)
	}
	card, ok := r.Body.(*record.Card)
	if !ok {
		return nil, fmt.Errorf("card of %s is a %s", id, r.Type)
	}
	return card, nil
}

// batch is how many records one call of Directory.Learn adds when a portal is read.
const batch = 1024

// readAgents adds all covered agents of a portal to the directory. The caller holds s.turn.
func (c *Catalog) readAgents(ctx context.Context, s *stand) error {
	var list []*record.Record
	err := c.cfg.Replica.Covered(ctx, s.id, 0, func(wire []byte) bool {
		r, err := record.Open(c.cfg.Network, wire)
		if err != nil {
			c.cfg.Log.Warn("a kept record cannot be read", "portal", s.id, "error", err)
			return true
		}
		if list = append(list, r); len(list) == batch {
			c.putAgents(ctx, s, list)
			list = list[:0]
		}
		return ctx.Err() == nil
	})
	c.putAgents(ctx, s, list)
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// Put implements replication.Directory. Records of a portal that is not displayed are ignored; they are
// read when it is.
func (c *Catalog) Put(portal record.PortalID, list []*record.Record) {
	ctx := context.Background()
	c.mu.Lock()
	s := c.portals[portal]
	c.mu.Unlock()
	if s == nil {
		c.Changed(portal) // the next Reconcile reads the records from the Replica
		return
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.shown.host != "" {
		c.putAgents(ctx, s, list)
	}
}

// putAgents adds the agents in the records to the directory, and removes those that are deleted or that the
// policy excludes. The caller holds s.turn.
func (c *Catalog) putAgents(ctx context.Context, s *stand, list []*record.Record) {
	var out []string
	var seen []*record.Agent // packages, and agents that may run one
	in := make([]hub.Agent, 0, len(list))
	for _, r := range list {
		body, ok := r.Body.(*record.Agent)
		if !ok || r.Portal != s.id {
			continue
		}
		id := body.AgentID()
		switch gone := body.Deleted || !c.cfg.Registry.Imports(body); {
		case isPortable(id):
			c.noteListing(ctx, s, id, body.Name, gone)
		case gone:
			out = append(out, id)
		case body.Package != nil:
			out, seen = append(out, id), append(seen, body)
		default:
			a, err := c.buildAgent(s.card, r, body, s.shown)
			if err != nil {
				out = append(out, id)
				continue
			}
			in, seen = append(in, a), append(seen, body)
		}
	}
	c.cfg.Packages.DropRecords(s.id, out)
	for _, body := range seen {
		c.cfg.Packages.TakeRecord(s.shown.host, s.shown.verified, body)
	}
	c.cfg.Directory.Unlearn(out)
	c.cfg.Directory.Learn(in)
}

// buildAgent converts a record to an agent of the directory, with its liveness. The record must have been
// admitted by a record.Gate.
func (c *Catalog) buildAgent(card *record.Card, r *record.Record, body *record.Agent, as shown) (hub.Agent, error) {
	a, err := translate.Agent(card, body)
	a.ID, a.Portal, a.Verified, a.Record = body.AgentID(), as.host, as.verified, r.Hash.String()
	if isPortable(a.ID) {
		a.PortalID = string(r.Portal) // the agent's id does not contain that of its portal
	}
	if c.cfg.Verdicts != nil {
		portal, _ := translate.Local(a.ID)
		a.Liveness = LivenessOf(c.cfg.Verdicts.Verdict(portal, a.ID))
	}
	return a, err
}

// Remove implements replication.Directory. Ids that belong to other portals are ignored.
func (c *Catalog) Remove(portal record.PortalID, ids []string) {
	s := c.stateOf(portal)
	s.turn.Lock()
	defer s.turn.Unlock()
	own := string(portal) + "/"
	var out []string
	for _, id := range ids {
		switch {
		case strings.HasPrefix(id, own):
			out = append(out, id)
		case isPortable(id):
			c.noteListing(context.Background(), s, id, "", true)
		}
	}
	c.cfg.Packages.DropRecords(portal, out)
	c.cfg.Directory.Unlearn(out)
}

// Refresh updates the given agents of a portal in the directory after their liveness changed. Ids are
// network ids.
func (c *Catalog) Refresh(portal record.PortalID, ids []string) {
	c.mu.Lock()
	s := c.portals[portal]
	c.mu.Unlock()
	if s == nil {
		return
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.shown.host == "" {
		return
	}
	ctx := context.Background()
	for _, id := range ids {
		if r := c.heldRecord(ctx, portal, id); r != nil {
			c.putAgents(ctx, s, []*record.Record{r})
		}
	}
}

// heldRecord returns the record of an agent that the Replica holds and a head covers. It is nil if there is
// none, for a deleted agent, and after an error.
func (c *Catalog) heldRecord(ctx context.Context, portal record.PortalID, id string) *record.Record {
	wire, err := c.cfg.Replica.CoveredAgent(ctx, portal, record.AgentKey(id))
	if err != nil || wire == nil {
		return nil
	}
	r, err := record.Open(c.cfg.Network, wire)
	if err != nil || r.Tombstone() {
		return nil
	}
	return r
}
