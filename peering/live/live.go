// Package live exchanges liveness reports between portals: signed statements whether agents can be reached.
// It signs reports about this portal's own exchanges, stores and passes on those of others, and computes
// the verdict on an agent from all of them. livereport.Weigh decides which reports count.
// docs/design/peering.md describes the exchange, docs/design/records.md the records.
//
// Fork proofs and attestations of other portals are transferred the same way, so this package transfers
// them too. record.Gate and federation.Registry decide their effect.
package live

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/livereport"
	"agentsite/internal/record"
)

// Seen is the result of one exchange (a call or a probe) of this portal with an agent.
type Seen struct {
	Subject record.PortalID // the agent's portal, this one or another
	Agent   string          // the agent's network id
	Reach   record.Reach
	At      time.Time
	Called  bool          // true for a call by an account, false for a probe
	Took    time.Duration // duration; 0 if it is not meaningful
}

// Config is the configuration of a Service. Only Log may be nil.
type Config struct {
	Signer   federation.Signer
	Gate     *record.Gate
	Replica  federation.Replica
	Registry federation.Registry
	Caller   federation.Caller
	// Directory lists this portal's agents and is notified of new verdicts.
	Directory Directory
	Log       *slog.Logger
}

// Directory connects a Service to the directory of agents. peering.Node implements it.
type Directory interface {
	// OwnLiveness calls yield for each published agent of this portal with the result of its last
	// exchange, until yield returns false.
	OwnLiveness(ctx context.Context, yield func(Seen) bool) error
	// LivenessChanged is called when the verdict on agents may have changed. A nil map means that any
	// agent of the portal may be affected. It is called by one goroutine, and for one portal at most
	// once in 10 seconds.
	LivenessChanged(ctx context.Context, portal record.PortalID, agents map[record.AgentTag]bool)
}

// types are the types of records that this package transfers.
var types = []record.Type{record.TypeAttest, record.TypeFork, record.TypeLive}

const (
	// stepEvery is the interval of the steps of Run: sign, send and pull.
	stepEvery = 10 * time.Second
	// listEvery is the interval at which the liveness of all agents of this portal is read from the
	// directory.
	listEvery = 10 * time.Minute
	// sweepEvery is the interval at which expired reports are removed from memory.
	sweepEvery = 10 * time.Minute
)

// Service holds all liveness reports known to this portal. Create it with New and keep Run running. It is
// safe for concurrent use.
type Service struct {
	cfg    Config
	voices livereport.Reports
	own    own
	peers  atomic.Pointer[map[record.PortalID]peer]
	counts counts
	nudge  chan struct{} // signals Run that records were stored; capacity 1

	// Only the goroutine of Run uses the following fields.
	tail     int64 // number of the last record read from the Replica
	changed  map[record.PortalID]map[record.AgentTag]bool
	round    []record.PortalID // portals to announce before the next round
	accused  map[record.PortalID]bool
	outbox   []parcel
	ready    bool // all records of the Replica were read once
	pullNext time.Time

	mu      sync.Mutex // guards cursors
	cursors map[record.PortalID]cursor
}

// New returns a Service without reports; Run reads them from the Replica. A nil Log discards the log.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{cfg: cfg, nudge: make(chan struct{}, 1), changed: make(map[record.PortalID]map[record.AgentTag]bool),
		accused: make(map[record.PortalID]bool), cursors: make(map[record.PortalID]cursor)}
	s.peers.Store(&map[record.PortalID]peer{})
	return s
}

// Run signs, sends and pulls reports until ctx ends, and then waits for its goroutines. Reports about this
// portal's own agents begin when filled is closed (the local search index is complete), or at once if it is
// nil.
func (s *Service) Run(ctx context.Context, filled <-chan struct{}) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var listed, swept time.Time
	moves := newMoves(s)
	s.pullNext = time.Now().Add(rand.N(pullEvery / 6))
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	for {
		s.loadPeers(ctx)
		s.readRecords(ctx)
		now := time.Now()
		if s.ready && filled == nil && now.Sub(listed) >= listEvery {
			listed = now
			s.listAgents(ctx)
		}
		if !listed.IsZero() {
			s.signReports(ctx)
			s.signProofs(ctx)
			s.readRecords(ctx) // includes the records just signed
		}
		if now.Sub(swept) >= sweepEvery {
			swept = now
			s.voices.Sweep(clock.Now())
		}
		s.announceChanges(ctx)
		moves.startMoves(ctx, &wg)
	wait:
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				break wait
			case <-filled:
				filled = nil
				break wait
			case <-s.nudge:
				s.readRecords(ctx)
				moves.startMoves(ctx, &wg) // sends new fork proofs without delay
			}
		}
	}
}

