package replication

import (
	"context"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// tierLook is the interval at which applyTiers runs, besides after a change of the tier or the
	// registry.
	tierLook = 30 * time.Second
	// letGoStep is how many agents one transaction deletes, so that other writes do not wait long.
	letGoStep = 256
)

// keepsSummaries reports whether the tier of this portal keeps only summaries of other portals; false
// without tiers.
func (c *Config) keepsSummaries() bool {
	return c.Tiers != nil && c.Tiers.Tier() == record.TierSummary
}

// summaryOnly reports whether only head and summary of a portal are kept: the tier requires it and the
// operator does not follow the portal.
func (c *Config) summaryOnly(d federation.Decision) bool { return c.keepsSummaries() && !d.Follow }

// runTier applies the tier to all portals until ctx ends: the agents of a portal are kept or only its
// summary.
func (s *Syncer) runTier(ctx context.Context) {
	if s.Tiers == nil {
		return
	}
	for {
		changed := s.Tiers.Changed()
		news := s.nextChange()
		s.applyTiers(ctx)
		t := time.NewTimer(tierLook)
		select {
		case <-t.C:
		case <-changed:
		case <-news:
			if !clock.Sleep(ctx, meetEvery) { // changes come in bursts: apply the tier once for all
				return
			}
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// applyTiers applies the tier to all portals, one after the other. A portal with a log that is kept again
// enters the state pulling and waits for a slot as at the first pull.
func (s *Syncer) applyTiers(ctx context.Context) {
	for _, p := range s.listPortals() {
		if ctx.Err() != nil {
			return
		}
		d := s.Registry.Decide(ctx, p.id, "")
		only := s.summaryOnly(d)
		s.mu.Lock()
		is, clearing := p.state, p.clearing
		s.mu.Unlock()
		switch {
		case only && d.Take && (clearing || is != summary && is != pulling):
			if err := s.keepSummaryOnly(ctx, p); err != nil && ctx.Err() == nil {
				s.Log.Error("agents of a portal not deleted; it is tried again", "portal", p.id, "error", err)
			}
		case !only && is == summary && !clearing:
			s.mu.Lock()
			p.since = clock.Now()
			s.mu.Unlock()
			s.applyEvent(ctx, p, logChosen)
		}
	}
}

// keepSummaryOnly deletes the agents of a portal, so that its head and summary remain. It deletes letGoStep
// agents at a time and may be called again after an error.
func (s *Syncer) keepSummaryOnly(ctx context.Context, p *portal) error {
	s.mu.Lock()
	p.noteLost()
	p.clearing, p.since = true, time.Time{}
	do := s.applyLocked(p, summaryChosen)
	s.mu.Unlock()
	s.Trees.Forget(p.id)
	for done := false; !done; {
		var err error
		if done, err = s.Replica.LetGo(ctx, p.id, letGoStep); err != nil {
			return err
		}
	}
	s.mu.Lock()
	p.clearing = false
	s.mu.Unlock()
	s.Directory.Clear(p.id)
	s.performActions(ctx, p, do)
	return nil
}

// isBrief reports whether a portal is in the state summary.
func (s *Syncer) isBrief(portal record.PortalID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.portals[portal]
	return p != nil && p.state == summary
}

// maxHeadOnly bounds portal.headOnly.
const maxHeadOnly = 2

// noteHeadOnly records that a portal sent the head without having its log: it may have the summary. Heads
// other than the newest are ignored.
func (s *Syncer) noteHeadOnly(portal, from record.PortalID, head record.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.portals[portal]; p != nil && p.head.Version == head && len(p.headOnly) < maxHeadOnly && from != portal &&
		!slices.Contains(p.headOnly, from) {
		p.headOnly = append(p.headOnly, from)
	}
}
