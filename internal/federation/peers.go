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

	"agentsite/internal/adjust"
	"agentsite/internal/clock"
	"agentsite/internal/meter"
	"agentsite/internal/record"
	"agentsite/internal/weborigin"
)

// Peers implements Registry, Gatekeeper and Filter: it knows all portals, their state and the operators'
// decisions, and answers from memory. Create it with NewPeers; Run must run to keep the states current
// and stored. It is safe for concurrent use.
type Peers struct {
	store PeerStore
	cfg   PeersConfig

	mu      sync.RWMutex
	policy  Policy
	entries map[string]*entry // keyed by Facts.Key
	sites   map[string]int    // number of entries, by site
	// words are the statements of portals about others, by subject, then by author.
	words map[record.PortalID]map[record.PortalID]Word
	// wanted holds the portals that visitors looked up, with the time of the lookup.
	wanted map[record.PortalID]time.Time
	// followed are the ids of the portals whose lists operators follow, at most maxFollowed.
	followed []record.PortalID
	wordsTo  int64         // number of the last record that readWords has read from the replica
	changes  []Change      // changes of states that are not stored yet
	gone     []string      // keys of removed entries that are still in the store
	changed  chan struct{} // closed and replaced at each change
	watched  time.Time     // end of the time in which a page shows the network
	alarmed  time.Time     // time of the last notice that many portals vanished
	notices  []Notice      // notices that are not sent yet
	untold   int           // number of notices dropped because the queue was full
	liars    tally         // notices about quarantined portals
	crowds   tally         // notices about portals dropped for lack of room

	faulted *prometheus.CounterVec // refused records and answers of portals, by reason

	attesting sync.Mutex // held from the choice of a version until the record is stored

	turn    chan struct{}        // capacity 1: held while writing to the store
	suspect chan record.PortalID // portals whose quarantine is to be checked in the replica
	wake    chan struct{}        // capacity 1: wakes Run, because a portal is due or a notice waits
}

// PeersConfig holds the parts that Peers works with. A nil part disables its function.
type PeersConfig struct {
	// Signer is this portal's identity, usually Self.
	Signer  Signer
	Replica Replica
	// Gate admits the attestations of this portal's operators.
	Gate *record.Gate
	// Caller sends status requests to portals.
	Caller Caller
	// Greet does the handshake with the portal at an origin and returns its id. It calls Learned with
	// the portal's card before it returns.
	Greet func(ctx context.Context, origin string) (record.PortalID, error)
	// Join is Greet for a waiting operator: it tries several origins in order and returns an error with
	// a message for the operator soon.
	Join func(ctx context.Context, origins []string) (record.PortalID, error)
	// Drop deletes the stored records of a portal at once; nil for that of the Replica.
	Drop func(ctx context.Context, portal record.PortalID) error
	// Tell sends a notice to the operators.
	Tell func(ctx context.Context, n Notice)
	// Summing reports whether only summaries of other portals are kept. Then the agents that their heads
	// count are reported, because few are stored.
	Summing func() bool
	// Agents returns the number of this portal's published agents.
	Agents func() int
	// Elsewhere returns the place at which another program signs as this portal, usually Self.Elsewhere.
	Elsewhere func() (Elsewhere, bool)
	// DHT returns this portal's DHT node, nil if the DHT is off.
	DHT func() DHT
	// Gossip returns this portal's gossip membership, nil if gossip is off.
	Gossip func() Gossip
	// Most is the number of known portals; 0 for 20,000.
	Most int
	// Name is the portal's name unless Live has one.
	Name string
	Live *adjust.Snapshot
	Log  *slog.Logger
}

// PeerStore stores portals and the operators' decisions with their reasons.
type PeerStore interface {
	Peers(ctx context.Context) ([]Facts, error)
	// SavePeers replaces the facts of the portals in save, deletes the keys in forget and appends
	// changes, in one transaction.
	SavePeers(ctx context.Context, save []Facts, forget []string, changes []Change) error
	// PeerChanges returns the latest changes of a portal's state, newest first; key is Facts.Key.
	PeerChanges(ctx context.Context, key string, limit int) ([]Change, error)
	// PeerPolicy returns the stored policy; false if none was ever stored.
	PeerPolicy(ctx context.Context) (Policy, bool, error)
	// DecidePeers stores a decision of an operator with its audit entry in one transaction.
	DecidePeers(ctx context.Context, d Decided) error
	// Decisions returns audit entries about the federation, newest first, with ids below before (0: from the newest).
	Decisions(ctx context.Context, before int64, limit int) ([]Entry, error)
}

// Change is one change of a portal's state: State is the new one.
type Change struct {
	Key    string
	State  State
	Reason string
	At     time.Time
}

