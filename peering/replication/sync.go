// Package replication keeps the Replica (the database of signed records) in step with other portals: it
// compares heads, pulls logs, and sends hints of new heads. See docs/design/peering.md.
package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/record"
	"agentsite/peering/catalog"
)

const (
	// roundEvery is the mean interval at which heads are compared with another portal.
	roundEvery = time.Minute
	// fewPeers is the number of portals up to which a round compares heads with all of them.
	fewPeers = 3
	// diffGap is the minimum time between two comparisons with one portal; a portal accepts one in 10 s.
	diffGap = 10 * time.Second
	// maxPortals bounds the followed portals; further ones are ignored.
	maxPortals = 20_000
	// maxWork bounds the requests that have waited less than softTimeout, and maxWaiting all that are
	// under way; see slots.
	maxWork    = 16
	maxWaiting = 48
)

// Config is the configuration of a Syncer. Every field is required except those marked optional.
type Config struct {
	Self      federation.Signer
	Caller    federation.Caller
	Replica   federation.Replica
	Registry  federation.Registry
	Trees     *archive.Trees
	Directory Directory
	// Changes announces changes of the registry. Without it the registry is read at intervals. Optional.
	Changes Changes
	// Tiers decides how much is kept of other portals; nil keeps all. Summaries receives fetched
	// summaries. Optional.
	Tiers     *federation.Tiers
	Summaries *catalog.Summaries
	// Own receives the records of this portal that other portals hold and this one does not. Optional.
	Own OwnRecords
	// Rand makes the random choices; nil for one with a random seed. It must not be used elsewhere.
	Rand *rand.Rand
	Log  *slog.Logger
}

// Changes announces that a portal in the registry may have changed: it is new, reachable again, or the
// policy on it is another. federation.Peers implements it.
type Changes interface {
	// Changed returns a channel that is closed at the next change. Call it before reading the registry, so
	// that no change is missed.
	Changed() <-chan struct{}
}

// OwnRecords receives records of this portal that other portals hold and this one does not: it was restored
// from a backup, or runs twice.
type OwnRecords interface {
	// SeeHead receives the version of a head that this portal signed and does not hold. The signature is
	// verified.
	SeeHead(head record.Version)
	// SeeCard receives a card of this portal, unverified.
	SeeCard(wire []byte)
}

// nextChange returns Changes.Changed(), or a nil channel, which blocks forever, without Changes.
func (c *Config) nextChange() <-chan struct{} {
	if c.Changes == nil {
		return nil
	}
	return c.Changes.Changed()
}

// Syncer keeps the Replica in step with the signed records of other portals. It finds the portals, compares
// heads, pulls the logs that grew and sends hints of them. It trusts no portal: records enter only through
// a record.Gate, and a log is complete when its root hash is that of its signed head. Create it with New
// and keep Run running; it is safe for concurrent use.
type Syncer struct {
	Config
	gate *record.Gate
	own  record.PortalID

	work     *slots
	compared *slots // bounds concurrent comparisons of heads
	sources  *bySource
	hints    *advertiser
	// summaries fetches the summaries, Config.Summaries receives them.
	summaries *summaryKeeper
	peers     *peers
	dice      *dice
	ownWatch  *ownWatch
	strangers strangers

	mu      sync.Mutex // guards the fields below
	rumours rumours
	portals map[record.PortalID]*portal
	run     context.Context // the context of Run; nil before and after
	wg      sync.WaitGroup
	// metCount counts the portals that mayMeetLocked counted since metSince.
	metCount int
	metSince time.Time
	part     int // index of the next part of the vector, see buildVector
}

// New returns a Syncer; Run starts it. It fails only for an invalid network name.
func New(c Config) (*Syncer, error) {
	gate, err := record.NewGate(c.Self.Network(), c.Replica)
	if err != nil {
		return nil, err
	}
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	s := &Syncer{Config: c, gate: gate, own: c.Self.ID(),
		work: newSlots(maxWork, maxWaiting), compared: newSlots(maxCompared, maxWaiting), sources: newBySource(),
		peers: newPeers(), dice: &dice{rand: c.Rand},
		portals: make(map[record.PortalID]*portal)}
	s.hints, s.summaries, s.ownWatch = newAdvertiser(s), newSummaryKeeper(s), &ownWatch{s}
	return s, nil
}

