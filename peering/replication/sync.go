// Package replication keeps the Replica in step with what other portals sign:
// it compares heads, pulls logs, and tells others of new heads.
package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/record"
	"agentsite/peering/catalog"
)

const (
	// roundEvery is how often heads are compared with another portal.
	roundEvery = time.Minute
	// fewPeers are compared with all at once.
	fewPeers = 3
	// diffGap keeps comparisons with one portal apart: it allows one in 10 s.
	diffGap = 10 * time.Second
	// maxPortals bounds the portals that are followed.
	maxPortals = 20_000
	// maxWork bounds the requests that wait for nobody's silence, and
	// maxWaiting all that are under way; see slots.
	maxWork    = 16
	maxWaiting = 48
)

// Config is what a Syncer needs. Every field is required but those that
// say otherwise.
type Config struct {
	Self      federation.Signer
	Caller    federation.Caller
	Replica   federation.Replica
	Registry  federation.Registry
	Trees     *archive.Trees
	Directory Directory
	// News returns a channel that is closed when a portal may be another than
	// before: met, back, decided on. Without it the registry is asked now and
	// then. Optional.
	News func() <-chan struct{}
	// Tiers says how much is kept of others; nil for all. Summaries is told of
	// summaries that came. Optional.
	Tiers     *federation.Tiers
	Summaries *catalog.Summaries
	// Ahead is told when others hold a newer head of this portal than it has
	// itself: it was restored from a backup, or runs twice. Optional.
	Ahead func(head record.Version)
	// OwnCard is given each card of this portal that others hold, as it came:
	// nobody has looked at it. Optional.
	OwnCard func(wire []byte)
	// Rand chooses whom to ask; nil for a random seed.
	Rand *rand.Rand
	Log  *slog.Logger
}

// Syncer keeps the Replica in step with what other portals sign. It finds
// them, compares heads, pulls the logs of those that moved and tells others of
// it. It trusts nobody: records come in by a record.Gate alone, and whether a
// log is whole says its signed head. Create it with New; it is safe for
// concurrent use.
type Syncer struct {
	Config
	gate *record.Gate
	own  record.PortalID

	work     *slots
	compared *slots // of comparing heads
	sources  *bySource
	hints    hints
	rumours  rumours
	// summaryNews has summaries looked for.
	summaryNews chan struct{}

	mu      sync.Mutex // guards the rest
	rand    *rand.Rand
	portals map[record.PortalID]*followed
	peers   map[record.PortalID]*peerState
	run     context.Context // of Run, nil before and after
	wg      sync.WaitGroup
	heard   map[record.PortalID]heard
	// metCount counts portals that were met since metSince.
	metCount int
	metSince time.Time
	part     int // of the vector to compare next, when it is too long for one
}

// followed is a portal whose log is kept here. Syncer.mu guards it.
type followed struct {
	head  federation.HeadRow // the newest that was admitted
	got   record.Version     // the head that what is held adds up to
	since time.Time          // when a newer head was first heard of
	// told is the turn of the Replica from which on the directory is still to be
	// told; beside is true when records of it came with another pull than the one
	// that makes the log whole.
	told   int64
	beside bool
	// sources told of head; the portal itself is always one.
	sources []record.PortalID
	pulling bool
	cancel  context.CancelFunc // of the pull under way, nil without
	handed  bool               // a head of it was handed on
	// behind is how many portals were told of its head, since behindFrom, as
	// they said that they have an older one.
	behind     int
	behindFrom time.Time
	// drops counts how often what is held was let go: a pull that runs beside
	// that has seen what is not there any more.
	drops int
	wake  chan struct{} // a newer head or another source
	last  time.Time     // start of the last pull
	fails int
	// truncated: its quota does not allow for it. Nothing of it is held.
	truncated      bool
	truncatedUntil time.Time // before then it is not tried again
	// brief: head and summary are all that is to be kept of it. It is truncated
	// then too.
	brief bool
	// bare told of head and may have its summary, but not the log.
	bare []record.PortalID
	// over is true from when its quota was used up until its log is whole. That
	// is said once.
	over bool
	// quota is what it was last looked at with; recheck is true when that is
	// another now.
	quota   quota
	recheck bool
	// spans are the pieces of the log since it was whole.
	spans []span
	// lacking are leaves that nobody could give a good record for.
	lacking map[record.Hash]record.Hash
	// repairAt is when leaves may be asked for again.
	repairAt time.Time
	repairs  int
}

