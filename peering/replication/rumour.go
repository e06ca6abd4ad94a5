package replication

import (
	"context"
	"net/http"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// rumourWait is how long the head that gossip tells of may take to come by
	// itself, up to twice that: who publishes tells others, and they hand on.
	rumourWait = time.Second
	// rumourGap keeps requests for one portal's head apart that gossip led to,
	// falseGap those after a rumour that was false: a member that lies must not
	// have all others ask.
	rumourGap = 10 * time.Second
	falseGap  = 10 * time.Minute
	// maxRumours bounds those that are waited for, and so how many are asked
	// for in a second: ten or so.
	maxRumours = 16
	// markEvery is how often it is read anew which portals are known.
	markEvery = 10 * time.Second
)

// rumours are heads that gossip told of. Syncer.mu guards them.
type rumours struct {
	marks  map[federation.Mark]record.PortalID
	marked time.Time
	rest   map[record.PortalID]time.Time // until when no rumour of it counts
	wait   int
}

// Rumour tells that a portal may have a head, which nobody signed: if that does
// not come by itself, the portal is asked for it, once. It does not block.
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
	wait := rumourWait + time.Duration(s.rand.Int64N(int64(rumourWait)))
	s.startLocked(func(ctx context.Context) {
		ok := clock.Sleep(ctx, wait)
		s.mu.Lock()
		s.rumours.wait--
		ok = ok && s.lacksLocked(portal, at)
		s.mu.Unlock()
		if !ok {
			return
		}
		err := s.work.do(ctx, func() error { return s.askHead(ctx, portal) })
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

// markedLocked is the portal with a mark, "" for none that is followed; the
// caller holds mu.
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

// askHead asks a portal for its head.
func (s *Syncer) askHead(ctx context.Context, portal record.PortalID) error {
	a, err := s.ask(ctx, portal, http.MethodGet, "/peering/v1/portals/"+string(portal)+"/head", nil, shortTimeout, maxShort)
	if err != nil {
		return err
	}
	var t federation.Told
	if err := readAnswer(a, &t); err != nil {
		return err
	}
	_, err = s.Take(ctx, portal, []federation.Told{t})
	return err
}
