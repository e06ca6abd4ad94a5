package federation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentsite/internal/clock"
	"agentsite/internal/meter"
	"agentsite/internal/record"
)

// Peers is a Registry and a Filter: it knows all portals, their state and the operators'
// decisions, and answers from memory. Create it with NewPeers; Run keeps it current and on disk.
// It is safe for concurrent use.
type Peers struct {
	store PeerStore
	cfg   PeersConfig

	mu      sync.RWMutex
	policy  Policy
	entries map[string]*entry // by Facts.Key
	sites   map[string]int    // how many entries are of a site
	// words are the statements of portals about others: by subject, then by author.
	words map[record.PortalID]map[record.PortalID]Word
	// wanted are portals that a visitor looked for, with the time.
	wanted map[record.PortalID]time.Time
	// followed are the portals whose lists an operator follows, at most maxFollowed.
	followed []record.PortalID
	wordsTo  int64         // the number up to which the replica was read
	changes  []Change      // of states, not stored yet
	gone     []string      // keys that are not stored any more
	changed  chan struct{} // closed at the next change
	watched  time.Time     // end of the time in which a page shows the network
	alarmed  time.Time     // time of the last notice that many portals vanished
	notices  []Notice      // not sent yet
	untold   int           // that had no room there
	liars    tally         // of portals that were proved to lie
	crowds   tally         // of those that were let go because there were too many

	faulted *prometheus.CounterVec // refused records and answers of portals, by reason

	attesting sync.Mutex // held from the choice of a version until it is stored

	turn    chan struct{}        // held to write to the store
	suspect chan record.PortalID // may be quarantined by now
	wake    chan struct{}        // a portal is due or a notice waits
}

// PeersConfig holds the parts that Peers works with. A nil part switches its function off.
type PeersConfig struct {
	// Signer is the identity of this portal.
	Signer  Signer
	Replica Replica
	// Gate admits the attestations of operators.
	Gate *record.Gate
	// Caller asks portals how they are.
	Caller Caller
	// Greet does the handshake with the portal at an origin and returns its id. Learned was called
	// with its card by then.
	Greet func(ctx context.Context, origin string) (record.PortalID, error)
	// Drop drops the held records of a portal at once; nil for the Replica's.
	Drop func(ctx context.Context, portal record.PortalID) error
	// Tell sends a notice to the operators.
	Tell func(ctx context.Context, n Notice)
	// Summing reports whether only summaries are kept of others. Then those that
	// their heads count are the agents there are, not those that are held.
	Summing func() bool
	// Agents returns the number of this portal's published agents.
	Agents func() int
	// Elsewhere returns where another program signs as this portal; nil when that is never known.
	Elsewhere func() (Elsewhere, bool)
	// DHT returns this portal's place in the DHT, nil where it has none.
	DHT func() DHT
	// Gossip returns its place in a pool that gossips, nil where it has none.
	Gossip func() Gossip
	// Most bounds the portals that are known; 0 for 20,000.
	Most int
	// Name is the display name of this portal.
	Name string
	Log  *slog.Logger
}

// PeerStore keeps portals, and the operators' decisions with their reasons.
type PeerStore interface {
	Peers(ctx context.Context) ([]Facts, error)
	// SavePeers replaces the facts of portals, deletes keys, and adds changes of states.
	SavePeers(ctx context.Context, save []Facts, forget []string, changes []Change) error
	// PeerChanges returns the latest changes of a portal's state, newest first.
	PeerChanges(ctx context.Context, key string, limit int) ([]Change, error)
	// PeerPolicy returns the policy, false when none was ever set.
	PeerPolicy(ctx context.Context) (Policy, bool, error)
	// DecidePeers stores a decision of an operator together with its entry in the log of decisions.
	DecidePeers(ctx context.Context, d Decided) error
	// Decisions returns entries of that log about the federation, newest first, those before an id if that is not 0.
	Decisions(ctx context.Context, before int64, limit int) ([]Entry, error)
}

// Change is a state that a portal came into.
type Change struct {
	Key    string
	State  State
	Reason string
	At     time.Time
}

