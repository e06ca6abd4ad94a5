// Package live is what portals tell each other of whether agents can be
// reached. It signs what this portal's own exchanges showed, takes in and hands
// on what others' showed, and says what all of it comes to. Whose word counts
// is decided by federation.Weigh; how words travel is written down in
// docs/design/peering.md, what they are in docs/design/records.md.
//
// Fork proofs and what portals say of others travel the same way, so they are
// moved here too; what they mean is decided by record.Gate and
// federation.Registry.
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
	"agentsite/internal/record"
)

// Seen is what an exchange of this portal with an agent showed.
type Seen struct {
	Subject record.PortalID // the agent's portal, this one or another
	Agent   string          // its id in the network
	Reach   record.Reach
	At      time.Time
	Called  bool          // it was work for somebody, not a probe
	Took    time.Duration // 0 when that says nothing
}

// Config is what a Service works with. Only Changed and Log may be nil.
type Config struct {
	Signer   federation.Signer
	Gate     *record.Gate
	Replica  federation.Replica
	Registry federation.Registry
	Caller   federation.Caller
	// Own calls yield for each agent of this portal that others are told of,
	// with what was last seen of it, until yield returns false.
	Own func(ctx context.Context, yield func(Seen) bool) error
	// Changed is told of agents of which something else may be believed now. A
	// list of nil means that any of the portal's may be meant. It is called by
	// one goroutine, and at most once in 10 seconds about a portal.
	Changed func(ctx context.Context, portal record.PortalID, agents map[record.AgentTag]bool)
	Log     *slog.Logger
}

// The types of records that are moved here.
var types = []record.Type{record.TypeAttest, record.TypeFork, record.TypeLive}

const (
	// stepEvery is how often everything is looked at: what is to be signed,
	// told, asked for.
	stepEvery = 10 * time.Second
	// listEvery is how often all of this portal's agents are read.
	listEvery = 10 * time.Minute
	// sweepEvery is how often what expired is dropped.
	sweepEvery = 10 * time.Minute
)

// Service is the words about liveness of one portal. Create it with New and
// keep Run running. It is safe for concurrent use.
type Service struct {
	cfg    Config
	voices federation.Voices
	own    own
	peers  atomic.Pointer[map[record.PortalID]peer]
	counts counts
	nudge  chan struct{} // something arrived

	// Of Run's goroutine alone.
	tail     int64 // the number up to which the Replica was read
	changed  map[record.PortalID]map[record.AgentTag]bool
	round    []record.PortalID // whose turn it is to be looked at anew
	accused  map[record.PortalID]bool
	outbox   []parcel
	ready    bool // the Replica was read once
	pullNext time.Time

	mu      sync.Mutex // guards cursors
	cursors map[record.PortalID]cursor
}

// New returns a Service that has heard nothing yet.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Changed == nil {
		cfg.Changed = func(context.Context, record.PortalID, map[record.AgentTag]bool) {}
	}
	s := &Service{cfg: cfg, nudge: make(chan struct{}, 1), changed: make(map[record.PortalID]map[record.AgentTag]bool),
		accused: make(map[record.PortalID]bool), cursors: make(map[record.PortalID]cursor)}
	s.peers.Store(&map[record.PortalID]peer{})
	return s
}

// Run signs, tells and asks until ctx ends. It returns when all of its
// goroutines have.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var listed, swept time.Time
	moves := newMoves(s)
	s.pullNext = time.Now().Add(rand.N(pullEvery / 6))
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	for {
		s.look(ctx)
		s.follow(ctx)
		now := time.Now()
		if s.ready && now.Sub(listed) >= listEvery {
			listed = now
			s.list(ctx)
		}
		if s.ready {
			s.speak(ctx)
			s.accuse(ctx)
			s.follow(ctx) // what was just said
		}
		if now.Sub(swept) >= sweepEvery {
			swept = now
			s.voices.Sweep(clock.Now())
		}
		s.announce(ctx)
		moves.start(ctx, &wg)
	wait:
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				break wait
			case <-s.nudge:
				s.follow(ctx)
				moves.start(ctx, &wg) // a proof does not wait
			}
		}
	}
}

