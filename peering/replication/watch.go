package replication

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// Decisions on portals may change at any moment: an operator changes a rule, or a portal is proved to
// have forged. They are checked watchPause after such news, for at most a twentieth of the time.
const (
	watchPause = 100 * time.Millisecond
	watchShare = 20
)

// quota bounds the records held of a portal.
type quota struct {
	agents int
	bytes  int64
}

func quotaOf(d federation.Decision) quota { return quota{d.MaxAgents, d.MaxBytes} }

// runWatch applies changed decisions on portals at once: pulls end, records are deleted, and are
// pulled again when the decision is reverted. Without news upkeep applies them.
func (s *Syncer) runWatch(ctx context.Context) {
	if s.Changes == nil {
		return
	}
	for {
		news := s.nextChange() // taken before the check, so that no news is missed
		began := time.Now()
		s.applyDecisions(ctx)
		took := time.Since(began)
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
		if !clock.Sleep(ctx, max(watchPause, watchShare*took)) {
			return
		}
	}
}

// applyDecisions applies the decisions to all portals that are followed.
func (s *Syncer) applyDecisions(ctx context.Context) {
	for _, p := range s.listPortals() {
		switch d := s.Registry.Decide(ctx, p.id, ""); {
		case ctx.Err() != nil:
			return
		case mustDrop(d):
			s.tryDrop(ctx, p.id)
		case !d.Take:
			s.applyEvent(ctx, p, shutOut)
		default:
			s.applyQuota(ctx, p, quotaOf(d))
		}
	}
}

// mustDrop reports whether no record of a portal may be held.
func mustDrop(d federation.Decision) bool { return d.State == federation.Denied && !d.Keep }

// applyQuota starts a pull of an allowed portal's log if it lacks anything or its quota changed.
func (s *Syncer) applyQuota(ctx context.Context, p *portal, q quota) {
	s.mu.Lock()
	var do actions
	if p.noteQuota(q) {
		do = s.applyLocked(p, quotaChanged)
	} else if p.isDue(clock.Now()) {
		do = s.applyLocked(p, retryDue)
	}
	s.mu.Unlock()
	s.performActions(ctx, p, do)
}

// dropDenied deletes the records held of a portal if it is shut out.
func (s *Syncer) dropDenied(ctx context.Context, portal record.PortalID) {
	if ctx.Err() == nil && mustDrop(s.Registry.Decide(ctx, portal, "")) {
		s.tryDrop(ctx, portal)
	}
}
