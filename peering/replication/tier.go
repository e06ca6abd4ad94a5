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
	// tierLook is the interval at which the tiers are applied, besides when the tier or a rule changes.
	tierLook = 30 * time.Second
	// letGoStep is how many agents are deleted in one transaction.
	letGoStep = 256
)

// keepsSummaries reports whether the tier keeps only summaries of other portals.
func (c *Config) keepsSummaries() bool {
	return c.Tiers != nil && c.Tiers.Tier() == record.TierSummary
}

// summaryOnly reports whether only head and summary of a portal are kept.
func (c *Config) summaryOnly(d federation.Decision) bool { return c.keepsSummaries() && !d.Follow }

// runTier applies the tier and the rules of operators: portals keep all agents, or head and summary
// alone.
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
			if !clock.Sleep(ctx, meetEvery) { // more news may follow at once
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

// applyTiers applies the tiers to all portals. Records are deleted one portal after the other; a log that
// is pulled again waits for its turn as at a first sync.
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

// keepSummaryOnly reduces a portal to its head and its summary. Its agents are deleted in steps, so
// that other writes run in between.
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

// isBrief reports whether only head and summary of a portal are kept now.
func (s *Syncer) isBrief(portal record.PortalID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.portals[portal]
	return p != nil && p.state == summary
}

// maxHeadOnly bounds the remembered portals that sent one head without having its log.
const maxHeadOnly = 2

// noteHeadOnly remembers a portal that sent a head without having its log.
func (s *Syncer) noteHeadOnly(portal, from record.PortalID, head record.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.portals[portal]; p != nil && p.head.Version == head && len(p.headOnly) < maxHeadOnly && from != portal &&
		!slices.Contains(p.headOnly, from) {
		p.headOnly = append(p.headOnly, from)
	}
}