const (
	// maxPeers is the default number of known portals.
	maxPeers = 20_000
	// maxAddresses is the number of known addresses that have not answered, maxAddressesFrom how many of
	// them one portal can report.
	maxAddresses     = 1_000
	maxAddressesFrom = 100
	// addressLife is how long a reported address is kept that never answers.
	addressLife = 24 * time.Hour
	saveEvery   = 5 * time.Second
	// saveSeenEvery is the interval of saving entries with only a new LastSeen, which would otherwise be
	// written all the time. After a crash LastSeen is older.
	saveSeenEvery = time.Minute
	// reviewShare spreads the reviews of states that change with time (expiry of a head): one review of
	// all portals takes this much time for each portal, at most maxReview.
	reviewShare = 50 * time.Millisecond
	maxReview   = 10 * time.Second
	readEvery   = 10 * time.Second // interval of reading new statements of other portals
	// readAllEvery is the interval of reading all statements again: the replica deletes those whose
	// signing key is no longer listed, and they must be removed here too.
	readAllEvery = 10 * time.Minute
)

// NewPeers returns Peers with the content of the store and the replica.
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
	// after all pinned portals are loaded, because decisions count their vouching
	for _, e := range p.entries {
		e.state, e.reason = p.stateOf(e, now)
	}
	return p, nil
}

// selfID returns this portal's id, empty without a Signer.
func (p *Peers) selfID() record.PortalID {
	if p.cfg.Signer == nil {
		return ""
	}
	return p.cfg.Signer.ID()
}

// stateOf returns the state of the portal of e and the reason. The caller holds mu.
func (p *Peers) stateOf(e *entry, now time.Time) (State, string) {
	if d := p.decideLocked(&e.Facts, "", now); d.State != Active {
		return d.State, d.Reason
	}
	return e.healthState(now)
}

// markDirty marks an entry to be saved and updates its state; the caller holds mu.
func (p *Peers) markDirty(e *entry, now time.Time) {
	e.dirty = true
	p.updateState(e, now)
}

// updateState recomputes the state of a portal; a change is recorded, queued as a notice if needed, and
// wakes readers. The caller holds mu.
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
		// If the store fails for long, the oldest changes are dropped.
		if extra := len(p.changes) - maxPeers; extra > 0 {
			p.changes = p.changes[extra:]
		}
		p.noticeState(e, was)
	}
	p.wakeReaders()
}

// wakeReaders closes the channel that Changed returned; the caller holds mu.
func (p *Peers) wakeReaders() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change of a state or a decision. The reader must
// get the channel before it reads the values, to miss no change.
func (p *Peers) Changed() <-chan struct{} {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.changed
}

// reviewState recomputes all states, because time passed or an operator decided. The caller holds mu.
func (p *Peers) reviewState(now time.Time) {
	for _, e := range p.entries {
		if state, reason := p.stateOf(e, now); state != e.state || reason != e.reason {
			p.markDirty(e, now)
		}
	}
	p.noticeVanished(now)
	p.noticeTallies(now)
}

// viewPeer returns an entry as a Peer; the caller holds mu.
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

// Portal returns a portal by its id, host or address; false if it is unknown. Of several that claim one
// host, it is the one that proved its claim last.
func (p *Peers) Portal(_ context.Context, name string) (Peer, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if e := p.findEntry(name); e != nil {
		return p.viewPeer(e, clock.Now()), true
	}
	return Peer{}, false
}

// findEntry is Portal for entries; the caller holds mu.
func (p *Peers) findEntry(name string) (found *entry) {
	name = weborigin.ReadName(name)
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

// isBetterMatch reports whether a, rather than b, is the entry that a host name refers to: the one with
// the newest proof, else an address, else the one known for the longest time.
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

// Run sends status requests, keeps the states current and saves them until ctx ends, then saves a last time.
func (p *Peers) Run(ctx context.Context) error {
	asks := newAsks(p)
	defer asks.waitAll()
	tick := time.NewTicker(time.Second)
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

// restoreUnsaved adds entries for portals whose heads are in the replica but that are not in the store,
// because the process was killed before it saved them. No other portal would report them again, because
// this portal announces their heads as known.
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

// saveChanges stores dirty entries and recorded changes; with all, also entries with only a new LastSeen.
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
	if err != nil { // keep everything for the next attempt
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

// sweepExpired removes reported addresses that have not answered within addressLife.
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

// dropEntry removes an entry here and, with the next save, from the store; the caller holds mu.
func (p *Peers) dropEntry(key string) {
	p.removeEntry(key)
	p.gone = append(p.gone, key)
	p.wakeReaders()
}

// removeEntry is dropEntry for entries that the store has deleted itself; the caller holds mu.
func (p *Peers) removeEntry(key string) {
	if e := p.entries[key]; e != nil {
		p.removePlace(e)
		delete(p.entries, key)
	}
}

// formatCount formats a number with its noun, singular or plural.
func formatCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
