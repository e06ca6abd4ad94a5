package replication

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// rumourWait is the minimum wait for a head that gossip named, at most twice that: it usually arrives
	// in a hint, from its own portal or from another, and needs no request then.
	rumourWait = time.Second
	// rumourGap is the minimum time between two requests for one portal's head because of gossip, falseGap
	// the same after a head that does not exist: a lying member of the pool must not make all others send
	// requests.
	rumourGap = 10 * time.Second
	falseGap  = 10 * time.Minute
	// maxRumours bounds the heads that gossip named and that are waited for. It limits the requests to
	// about ten a second.
	maxRumours = 16
	// markEvery is the minimum time between two rebuilds of the map from mark to portal.
	markEvery = 10 * time.Second
)

// rumours holds the heads that gossip named without a proof. Syncer.mu guards it.
type rumours struct {
	marks  map[federation.Mark]record.PortalID
	marked time.Time
	rest   map[record.PortalID]time.Time // gossip about a portal is ignored until then
	wait   int
}

// Rumour reports a head that gossip named, by the mark of its portal and without a signature. If that head
// does not arrive in a hint within rumourWait, the portal is asked for it once. It does not block.
func (s *Syncer) Rumour(mark federation.Mark, at record.Version) {
	now := clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.rumours
	p := r.findPortal(mark, s.portals, now)
	if p == nil || p.head.Compare(at) >= 0 || now.Before(r.rest[p.id]) || r.wait >= maxRumours {
		return
	}
	if s.startLocked(func(ctx context.Context) { s.followRumour(ctx, p, at) }) {
		r.rest[p.id] = now.Add(rumourGap)
		r.wait++
	}
}

// followRumour waits for a head that gossip named, and requests it if it did not arrive by a hint. It runs
// in a goroutine of its own.
func (s *Syncer) followRumour(ctx context.Context, p *portal, at record.Version) {
	ok := clock.Sleep(ctx, rumourWait+s.dice.timeBelow(rumourWait))
	s.mu.Lock()
	s.rumours.wait--
	ok = ok && p.head.Compare(at) < 0
	s.mu.Unlock()
	if !ok {
		return
	}
	err := s.askHead(ctx, p.id)
	if err != nil && ctx.Err() == nil {
		s.Log.Debug("the head that gossip named was not fetched", "portal", p.id, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && p.head.Compare(at) < 0 {
		s.rumours.rest[p.id] = clock.Now().Add(falseGap)
	}
}

// findPortal returns the followed portal with a mark, nil if there is none. If the mark is unknown, the map
// of marks is rebuilt at most once in markEvery. The caller holds Syncer.mu.
func (r *rumours) findPortal(mark federation.Mark, portals map[record.PortalID]*portal, now time.Time) *portal {
	if id, ok := r.marks[mark]; ok || now.Sub(r.marked) < markEvery {
		return portals[id]
	}
	r.marks, r.marked = make(map[federation.Mark]record.PortalID, len(portals)), now
	rest := make(map[record.PortalID]time.Time)
	for id := range portals {
		r.marks[federation.MarkOf(id)] = id
		if until := r.rest[id]; now.Before(until) {
			rest[id] = until
		}
	}
	r.rest = rest
	return portals[r.marks[mark]]
}

// askHead requests the newest head of a portal from that portal itself and accepts it.
func (s *Syncer) askHead(ctx context.Context, portal record.PortalID) error {
	leave, err := s.work.enterSlot(ctx)
	if err != nil {
		return err
	}
	defer leave()
	t, err := s.fetchHead(ctx, portal, portal)
	if err != nil {
		return err
	}
	_, err = s.Take(ctx, portal, []federation.Told{t})
	return err
}