// wakeRun makes Run read new records from the Replica; it never blocks.
func (s *Service) wakeRun() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Verdict returns the verdict on an agent, by its network id, with the reports on which it is based. portal
// is the agent's portal; it may be empty for an agent with its own key.
func (s *Service) Verdict(portal record.PortalID, agentID string) livereport.Verdict {
	now, tag := clock.Now(), record.TagOf(agentID)
	if portal == "" {
		portal = s.voices.Subject(tag, now)
	}
	peers := *s.peers.Load()
	self := s.cfg.Signer.ID()
	voices := s.voices.Of(portal, tag, now, func(v *livereport.Report) bool {
		if v.Portal == self {
			return false // this portal's results are added below; they are newer than its signed report
		}
		p, known := peers[v.Portal]
		v.Host, v.Home, v.Pinned, v.Proved = p.host, v.Portal == portal, p.pinned, p.proved
		return known && p.show
	})
	if w, ok := s.own.reportOf(portal, tag); ok {
		voices = append(voices, livereport.Report{Portal: self, Host: federation.HostOf(s.cfg.Signer.Origin()),
			Reach: w.reach, At: w.at, Called: w.called, Own: true, Home: portal == self})
	}
	return livereport.Weigh(voices, now)
}

// peer is the state of a portal, reduced to the facts that this package uses.
type peer struct {
	host, origin         string
	show, in             bool
	pinned, proved, here bool
	caught               bool
	epoch                int64 // epoch of the portal's head
}

// loadPeers reads the state of all portals from the registry into s.peers.
func (s *Service) loadPeers(ctx context.Context) {
	now := clock.Now()
	out := make(map[record.PortalID]peer)
	for _, p := range s.cfg.Registry.Portals(ctx) {
		if p.ID == "" {
			continue
		}
		d := s.cfg.Registry.Decide(ctx, p.ID, p.URL)
		out[p.ID] = peer{host: p.Host(), origin: p.URL, show: d.Show, in: d.In && d.Take,
			here: p.State == federation.Active, caught: p.State == federation.Quarantined,
			pinned: p.Rule.Stand == federation.Pin,
			proved: p.Proven(now), epoch: p.Head.Epoch}
	}
	s.peers.Store(&out)
}

// readRecords reads the records that were stored in the Replica since the last call, whatever their source.
// After an error the rest is read at the next call.
func (s *Service) readRecords(ctx context.Context) {
	const page = 500
	for ctx.Err() == nil {
		list, err := s.cfg.Replica.Others(ctx, types, s.tail, page)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn("read the records of portals", "error", err)
			}
			return
		}
		for _, n := range list {
			s.tail = n.Number
			r, err := record.Open(s.cfg.Signer.Network(), n.Wire)
			if err != nil || r.Expires <= clock.Now().UnixMilli() {
				continue
			}
			s.handleRecord(r)
		}
		if len(list) < page {
			s.ready = true
			return
		}
	}
}

// handleRecord updates the reports in memory from a record of the Replica, and queues new proofs and own
// attestations for other portals.
func (s *Service) handleRecord(r *record.Record) {
	self := s.cfg.Signer.ID()
	s.counts.addRecord(r)
	switch b := r.Body.(type) {
	case *record.Live:
		changed := s.voices.Put(b)
		if r.Portal == self {
			s.own.restoreReports(b)
			return
		}
		for _, tag := range changed {
			s.markChanged(b.Subject, tag)
		}
	case *record.Fork:
		if s.accused[b.Subject] {
			return
		}
		s.accused[b.Subject] = true
		if s.ready { // stored after the start, so others may not have it
			to := fewPeers
			if r.Portal == self {
				to = allPeers
			}
			s.queueRecord(r.Wire, to)
		}
	case *record.Attest:
		if s.ready && r.Portal == self {
			s.queueRecord(r.Wire, allPeers)
		}
	}
}

// maxMarked bounds the listed changed agents of one portal; with more, all its agents count as changed.
const maxMarked = 50_000

func (s *Service) markChanged(portal record.PortalID, tag record.AgentTag) {
	m, ok := s.changed[portal]
	if ok && m == nil {
		return // nil stands for all agents of the portal
	}
	if m == nil {
		m = make(map[record.AgentTag]bool)
	}
	if m[tag] = true; len(m) > maxMarked {
		m = nil
	}
	s.changed[portal] = m
}

// announceChanges calls LivenessChanged for the agents with new reports. In each step it also calls it for
// all agents of one portal, because the weight of reports falls with age.
func (s *Service) announceChanges(ctx context.Context) {
	for subject, tags := range s.own.takeChanged() {
		for tag := range tags {
			s.markChanged(subject, tag)
		}
	}
	if len(s.round) == 0 {
		for id := range *s.peers.Load() {
			s.round = append(s.round, id)
		}
	}
	if n := len(s.round); n > 0 {
		s.changed[s.round[n-1]] = nil
		s.round = s.round[:n-1]
	}
	for portal, tags := range s.changed {
		if ctx.Err() != nil {
			return
		}
		delete(s.changed, portal)
		if portal != s.cfg.Signer.ID() {
			s.cfg.Directory.LivenessChanged(ctx, portal, tags)
		}
	}
}