const (
	// maxPeers bounds the portals that are known.
	maxPeers = 20_000
	// maxAddresses bounds the addresses that have not answered, and the addresses that one portal
	// reported.
	maxAddresses     = 1_000
	maxAddressesFrom = 100
	// addressLife is how long one is kept that does not answer.
	addressLife = 24 * time.Hour
	saveEvery   = 5 * time.Second
	// saveSeenEvery is for portals with a new last sight and no other change. After a crash the last sight is older.
	saveSeenEvery = time.Minute
	// reviewShare spreads the reviews of states that change with time, such as at the expiry of a
	// head: up to twenty portals are reviewed every second, more than that less often.
	reviewShare = 50 * time.Millisecond
	maxReview   = 10 * time.Second
	readEvery   = 10 * time.Second // new statements of others
	// readAllEvery is the interval of reading all statements: those signed with a key that its
	// portal no longer lists are gone from the replica, and are then removed here.
	readAllEvery = 10 * time.Minute
)

// NewPeers returns the service with the content of the store.
func NewPeers(ctx context.Context, store PeerStore, cfg PeersConfig) (*Peers, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Most == 0 {
		cfg.Most = maxPeers
	}
	p := &Peers{store: store, cfg: cfg, policy: DefaultPolicy(), entries: make(map[string]*entry),
		sites: make(map[string]int), words: make(map[record.PortalID]map[record.PortalID]Word),
		wanted:  make(map[record.PortalID]time.Time),
		changed: make(chan struct{}), turn: make(chan struct{}, 1), suspect: make(chan record.PortalID, 256),
		wake: make(chan struct{}, 1), faulted: meter.NewCounters("agentsite_peer_faults_total",
			"What portals sent that was refused, by reason; fork, inconsistent and omitted are lies.", "reason", "malformed")}
	pol, ok, err := store.PeerPolicy(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	if ok {
		p.policy = pol
	}
	list, err := store.Peers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the portals: %w", err)
	}
	now := clock.Now()
	for _, f := range list {
		e := &entry{Facts: f, next: now}
		if cfg.Replica != nil && f.ID != "" {
			c, err := cfg.Replica.Quarantined(ctx, f.ID)
			if err != nil {
				return nil, fmt.Errorf("read whether %s is quarantined: %w", f.ID, err)
			}
			e.Quarantined = c != nil
		}
		p.entries[f.Key()] = e
		p.addPlace(e, f.URL)
	}
	if cfg.Replica != nil {
		if err := p.restoreUnsaved(ctx); err != nil {
			return nil, fmt.Errorf("read whose records are held: %w", err)
		}
		if err := p.readWords(ctx, true); err != nil {
			return nil, err
		}
	}
	p.updateFollowed()
	for _, e := range p.entries { // when all pinned ones are there
		e.state, e.reason = p.stateOf(e, now)
	}
	return p, nil
}

// selfID is this portal's id, empty when it has none.
func (p *Peers) selfID() record.PortalID {
	if p.cfg.Signer == nil {
		return ""
	}
	return p.cfg.Signer.ID()
}

// stateOf says how a portal is doing, and why. The caller holds mu.
func (p *Peers) stateOf(e *entry, now time.Time) (State, string) {
	if d := p.decideLocked(&e.Facts, "", now); d.State != Active {
		return d.State, d.Reason
	}
	return e.healthState(now)
}

// markDirty notes that an entry changed; the caller holds mu.
func (p *Peers) markDirty(e *entry, now time.Time) {
	e.dirty = true
	p.updateState(e, now)
}

// updateState computes the state of a portal, and queues a notice when it changed. The caller holds
// mu.
func (p *Peers) updateState(e *entry, now time.Time) {
	state, reason := p.stateOf(e, now)
	if state == e.state && reason == e.reason {
		return
	}
	was := e.state
	e.state, e.reason, e.dirty = state, reason, true
	if state != was {
		if e.mute = (time.Time{}); state == Silent && was == Active {
			e.mute = now
		}
		p.changes = append(p.changes, Change{e.Key(), state, reason, now})
		if extra := len(p.changes) - maxPeers; extra > 0 { // the store is away: the newest matter
			p.changes = p.changes[extra:]
		}
		p.noticeState(e, was)
	}
	p.wakeReaders()
}

