package replication

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// rumourWait is how long a head named by gossip may take to arrive by itself, up to twice that: its
	// publisher sends hints, and the receivers pass them on.
	rumourWait = time.Second
	// rumourGap is the minimum time between two requests for one portal's head because of gossip, falseGap
	// the same after a false rumour: a lying member must not make all others send requests.
	rumourGap = 10 * time.Second
	falseGap  = 10 * time.Minute
	// maxRumours bounds the rumours that wait, and so the requests a second to about ten.
	maxRumours = 16
	// markEvery is the interval at which the known portals are read again.
	markEvery = 10 * time.Second
)

// rumours holds heads that gossip named. Syncer.mu guards them.
type rumours struct {
	marks  map[federation.Mark]record.PortalID
	marked time.Time
	rest   map[record.PortalID]time.Time // rumours of a portal are ignored until then
	wait   int
}

// Rumour reports that a portal may have a head, without a signature: if that head does not arrive by
// itself, the portal is asked for it once. It does not block.
func (s *Syncer) Rumour(mark federation.Mark, at record.Version) {
	now := clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	portal := s.markedLocked(mark, now)
	if portal == "" || portal == s.own || !s.lacksLocked(portal, at) {
		return
	}
	r := &s.rumours
	if now.Before(r.rest[portal]) || r.wait >= maxRumours {
		return
	}
	r.rest[portal] = now.Add(rumourGap)
	r.wait++
	wait := rumourWait + s.dice.upTo(rumourWait)
	s.startLocked(func(ctx context.Context) {
		ok := clock.Sleep(ctx, wait)
		s.mu.Lock()
		s.rumours.wait--
		ok = ok && s.lacksLocked(portal, at)
		s.mu.Unlock()
		if !ok {
			return
		}
		err := s.askHead(ctx, portal)
		if err != nil && ctx.Err() == nil {
			s.Log.Debug("the head that gossip tells of was not got", "portal", portal, "error", err)
		}
		s.mu.Lock()
		if err == nil && s.lacksLocked(portal, at) {
			s.rumours.rest[portal] = clock.Now().Add(falseGap)
		}
		s.mu.Unlock()
	})
}

// lacksLocked reports whether no head of a portal as new as that is held; the
// caller holds mu.
func (s *Syncer) lacksLocked(portal record.PortalID, at record.Version) bool {
	f := s.portals[portal]
	return f != nil && f.head.Version.Compare(at) < 0
}

// markedLocked returns the followed portal with a mark, or ""; the caller holds mu.
func (s *Syncer) markedLocked(mark federation.Mark, now time.Time) record.PortalID {
	r := &s.rumours
	if id, ok := r.marks[mark]; ok || now.Sub(r.marked) < markEvery {
		return id
	}
	r.marks, r.marked = make(map[federation.Mark]record.PortalID, len(s.portals)), now
	rest := make(map[record.PortalID]time.Time)
	for id := range s.portals {
		r.marks[federation.MarkOf(id)] = id
		if until := r.rest[id]; now.Before(until) {
			rest[id] = until
		}
	}
	r.rest = rest
	return r.marks[mark]
}

// askHead requests a portal's head from it.
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
