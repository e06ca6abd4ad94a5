package replication

import (
	"context"
	"maps"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// portal is what is known of one remote portal. Its state changes by applyEvent alone. Syncer.mu guards all
// fields.
type portal struct {
	id    record.PortalID
	state state
	head  federation.HeadRow // the newest that was admitted
	// got is the head that the records held add up to, except for missing ones; zero when there is none.
	got record.Version
	// since is the arrival of the first head that the records held do not add up to; zero when they do.
	since time.Time
	// sources are the portals that sent head and have its log; the portal itself is always one. headOnly
	// sources sent head and may have its summary, but not the log.
	sources, headOnly []record.PortalID
	// quota is the quota at the last check.
	quota quota
	// drops counts the deletions of the records held: a pull that runs meanwhile has seen records that are
	// gone.
	drops int
	// notifiedTurn is the first turn of the Replica that the directory has not seen; beside is true when
	// records came with another pull than the one that completes the log.
	notifiedTurn int64
	beside       bool
	// handed is true after a hint of one of its heads was passed on. behind counts the portals that
	// received a hint of its head, since behindFrom, because they named an older one.
	handed     bool
	behind     int
	behindFrom time.Time

	// clearing is true in the state summary while records of before are being deleted.
	clearing bool

	pull pullData
	part partData
	over overData
}

// pullData belongs to the state pulling. last and fails survive it, so that pulls are no more frequent
// after another start.
type pullData struct {
	wake   chan struct{}      // ends the wait before the next try
	cancel context.CancelFunc // of the running request, or nil
	again  bool               // the quota changed: the log is to be pulled again
	last   time.Time          // start of the last try
	fails  int
	// spans are the pieces of the log since it was complete.
	spans []span
}

// partData belongs to the state partial, and to a pull that follows it. The limits of requests survive it.
type partData struct {
	// missing holds the leaves for which no source had a good record.
	missing map[record.Hash]record.Hash
	// doubted is the head to which a log did not add up, doubtful the source of that log.
	doubted  record.Version
	doubtful record.PortalID
	// askedWhole are the sources that gave the whole log and it did not add up, askedLeaves those that
	// gave the leaves of the head.
	askedWhole, askedLeaves asked
}

// asked holds when sources were asked.
type asked map[record.PortalID]time.Time

// noteAsked notes that a source was asked now.
func (a *asked) noteAsked(id record.PortalID, now time.Time) {
	if *a == nil {
		*a = make(asked)
	}
	maps.DeleteFunc(*a, func(_ record.PortalID, at time.Time) bool { return now.Sub(at).Abs() >= wholeGap })
	(*a)[id] = now
}

// mayAsk reports whether wholeGap is over since a source was asked.
func (a asked) mayAsk(id record.PortalID, now time.Time) bool {
	at, ok := a[id]
	if ok && now.Sub(at).Abs() < wholeGap {
		return false
	}
	return true
}

// overData belongs to the state overQuota.
type overData struct {
	until time.Time // no pull before then
	// logged is true from the time the quota was exhausted until the log is complete, so that this is
	// logged once.
	logged bool
}

// newPortal returns a portal of which nothing is held.
func newPortal(id record.PortalID) *portal {
	return &portal{id: id, pull: pullData{wake: make(chan struct{}, 1)}}
}

// isWithoutLog reports whether no records are held of the portal on purpose.
func (p *portal) isWithoutLog() bool { return p.state == summary || p.state == overQuota }

// isDue reports whether upkeep should start a pull.
func (p *portal) isDue(now time.Time) bool {
	switch p.state {
	case absent:
		return true
	case partial:
		return !p.needsWhole() || slices.ContainsFunc(p.allSources(), func(id record.PortalID) bool {
			return p.part.askedWhole.mayAsk(id, now)
		})
	}
	return false
}

// needsWhole reports whether a part of the log cannot help: the last one did not add up to the newest head,
// or it did except for missing records.
func (p *portal) needsWhole() bool {
	return p.part.doubted == p.head.Version || p.got == p.head.Version && len(p.part.missing) > 0
}

// allSources returns the portals that may have the log.
func (p *portal) allSources() []record.PortalID {
	if slices.Contains(p.sources, p.id) {
		return slices.Clone(p.sources)
	}
	return append(slices.Clip(p.sources), p.id)
}

// noteHead notes a head of the portal and the portal that sent it, and returns the events that follow.
func (p *portal) noteHead(row federation.HeadRow, from record.PortalID) []event {
	var list []event
	switch c := row.Compare(p.head.Version); {
	case c < 0:
		return nil
	case c > 0:
		p.head, p.sources, p.headOnly, p.pull.fails = row, nil, nil, 0
		if p.since.IsZero() {
			p.since = clock.Now()
		}
		list = append(list, newHead)
		if p.state == overQuota && !clock.Now().Before(p.over.until) {
			list = append(list, retryDue)
		}
	}
	if from != "" && !slices.Contains(p.sources, from) && len(p.sources) < maxSources {
		p.sources = append(p.sources, from)
		list = append(list, newSource)
	}
	return list
}

// noteWhole notes that the records held add up to a head, except for the missing leaves, and that the
// directory has seen all turns before one.
func (p *portal) noteWhole(at record.Version, turn int64, missing map[record.Hash]record.Hash) {
	p.got, p.notifiedTurn, p.beside = at, turn, false
	p.part.missing, p.part.doubted, p.part.doubtful = missing, record.Version{}, ""
	p.pull.fails, p.pull.spans, p.over.logged = 0, nil, false
	if p.head.Version == p.got {
		p.since = time.Time{}
	}
}

// noteLost notes that the records held are about to be deleted.
func (p *portal) noteLost() {
	p.drops++
	p.got, p.part.missing, p.pull.spans = record.Version{}, nil, nil
	p.part.doubted, p.part.doubtful = record.Version{}, ""
}

// noteQuota notes the quota of the portal, and reports whether its records have to be counted again.
func (p *portal) noteQuota(q quota) (changed bool) {
	changed = p.quota != (quota{}) && p.quota != q
	// the quota was larger before the start
	changed = changed || p.head.Count > int64(q.agents) && p.got != (record.Version{})
	p.quota = q
	p.pull.again = p.pull.again || changed
	return changed
}

// wakeUp ends the wait before the next try of a pull.
func (p *portal) wakeUp() {
	select {
	case p.pull.wake <- struct{}{}:
	default:
	}
}

// applyEvent moves a portal to the state that follows an event, and does what belongs to it. The caller does
// not hold mu.
func (s *Syncer) applyEvent(ctx context.Context, p *portal, e event) {
	s.mu.Lock()
	do := s.applyLocked(p, e)
	s.mu.Unlock()
	s.performActions(ctx, p, do)
}

// applyLocked is applyEvent for a caller that holds mu. It returns what is left for performActions.
func (s *Syncer) applyLocked(p *portal, e event) (do actions) {
	p.state, do = next(p.state, e)
	if do.has(wakePull) {
		p.wakeUp()
	}
	if do.has(cancelPull) && p.pull.cancel != nil {
		p.pull.cancel()
	}
	if do.has(startPull) && !s.startLocked((&puller{p, s}).keepUp) {
		p.state, _ = next(p.state, pullStopped) // Run starts a pull of each portal that lacks anything
	}
	return do
}

// performActions does the actions that need no lock.
func (s *Syncer) performActions(ctx context.Context, p *portal, do actions) {
	if do.has(report) {
		s.Report(ctx, p.id)
	}
	if do.has(advertise) {
		s.hints.advertiseHead(p.id)
	}
	if do.has(fetchSummary) {
		s.summaries.fetchSoon()
	}
}