// wakeReaders wakes the readers that wait for Changed; the caller holds mu.
func (p *Peers) wakeReaders() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change of a state or a decision. The reader
// then reads again the values it needs.
func (p *Peers) Changed() <-chan struct{} {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.changed
}

// reviewState computes all states again, because time passed or an operator decided. The caller
// holds mu.
func (p *Peers) reviewState(now time.Time) {
	for _, e := range p.entries {
		if state, reason := p.stateOf(e, now); state != e.state || reason != e.reason {
			p.markDirty(e, now)
		}
	}
	p.noticeVanished(now)
	p.noticeTallies(now)
}

// viewPeer is an entry as others see it; the caller holds mu.
func (p *Peers) viewPeer(e *entry, now time.Time) Peer {
	f := &e.Facts
	out := Peer{ID: f.ID, URL: f.URL, Name: f.Name, Operator: f.Operator, Contact: f.Contact, Version: f.Version,
		Tier: f.Tier, Rule: f.Rule,
		Proved: f.Proved, Known: f.Known, LastSeen: f.Seen, RTT: f.RTT, Agents: f.Agents, Listed: f.Listed,
		Truncated: f.Truncated,
		Head:      f.Head, HeadIssued: f.HeadIssued, HeadExpires: f.HeadExpires, Refused: f.RefusedUntil, Bars: f.Bars,
		BarsWhy: f.BarsWhy, Faults: maps.Clone(e.faults)}
	out.State, out.Reason = p.stateOf(e, now)
	if len(p.followed) > 0 {
		out.Said = p.listEntries(f, now)
	}
	if !f.Waits.IsZero() {
		out.Lag = max(now.Sub(f.Waits), 0)
	}
	return out
}

// Portals implements Registry.
func (p *Peers) Portals(context.Context) []Peer {
	now := clock.Now()
	p.mu.RLock()
	list := slices.SortedFunc(maps.Values(p.entries), func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.ID, b.ID))
	})
	out := make([]Peer, len(list))
	for i, e := range list {
		out[i] = p.viewPeer(e, now)
	}
	p.mu.RUnlock()
	return out
}

// Portal returns a portal by its id, its host or its address, and whether it is known. Of several
// that claim one host it is the one that proved its claim last.
func (p *Peers) Portal(_ context.Context, name string) (Peer, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	e := p.findEntry(name)
	if e == nil {
		return Peer{}, false
	}
	return p.viewPeer(e, clock.Now()), true
}

// findEntry is Portal; the caller holds mu.
func (p *Peers) findEntry(name string) (found *entry) {
	if e := p.entries[name]; e != nil {
		return e
	}
	for _, e := range p.entries {
		if e.at == name && (found == nil || isBetterMatch(e, found)) {
			found = e
		}
	}
	return found
}

// isBetterMatch reports whether a rather than b is the entry that a host name stands for: the one that
// proved last to be there, then an address as it was given, then the one of the unproved claims
// that is known for longest.
func isBetterMatch(a, b *entry) bool {
	switch {
	case !a.Proved.Equal(b.Proved):
		return a.Proved.After(b.Proved)
	case a.isAddress() != b.isAddress():
		return a.isAddress()
	case !a.Known.Equal(b.Known):
		return a.Known.Before(b.Known)
	}
	return a.Key() < b.Key()
}

// runEvery is the interval at which Run looks for work that is due, runEveryAlone the one while no portal
// is known, so that an idle portal seldom wakes the processor.
const (
	runEvery      = time.Second
	runEveryAlone = 10 * time.Second
)

