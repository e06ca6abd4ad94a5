package replication

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// watchPause is the minimum wait between two checks of the policy on all portals, to join bursts of
// changes. After a check that took t the wait is at least watchShare × t, so that checks use at most a
// twentieth of the time.
const (
	watchPause = 100 * time.Millisecond
	watchShare = 20
)

// quota bounds the agent records held of one portal, in number and bytes.
type quota struct {
	agents int
	bytes  int64
}

func quotaOf(d federation.Decision) quota { return quota{d.MaxAgents, d.MaxBytes} }

// runWatch applies changes of the policy on portals at once, until ctx ends: running pulls end, records are
// deleted, and logs are pulled again when a decision is reverted. Without Config.Changes it does nothing,
// and runUpkeep applies them once a minute.
func (s *Syncer) runWatch(ctx context.Context) {
	if s.Changes == nil {
		return
	}
	for {
		news := s.nextChange() // taken before the check, so that no change is missed
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

// applyDecisions applies the policy to all portals that are followed.
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

// mustDrop reports whether the policy requires the deletion of all records of a portal.
func mustDrop(d federation.Decision) bool { return d.State == federation.Denied && !d.Keep }

// applyQuota records the quota of an allowed portal, and starts a pull if the quota changed or a pull is
// due.
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

// dropDenied deletes the records held of a portal if the policy denies it.
func (s *Syncer) dropDenied(ctx context.Context, portal record.PortalID) {
	if ctx.Err() == nil && mustDrop(s.Registry.Decide(ctx, portal, "")) {
		s.tryDrop(ctx, portal)
	}
}
