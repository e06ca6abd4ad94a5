// Package catalog shows the agents of other portals in the directory. It decides which portals are
// shown, keeps the shown agents of each, and their summaries for searches.
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

// Directory is where agents of other portals are found: hub.Service.
type Directory interface {
	Learn(list []hub.Agent)
	LearnAll(next func() (hub.Agent, bool))
	Unlearn(ids []string)
	Learned(id string) (hub.Agent, bool)
	LearnedAs(name, portal string) []hub.Agent
	LearnedFrom(portal string) []string
	// Builtin returns the built-in agent of this portal that has a name.
	Builtin(name string) (hub.Agent, bool)
}

// Config is the configuration of a Catalog.
type Config struct {
	// Self and Host are this portal's id and host.
	Self record.PortalID
	Host string
	// Tiers says how much is kept of others; nil for all.
	Tiers Tiers
	// Network is the name in everything signed.
	Network  string
	Replica  federation.Replica
	Registry Registry
	// Directory is where the agents are shown.
	Directory Directory
	// Verdicts returns the liveness of agents; nil if it is never known.
	Verdicts Verdicts
	Log      *slog.Logger
}

// Registry knows the other portals, and the operator's policy for their agents: federation.Peers.
type Registry interface {
	federation.Registry
	// Imports reports whether an agent may be shown.
	Imports(a *record.Agent) bool
	// Changed returns a channel that is closed when the data about portals changes; nil to check every
	// two seconds only.
	Changed() <-chan struct{}
}

// Tiers returns how much is kept of other portals: federation.Tiers.
type Tiers interface{ Tier() string }

// Verdicts returns the verdict on the liveness of an agent, by its id in the network: live.Service.
type Verdicts interface {
	Verdict(portal record.PortalID, agentID string) livereport.Verdict
}

// LivenessOf returns a verdict as the directory shows it.
func LivenessOf(v livereport.Verdict) hub.Liveness {
	l := hub.Liveness{State: hub.Unknown, CheckedAt: v.At, Reason: v.Reason}
	if v.Reach != 0 {
		l.State = hub.Live(v.Reach.String())
	}
	return l
}

// Catalog shows agents of other portals in the directory: of admitted portals with a valid head. It
// implements Directory. Create it with New and keep Run running.
type Catalog struct {
	cfg Config

	settling sync.Mutex // held by whoever settles: one at a time
	wake     chan struct{}
	view     atomic.Pointer[view] // never nil
	rules    atomic.Int64         // grows with Reread
	sought   soughtPortals

	mu       sync.Mutex // guards the following fields
	portals  map[record.PortalID]*stand
	portable map[string][]listing // by id, of agents with their own key
	handles  map[string]string    // of their other listings, to id
}

// stand is how the agents of one portal stand in the directory.
type stand struct {
	id record.PortalID
	// turn is held while agents of the portal move in or out, also while the Replica is read: records put
	// meanwhile must come after those that are read. It guards the other fields.
	turn  sync.Mutex
	shown shown
	card  *record.Card // when it is shown
}

// shown is how agents of a portal are shown; the zero value: not at all.
type shown struct {
	host     string
	verified bool
	rules    int64 // turn of the policy, see Reread
}

// Everything is looked at every settleEvery, because heads end, and when there
// is news, but not more often than once in settlePause.
const (
	settleEvery = 2 * time.Second
	settlePause = 100 * time.Millisecond
)

// New returns a Catalog that shows nothing yet.
func New(cfg Config) *Catalog {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Catalog{cfg: cfg, wake: make(chan struct{}, 1), portals: make(map[record.PortalID]*stand),
		portable: make(map[string][]listing), handles: make(map[string]string)}
	c.view.Store(newView(cfg, nil, nil, clock.Now()))
	return c
}

// Load shows all agents that are held, once, at the start. See hub.Network.
func (c *Catalog) Load(ctx context.Context) error {
	c.Reconcile(ctx)
	return ctx.Err()
}

// Run applies changes until ctx ends.
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

// Reread makes the next Reconcile ask again which agents are shown at all: the
// policy is another one.
func (c *Catalog) Reread() {
	c.rules.Add(1)
	c.Changed("")
}

// Changed implements Directory.
func (c *Catalog) Changed(record.PortalID) {
	select {
	case c.wake <- struct{}{}:
	default: // it will look at everything anyway
	}
}

// Reconcile brings the directory in line with the Registry's current portals, and returns when that is
// done.
func (c *Catalog) Reconcile(ctx context.Context) {
	c.settling.Lock()
	defer c.settling.Unlock()
	now := clock.Now()
	peers := c.cfg.Registry.Portals(ctx)
	want := c.wantedPortals(ctx, peers, now)
	// Out before in: of two portals of one host the other may take its place.
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

// wantedPortals says which portals are shown, and how. When several have the same
// host, those that were not seen to be there give way to the one that was.
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

// isCurrent reports whether a portal's word for its agents holds.
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

// Clear implements Directory.
func (c *Catalog) Clear(portal record.PortalID) {
	c.hideAgents(context.Background(), c.stateOf(portal), shown{})
	c.Changed(portal) // the covered records are read again
}

// hideAgents takes the agents of a portal out, unless they stay under its host.
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
	c.dropListings(ctx, s.id)
}

// fillAgents shows the agents of a portal that the Replica holds and a head covers,
// in another way than now.
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
		// The next Reconcile tries again.
		s.shown = shown{}
		c.cfg.Log.Warn("read agents of a portal", "portal", s.id, "error", err)
	}
}

// Card returns the card of a portal.
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

// batch is how many records are read before they are put.
const batch = 1024

// readAgents puts all agents of a portal; the caller must hold its turn.
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

// Put implements Directory.
func (c *Catalog) Put(portal record.PortalID, list []*record.Record) {
	ctx := context.Background()
	c.mu.Lock()
	s := c.portals[portal]
	c.mu.Unlock()
	if s == nil {
		c.Changed(portal) // it reads the kept records
		return
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.shown.host != "" {
		c.putAgents(ctx, s, list)
	}
}

// putAgents shows records of a portal; the caller must hold its turn.
func (c *Catalog) putAgents(ctx context.Context, s *stand, list []*record.Record) {
	var out []string
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
		default:
			a, err := c.buildAgent(s.card, r, body, s.shown)
			if err != nil {
				out = append(out, id)
				continue
			}
			in = append(in, a)
		}
	}
	c.cfg.Directory.Unlearn(out)
	c.cfg.Directory.Learn(in)
}

// buildAgent is a record as it is shown.
func (c *Catalog) buildAgent(card *record.Card, r *record.Record, body *record.Agent, as shown) (hub.Agent, error) {
	a, err := translate.Agent(card, body)
	a.ID, a.Portal, a.Verified, a.Record = body.AgentID(), as.host, as.verified, r.Hash.String()
	if isPortable(a.ID) {
		a.PortalID = string(r.Portal) // the record carries ids of its own
	}
	if c.cfg.Verdicts != nil {
		portal, _ := translate.Local(a.ID)
		a.Liveness = LivenessOf(c.cfg.Verdicts.Verdict(portal, a.ID))
	}
	return a, err
}

// Remove implements Directory.
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
	c.cfg.Directory.Unlearn(out)
}

// Refresh shows agents anew, by their ids in the network, because their liveness has changed.
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

// heldRecord returns the record of an agent that is kept and that a head covers, nil
// when none is.
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