// Run keeps the Replica in step until ctx ends, and then waits for all goroutines that it started. Its
// error is a failure to read the Replica at the start.
func (s *Syncer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.loadState(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.run = ctx
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.run = nil
		s.mu.Unlock()
		cancel()
		s.wg.Wait()
	}()
	s.startTask(s.runMeet)
	s.startTask(s.runWatch)
	s.startTask(s.hints.runHints)
	s.startTask(s.runRounds)
	s.startTask(s.ownWatch.runOwn)
	s.startTask(s.runTier)
	s.startTask(s.summaries.runSummaries)
	s.mu.Lock()
	for _, p := range s.portals {
		if p.isDue(clock.Now()) {
			s.applyLocked(p, retryDue)
		}
	}
	s.mu.Unlock()
	<-ctx.Done()
	return nil
}

// startTask runs f in a goroutine until Run ends. It does nothing when Run is not running.
func (s *Syncer) startTask(f func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startLocked(f)
}

// startLocked is startTask for a caller that holds mu. It returns false when Run is not running.
func (s *Syncer) startLocked(f func(context.Context)) bool {
	ctx := s.run
	if ctx == nil || ctx.Err() != nil {
		return false
	}
	s.wg.Go(func() { f(ctx) })
	return true
}

// loadState reads the heads and positions of all portals from the Replica. The directory reads the agents
// itself.
func (s *Syncer) loadState(ctx context.Context) error {
	rows, err := s.Replica.Heads(ctx)
	if err != nil {
		return fmt.Errorf("heads that are held: %w", err)
	}
	for _, row := range rows {
		if row.Portal == s.own {
			continue
		}
		at, err := s.Replica.Position(ctx, row.Portal)
		if err != nil {
			return fmt.Errorf("position of %s: %w", row.Portal, err)
		}
		whole, turn, err := s.Replica.Whole(ctx, row.Portal)
		if err != nil {
			return fmt.Errorf("up to where %s is whole: %w", row.Portal, err)
		}
		// beside is true because an unfinished pull may have stored records that the directory has not
		// seen.
		p := newPortal(row.Portal)
		p.head, p.notifiedTurn, p.beside, p.since, p.handed = row, turn, true, clock.Now(), true
		switch {
		case at == row.Version && whole.Version == at:
			p.state, p.got, p.since = complete, at, time.Time{}
		case at != record.Version{}:
			p.state = partial
		}
		s.mu.Lock()
		s.portals[row.Portal] = p
		s.mu.Unlock()
		s.Directory.Changed(row.Portal)
		s.Report(ctx, row.Portal)
	}
	return nil
}

// Report writes the state of a portal's log to the registry, if the portal is followed. It is also called
// for unchanged portals, because the registry may have deleted its entry since the last call.
func (s *Syncer) Report(ctx context.Context, portal record.PortalID) {
	held, _, err := s.Replica.Holding(ctx, portal)
	if err != nil {
		return
	}
	s.mu.Lock()
	p := s.portals[portal]
	if p == nil {
		s.mu.Unlock()
		return
	}
	row, truncated, since := p.head, p.state == overQuota, p.since
	if p.isWithoutLog() {
		since = time.Time{} // the log is not held on purpose, so it is not late
	}
	s.mu.Unlock()
	s.Registry.Synced(portal, row, held, truncated, since)
}

// followPortal returns the state of a portal and creates it if needed; nil when maxPortals are followed.
// The caller holds mu.
func (s *Syncer) followPortal(id record.PortalID) *portal {
	p := s.portals[id]
	if p == nil && len(s.portals) < maxPortals {
		p = newPortal(id)
		s.portals[id] = p
	}
	return p
}

// listPortals returns the states of all followed portals, in no order.
func (s *Syncer) listPortals() []*portal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.portals))
}

// originOf returns the origin in a portal's card; an error without a valid card.
func (s *Syncer) originOf(ctx context.Context, portal record.PortalID) (string, error) {
	wire, err := s.Replica.Card(ctx, portal)
	if err != nil {
		return "", err
	}
	if wire == nil {
		return "", errors.New("no card of the portal is known")
	}
	r, err := record.Open(s.Self.Network(), wire)
	if err != nil {
		return "", err
	}
	card, ok := r.Body.(*record.Card)
	if !ok {
		return "", errors.New("the card is none")
	}
	return card.Origin, nil
}
