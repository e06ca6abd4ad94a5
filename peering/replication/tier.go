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
	// always is how long a portal with head and summary only is not pulled: until the tier or a rule
	// changes.
	always = 100 * 365 * 24 * time.Hour
)

// keepsSummaries reports whether the tier keeps only summaries of other portals.
func (s *Syncer) keepsSummaries() bool {
	return s.Tiers != nil && s.Tiers.Tier() == record.TierSummary
}

// summaryOnly reports whether only head and summary of a portal are kept.
func (s *Syncer) summaryOnly(d federation.Decision) bool { return s.keepsSummaries() && !d.Follow }

// runTier applies the tier and the rules of operators: portals keep all agents, or head and summary
// alone.
func (s *Syncer) runTier(ctx context.Context) {
	if s.Tiers == nil {
		return
	}
	for {
		changed := s.Tiers.Changed()
		var news <-chan struct{}
		if s.News != nil {
			news = s.News()
		}
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
	type one struct {
		portal record.PortalID
		f      *followed
	}
	var list []one
	s.mu.Lock()
	for portal, f := range s.portals {
		list = append(list, one{portal, f})
	}
	s.mu.Unlock()
	for _, o := range list {
		if ctx.Err() != nil {
			return
		}
		d := s.Registry.Decide(ctx, o.portal, "")
		brief := s.summaryOnly(d)
		s.mu.Lock()
		switch {
		case brief && !o.f.summaryOnly && !o.f.pulling && d.Take:
			o.f.pulling = true // no other pull runs meanwhile
			s.mu.Unlock()
			if err := s.keepSummaryOnly(ctx, o.portal, o.f); err != nil && ctx.Err() == nil {
				s.Log.Error("agents of a portal not let go; it is tried again", "portal", o.portal, "error", err)
			}
			s.mu.Lock()
			o.f.pulling = false
		case !brief && o.f.summaryOnly:
			o.f.summaryOnly, o.f.overQuota, o.f.overQuotaUntil, o.f.since = false, false, time.Time{}, clock.Now()
			if d.Take {
				s.requestPullLocked(o.portal, o.f)
			}
		}
		s.mu.Unlock()
	}
}

// keepSummaryOnly reduces a portal to its head and its summary. Its agents are deleted in steps, so
// that other writes run in between.
func (s *Syncer) keepSummaryOnly(ctx context.Context, portal record.PortalID, f *followed) error {
	s.mu.Lock()
	f.nothingLeft()
	s.mu.Unlock()
	s.Trees.Forget(portal)
	for done := false; !done; {
		var err error
		if done, err = s.Replica.LetGo(ctx, portal, letGoStep); err != nil {
			return err
		}
	}
	s.mu.Lock()
	f.summaryOnly, f.overQuota, f.overQuotaUntil, f.since, f.ranges = true, true, clock.Now().Add(always), time.Time{},
		nil
	s.mu.Unlock()
	s.Directory.Clear(portal)
	s.reportLog(ctx, portal)
	s.advertise(portal)
	s.wantSummaries()
	return nil
}

// newHead sends hints of a new head of a portal kept without its log, and has its summary fetched. For
// other portals the hints follow once the log is complete.
func (s *Syncer) newHead(portal record.PortalID) {
	s.mu.Lock()
	f := s.portals[portal]
	brief, partly := f != nil && f.summaryOnly, f != nil && f.overQuota
	s.mu.Unlock()
	if brief {
		s.advertise(portal)
	}
	if partly {
		s.wantSummaries()
	}
}

// isBrief reports whether only head and summary of a portal are kept now.
func (s *Syncer) isBrief(portal record.PortalID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.portals[portal]
	return f != nil && f.summaryOnly
}

// maxHeadOnly bounds the remembered portals that sent one head without having its log.
const maxHeadOnly = 2

// noteHeadOnly remembers a portal that sent a head without having its log.
func (s *Syncer) noteHeadOnly(portal, from record.PortalID, head record.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.portals[portal]; f != nil && f.head.Version == head && len(f.headOnly) < maxHeadOnly && from != portal &&
		!slices.Contains(f.headOnly, from) {
		f.headOnly = append(f.headOnly, from)
	}
}

// summarySources returns the portals that may have a portal's summary: the senders of its head and the
// portal itself; the senders come first while the portal does not answer.
func (s *Syncer) summarySources(portal record.PortalID, f *followed) []record.PortalID {
	list := s.listCandidates(portal, f, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	bare := slices.DeleteFunc(slices.Clone(f.headOnly),
		func(id record.PortalID) bool { return slices.Contains(list, id) })
	if s.peerOf(list[0]).down {
		return append(bare, list...)
	}
	return append(list, bare...)
}