// wake has Run read what was taken in; it never waits.
func (s *Service) wake() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Verdict says what is believed of an agent, by its id in the network, and who
// says what. The portal may be left out for agents with their own key.
func (s *Service) Verdict(portal record.PortalID, agentID string) federation.Verdict {
	now, tag := clock.Now(), record.TagOf(agentID)
	if portal == "" {
		portal = s.voices.Subject(tag, now)
	}
	peers := *s.peers.Load()
	self := s.cfg.Signer.ID()
	voices := s.voices.Of(portal, tag, now, func(v *federation.Voice) bool {
		if v.Portal == self {
			return false // what it saw since it last spoke is below
		}
		p, known := peers[v.Portal]
		v.Host, v.Home, v.Pinned, v.Proved = p.host, v.Portal == portal, p.pinned, p.proved
		return known && p.show
	})
	if w, ok := s.own.of(portal, tag); ok {
		voices = append(voices, federation.Voice{Portal: self, Host: federation.HostOf(s.cfg.Signer.Origin()), Reach: w.reach, At: w.at, Called: w.called, Own: true, Home: portal == self})
	}
	return federation.Weigh(voices, now)
}

// peer is what matters here of a portal.
type peer struct {
	host, origin         string
	show, in             bool
	pinned, proved, here bool
	caught               bool
	epoch                int64 // of its head
}

// look reads how portals are doing.
func (s *Service) look(ctx context.Context) {
	now := clock.Now()
	out := make(map[record.PortalID]peer)
	for _, p := range s.cfg.Registry.Portals(ctx) {
		if p.ID == "" {
			continue
		}
		d := s.cfg.Registry.Decide(ctx, p.ID, p.URL)
		out[p.ID] = peer{host: p.Host(), origin: p.URL, show: d.Show, in: d.In && d.Take, here: p.State == federation.Active, caught: p.State == federation.Quarantined,
			pinned: p.Rule.Stand == federation.Pin,
			proved: p.Proven(now), epoch: p.Head.Epoch}
	}
	s.peers.Store(&out)
}

// follow reads what the Replica holds since the last time, whatever brought it.
func (s *Service) follow(ctx context.Context) {
	const page = 500
	for ctx.Err() == nil {
		list, err := s.cfg.Replica.Others(ctx, types, s.tail, page)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn("read what portals say", "error", err)
			}
			return
		}
		for _, n := range list {
			s.tail = n.Number
			r, err := record.Open(s.cfg.Signer.Network(), n.Wire)
			if err != nil || r.Expires <= clock.Now().UnixMilli() {
				continue
			}
			s.heard(r)
		}
		if len(list) < page {
			s.ready = true
			return
		}
	}
}

// heard takes note of a record that the Replica holds.
func (s *Service) heard(r *record.Record) {
	self := s.cfg.Signer.ID()
	s.counts.add(r)
	switch b := r.Body.(type) {
	case *record.Live:
		changed := s.voices.Put(b)
		if r.Portal == self {
			s.own.restore(b)
			return
		}
		for _, tag := range changed {
			s.mark(b.Subject, tag)
		}
	case *record.Fork:
		if s.accused[b.Subject] {
			return
		}
		s.accused[b.Subject] = true
		if s.ready { // it is news
			to := fewPeers
			if r.Portal == self {
				to = allPeers
			}
			s.send(r.Wire, to)
		}
	case *record.Attest:
		if s.ready && r.Portal == self {
			s.send(r.Wire, allPeers)
		}
	}
}

// maxMarked bounds the agents of one portal that are named as changed.
const maxMarked = 50_000

func (s *Service) mark(portal record.PortalID, tag record.AgentTag) {
	m, ok := s.changed[portal]
	if ok && m == nil {
		return // all of them already
	}
	if m == nil {
		m = make(map[record.AgentTag]bool)
	}
	if m[tag] = true; len(m) > maxMarked {
		m = nil
	}
	s.changed[portal] = m
}

// announce tells of what changed, and of one portal more: words grow old
// without anybody saying anything.
func (s *Service) announce(ctx context.Context) {
	for subject, tags := range s.own.takeChanged() {
		for tag := range tags {
			s.mark(subject, tag)
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
			s.cfg.Changed(ctx, portal, tags)
		}
	}
}