// peerState is what is remembered of dealing with a portal. Syncer.mu guards
// it.
type peerState struct {
	met        bool // since the start
	diffed     time.Time
	down       bool
	rest       time.Time // it asked to be left alone until then
	distrusted time.Time // others are asked first until then
}

// New returns the Syncer. Run makes it work.
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
		rand: c.Rand, portals: make(map[record.PortalID]*followed), peers: make(map[record.PortalID]*peerState),
		heard: make(map[record.PortalID]heard), summaryNews: make(chan struct{}, 1)}
	s.hints.init()
	return s, nil
}

// Run keeps in step until ctx ends. It returns when all that it started has ended.
func (s *Syncer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.load(ctx); err != nil {
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
	s.start(s.runMeet)
	s.start(s.runWatch)
	s.start(s.runHints)
	s.start(s.runRounds)
	s.start(s.runOwn)
	s.start(s.runTier)
	s.start(s.runSummaries)
	s.mu.Lock()
	for id, f := range s.portals {
		if f.head.Version != f.got && !f.truncated {
			s.wantLocked(id, f)
		}
	}
	s.mu.Unlock()
	<-ctx.Done()
	return nil
}

// start runs f until Run ends, unless it has.
func (s *Syncer) start(f func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startLocked(f)
}

func (s *Syncer) startLocked(f func(context.Context)) {
	if ctx := s.run; ctx != nil && ctx.Err() == nil {
		s.wg.Go(func() { f(ctx) })
	}
}

// load reads what is held and how far it got. The directory has read the
// agents by itself.
func (s *Syncer) load(ctx context.Context) error {
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
		// What was kept before and waits for a head is not told of again.
		f := &followed{head: row, told: turn, beside: true, since: clock.Now(), wake: make(chan struct{}, 1), handed: true}
		if at == row.Version && whole.Version == at {
			f.got, f.since = at, time.Time{}
		}
		s.mu.Lock()
		s.portals[row.Portal] = f
		s.mu.Unlock()
		s.Directory.Changed(row.Portal)
		s.report(ctx, row.Portal)
	}
	return nil
}

// report tells the registry how a portal's log stands here.
func (s *Syncer) report(ctx context.Context, portal record.PortalID) {
	held, _, err := s.Replica.Holding(ctx, portal)
	if err != nil {
		return
	}
	s.mu.Lock()
	f := s.portals[portal]
	if f == nil {
		s.mu.Unlock()
		return
	}
	row, truncated, since := f.head, f.truncated && !f.brief, f.since
	if f.truncated {
		since = time.Time{} // nothing is on its way
	}
	s.mu.Unlock()
	s.Registry.Synced(portal, row, held, truncated, since)
}

// Report tells the registry how a portal's log stands here, if it is followed: it
// may have forgotten the portal since it was told last.
func (s *Syncer) Report(ctx context.Context, portal record.PortalID) { s.report(ctx, portal) }

// follow returns a portal's state, made when there is none, nil when there are
// too many; the caller holds mu.
func (s *Syncer) follow(portal record.PortalID) *followed {
	f := s.portals[portal]
	if f == nil && len(s.portals) < maxPortals {
		f = &followed{wake: make(chan struct{}, 1)}
		s.portals[portal] = f
	}
	return f
}

// peer returns what is remembered of a portal, nil when there are too many;
// the caller holds mu.
func (s *Syncer) peer(portal record.PortalID) *peerState {
	p := s.peers[portal]
	if p == nil {
		if len(s.peers) >= maxPortals {
			for id, o := range s.peers {
				if !o.down && clock.Now().Sub(o.diffed) > time.Hour {
					delete(s.peers, id)
				}
			}
		}
		p = new(peerState)
		if len(s.peers) < maxPortals {
			s.peers[portal] = p
		}
	}
	return p
}

// jitter returns a time around d, a fifth off at most.
func (s *Syncer) jitter(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(float64(d) * (0.8 + 0.4*s.rand.Float64()))
}

// backoff returns how long to wait after so many failures: from about two
// seconds, doubling, to ten minutes.
func (s *Syncer) backoff(fails int) time.Duration {
	return s.jitter(min(time.Second<<min(fails, 10), 10*time.Minute))
}

// origin returns where a portal is, by its card.
func (s *Syncer) origin(ctx context.Context, portal record.PortalID) (string, error) {
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
