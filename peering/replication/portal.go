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

// portal is the state of one remote portal. Its field state changes only by applyEvent. Syncer.mu guards
// all fields.
type portal struct {
	id    record.PortalID
	state state
	head  federation.HeadRow // the newest admitted head
	// got is the version of the head up to which the log is held, except for the missing records; zero when
	// there is none.
	got record.Version
	// since is when the first head arrived up to which the log is not held; zero when the log is complete.
	since time.Time
	// sources are the portals that sent the newest head and have its log; the portal itself always counts
	// as one. headOnly are portals that sent that head and may have the summary, but not the log.
	sources, headOnly []record.PortalID
	// quota is the portal's quota when it was last compared with the records held.
	quota quota
	// drops counts deletions of the records held. A running pull compares it with its own start, because
	// records that it relied on may be gone.
	drops int
	// notifiedTurn is the first turn of the Replica that the directory has not seen; 0 means it has seen
	// none. beside is true when an unfinished pull stored records that the directory has not seen either.
	notifiedTurn int64
	beside       bool
	// handed is true after the first hint of a head of this portal was passed on. behind counts the hints
	// to portals that named an older head, in the minute that began at behindFrom.
	handed     bool
	behind     int
	behindFrom time.Time

	// clearing is true in the state summary while the agents held before are being deleted.
	clearing bool

	pull pullData
	part partData
	over overData
}

// pullData is used in the state pulling. last and fails are kept afterwards, so that leaving and entering
// the state does not make pulls more frequent.
type pullData struct {
	wake   chan struct{}      // ends the wait before the next attempt
	cancel context.CancelFunc // cancels the running attempt; nil if none runs
	again  bool               // the quota changed during the attempt: pull again
	last   time.Time          // start of the last attempt
	fails  int
	// spans are the pieces of the log that were received since it was last complete.
	spans []span
}

// partData is used in the state partial and in the pull that follows it. The times of requests outlive the
// state.
type partData struct {
	// missing holds the leaves (key and hash) for which no source had a valid record.
	missing map[record.Hash]record.Hash
	// doubted is the head with a root hash that a received log did not have, doubtful the source of that
	// log.
	doubted  record.Version
	doubtful record.PortalID
	// askedWhole are the sources that sent a whole log without the root hash of the head, askedLeaves those
	// that sent the leaves of the head.
	askedWhole, askedLeaves asked
}

// asked holds the time of the last expensive request to each source.
type asked map[record.PortalID]time.Time

// noteAsked records a request to a source and forgets those older than wholeGap.
func (a *asked) noteAsked(id record.PortalID, now time.Time) {
	if *a == nil {
		*a = make(asked)
	}
	maps.DeleteFunc(*a, func(_ record.PortalID, at time.Time) bool { return now.Sub(at).Abs() >= wholeGap })
	(*a)[id] = now
}

// mayAsk reports whether at least wholeGap has passed since the last request to a source.
func (a asked) mayAsk(id record.PortalID, now time.Time) bool {
	at, ok := a[id]
	if ok && now.Sub(at).Abs() < wholeGap {
		return false
	}
	return true
}

// overData is used in the state overQuota; logged outlives it.
type overData struct {
	until time.Time // no pull is started before this time
	// logged is true from the time the quota was exceeded until the log is complete, so that this is logged
	// only once.
	logged bool
}

// newPortal returns the state of a portal without any records, in the state absent.
func newPortal(id record.PortalID) *portal {
	return &portal{id: id, pull: pullData{wake: make(chan struct{}, 1)}}
}

// isWithoutLog reports whether this portal keeps no agent records of p on purpose.
func (p *portal) isWithoutLog() bool { return p.state == summary || p.state == overQuota }

// isDue reports whether upkeep should start a pull: always without a log, and for a partial log only when a
// source may be asked again.
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

// needsWhole reports whether only the whole log can help, not the part since the last pull: the last log
// received did not have the root hash of the newest head, or records are still missing from it.
func (p *portal) needsWhole() bool {
	return p.part.doubted == p.head.Version || p.got == p.head.Version && len(p.part.missing) > 0
}

// allSources returns a copy of sources that always contains the portal itself.
func (p *portal) allSources() []record.PortalID {
	if slices.Contains(p.sources, p.id) {
		return slices.Clone(p.sources)
	}
	return append(slices.Clip(p.sources), p.id)
}

// noteHead records a head of the portal and the portal that sent it ("" if unknown), and returns the events
// to apply. An older head is ignored.
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

// noteWhole records that the log is held up to the head at, except for the missing leaves, and that the
// directory has seen all turns of the Replica before turn.
func (p *portal) noteWhole(at record.Version, turn int64, missing map[record.Hash]record.Hash) {
	p.got, p.notifiedTurn, p.beside = at, turn, false
	p.part.missing, p.part.doubted, p.part.doubtful = missing, record.Version{}, ""
	p.pull.fails, p.pull.spans, p.over.logged = 0, nil, false
	if p.head.Version == p.got {
		p.since = time.Time{}
	}
}

// noteLost records that the records held are about to be deleted. A running pull notices it by drops.
func (p *portal) noteLost() {
	p.drops++
	p.got, p.part.missing, p.pull.spans = record.Version{}, nil, nil
	p.part.doubted, p.part.doubtful = record.Version{}, ""
}

// noteQuota records the quota of the portal, and reports whether its records have to be counted again: the
// quota changed, or the records held exceed it.
func (p *portal) noteQuota(q quota) (changed bool) {
	changed = p.quota != (quota{}) && p.quota != q
	// the quota may have been lowered while this portal was stopped
	changed = changed || p.head.Count > int64(q.agents) && p.got != (record.Version{})
	p.quota = q
	p.pull.again = p.pull.again || changed
	return changed
}

// wakeUp ends the wait of keepUp before its next attempt; it does not block.
func (p *portal) wakeUp() {
	select {
	case p.pull.wake <- struct{}{}:
	default:
	}
}

// applyEvent moves a portal to the state that follows an event and performs the actions of the transition.
// The caller must not hold mu.
func (s *Syncer) applyEvent(ctx context.Context, p *portal, e event) {
	s.mu.Lock()
	do := s.applyLocked(p, e)
	s.mu.Unlock()
	s.performActions(ctx, p, do)
}

// applyLocked is applyEvent for a caller that holds mu. The caller passes the result to performActions
// after it has released mu.
func (s *Syncer) applyLocked(p *portal, e event) (do actions) {
	p.state, do = next(p.state, e)
	if do.has(wakePull) {
		p.wakeUp()
	}
	if do.has(cancelPull) && p.pull.cancel != nil {
		p.pull.cancel()
	}
	if do.has(startPull) && !s.startLocked((&puller{p, s}).keepUp) {
		p.state, _ = next(p.state, pullStopped) // Syncer is not running; Run starts the pull later
	}
	return do
}

// performActions performs those actions that must not run under mu.
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
