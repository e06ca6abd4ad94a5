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
	// tierLook is how often it is looked of which portals all agents are kept,
	// besides when the tier or a rule changes.
	tierLook = 30 * time.Second
	// letGoStep is how many agents are let go at once.
	letGoStep = 256
	// always is until when a portal of which only head and summary are kept is
	// not pulled: until the tier or a rule says something else.
	always = 100 * 365 * 24 * time.Hour
)

// summing reports whether only summaries are kept of others.
func (s *Syncer) summing() bool {
	return s.Tiers != nil && s.Tiers.Tier() == record.TierSummary
}

// brief reports whether of a portal only head and summary are kept.
func (s *Syncer) brief(d federation.Decision) bool { return s.summing() && !d.Follow }

// runTier keeps all agents, or head and summary alone, of the portals that the
// tier and operators' rules say so of.
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
		s.retier(ctx)
		t := time.NewTimer(tierLook)
		select {
		case <-t.C:
		case <-changed:
		case <-news:
			if !clock.Sleep(ctx, meetEvery) { // much may happen at once
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

// retier goes over all portals. What is let go is so one portal after the
// other; what is pulled again waits for its turn as at a first sync.
func (s *Syncer) retier(ctx context.Context) {
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
		brief := s.brief(d)
		s.mu.Lock()
		switch {
		case brief && !o.f.brief && !o.f.pulling && d.Take:
			o.f.pulling = true // nobody pulls meanwhile
			s.mu.Unlock()
			if err := s.abridge(ctx, o.portal, o.f); err != nil && ctx.Err() == nil {
				s.Log.Error("agents of a portal not let go; it is tried again", "portal", o.portal, "error", err)
			}
			s.mu.Lock()
			o.f.pulling = false
		case !brief && o.f.brief:
			o.f.brief, o.f.truncated, o.f.truncatedUntil, o.f.since = false, false, time.Time{}, clock.Now()
			if d.Take {
				s.wantLocked(o.portal, o.f)
			}
		}
		s.mu.Unlock()
	}
}

// abridge keeps no more of a portal than its head and its summary. Its agents
// are let go in steps, so that others write in between.
func (s *Syncer) abridge(ctx context.Context, portal record.PortalID, f *followed) error {
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
	f.brief, f.truncated, f.truncatedUntil, f.since, f.spans = true, true, clock.Now().Add(always), time.Time{}, nil
	s.mu.Unlock()
	s.Directory.Clear(portal)
	s.report(ctx, portal)
	s.tell(portal)
	s.wantSummaries()
	return nil
}

// newHead tells others of a new head of a portal whose log is not kept, and has
// its summary fetched. Of other portals they are told once the log is whole.
func (s *Syncer) newHead(portal record.PortalID) {
	s.mu.Lock()
	f := s.portals[portal]
	brief, partly := f != nil && f.brief, f != nil && f.truncated
	s.mu.Unlock()
	if brief {
		s.tell(portal)
	}
	if partly {
		s.wantSummaries()
	}
}

// isBrief reports whether of a portal only head and summary are kept now.
func (s *Syncer) isBrief(portal record.PortalID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.portals[portal]
	return f != nil && f.brief
}

// maxBare bounds those of which it is remembered that they told of one head
// without having its log.
const maxBare = 2

// noteBare remembers who told of a head without having its log.
func (s *Syncer) noteBare(portal, from record.PortalID, head record.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.portals[portal]; f != nil && f.head.Version == head && len(f.bare) < maxBare && from != portal && !slices.Contains(f.bare, from) {
		f.bare = append(f.bare, from)
	}
}

// summarySources returns who may have a portal's summary: those that told of its
// head and the portal itself; first others when that does not answer.
func (s *Syncer) summarySources(portal record.PortalID, f *followed) []record.PortalID {
	list := s.candidates(portal, f, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	bare := slices.DeleteFunc(slices.Clone(f.bare), func(id record.PortalID) bool { return slices.Contains(list, id) })
	if s.peer(list[0]).down {
		return append(bare, list...)
	}
	return append(list, bare...)
}