// Run keeps the states current and on disk until ctx ends, then saves a last time.
func (p *Peers) Run(ctx context.Context) error {
	asks := newAsks(p)
	defer asks.waitAll()
	tick := time.NewTicker(runEvery)
	defer tick.Stop()
	var saved, savedAll, read, wholly, swept, reviewed time.Time
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveEvery)
			defer cancel()
			return p.saveChanges(last, true)
		case id := <-p.suspect:
			p.checkConflict(ctx, id)
			continue
		case <-p.wake:
		case <-tick.C:
		}
		now := time.Now()
		p.mu.Lock()
		if len(p.entries) == 0 { // a new entry sends to wake
			tick.Reset(runEveryAlone)
		} else {
			tick.Reset(runEvery)
		}
		if pace := time.Duration(len(p.entries)) * reviewShare; now.Sub(reviewed) >= min(pace, maxReview) {
			reviewed = now
			p.reviewState(clock.Now())
		}
		p.mu.Unlock()
		p.sendNotices(ctx)
		asks.startDue(ctx)
		var errs []error
		if now.Sub(read) >= readEvery && p.cfg.Replica != nil {
			read = now
			whole := now.Sub(wholly) >= readAllEvery
			if whole {
				wholly = now
			}
			errs = append(errs, p.readWords(ctx, whole))
			p.checkAllConflicts(ctx)
		}
		if now.Sub(saved) >= saveEvery {
			saved = now
			all := now.Sub(savedAll) >= saveSeenEvery
			if all {
				savedAll = now
			}
			errs = append(errs, p.saveChanges(ctx, all))
		}
		if now.Sub(swept) >= time.Minute {
			swept = now
			p.sweepExpired()
		}
		if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
			p.cfg.Log.Warn("keep what is known of portals", "error", err)
		}
	}
}

// restoreUnsaved takes in portals whose records are held but that are not known, because the process was
// killed before it saved them. No other portal would report them again, as this portal announces
// that it has their heads.
func (p *Peers) restoreUnsaved(ctx context.Context) error {
	if p.cfg.Signer == nil {
		return nil
	}
	heads, err := p.cfg.Replica.Heads(ctx)
	if err != nil {
		return err
	}
	for _, h := range heads {
		if h.Portal == p.selfID() || p.entries[string(h.Portal)] != nil {
			continue
		}
		wire, err := p.cfg.Replica.Card(ctx, h.Portal)
		if err != nil {
			return err
		}
		claim, err := record.Open(p.cfg.Signer.Network(), wire)
		if err != nil {
			continue
		}
		if c, ok := claim.Body.(*record.Card); ok {
			p.Learned(c, false)
		}
		if e := p.entries[string(h.Portal)]; e != nil {
			e.Head, e.HeadIssued, e.HeadExpires = h.Version, clock.FromMilli(h.Issued), clock.FromMilli(h.Expires)
			e.Listed = int(h.Count)
			c, err := p.cfg.Replica.Quarantined(ctx, h.Portal)
			if err != nil {
				return err
			}
			e.Quarantined = c != nil
		}
	}
	return nil
}

// saveChanges stores the changes, and portals that were only seen when that is due.
func (p *Peers) saveChanges(ctx context.Context, all bool) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	var list []*entry
	var rows []Facts
	for _, e := range p.entries {
		if e.dirty || all && e.later {
			e.dirty, e.later = false, false
			list, rows = append(list, e), append(rows, e.Facts)
		}
	}
	gone, changes := p.gone, p.changes
	p.gone, p.changes = nil, nil
	p.mu.Unlock()
	if len(rows)+len(gone)+len(changes) == 0 {
		return nil
	}
	err := p.store.SavePeers(ctx, rows, gone, changes)
	if err != nil { // again next time
		p.mu.Lock()
		for _, e := range list {
			e.dirty = true
		}
		p.gone, p.changes = append(gone, p.gone...), append(changes, p.changes...)
		p.mu.Unlock()
		return fmt.Errorf("save portals: %w", err)
	}
	return nil
}

// sweepExpired forgets addresses that never answered.
func (p *Peers) sweepExpired() {
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, e := range p.entries {
		if e.isAddress() && e.From != "" && now.Sub(e.Known) > addressLife {
			p.dropEntry(key)
		}
	}
}

// dropEntry forgets an entry; the caller holds mu.
func (p *Peers) dropEntry(key string) {
	p.removeEntry(key)
	p.gone = append(p.gone, key)
	p.wakeReaders()
}

// removeEntry is drop without a change of the store, for entries that the store deletes itself; the
// caller holds mu.
func (p *Peers) removeEntry(key string) {
	if e := p.entries[key]; e != nil {
		p.removePlace(e)
		delete(p.entries, key)
	}
}

// formatCount formats a number with its noun.
func formatCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
