package replication

import (
	"context"
	"errors"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// pullGap is the minimum time between two pulls of one portal, so that hints cannot force more.
	pullGap = time.Second
	// wholeGap is the minimum time between two pulls of a portal's whole log from one source, and between
	// two requests for its leaves. A log that does not add up costs no more than that.
	wholeGap = time.Hour
	// overQuotaFor is how long a portal over its quota in bytes is not pulled again; the size is known
	// only after reading the records.
	overQuotaFor = time.Hour
)

var (
	// errBehind is returned for a source with an older head than the one held.
	errBehind = errors.New("it has an older head")
	// errForked ends a pull: the portal is quarantined now.
	errForked = errors.New("the portal signed two records of one version")
	// errTooMuch ends a pull: the portal's quota is exhausted.
	errTooMuch = errors.New("the portal has more than its quota")
	// errUnwanted ends a pull: a rule or the policy forbids it.
	errUnwanted = errors.New("its records are not taken")
	// errDropped ends a pull during which the records held were deleted.
	errDropped = errors.New("the records held of the portal were deleted meanwhile")
	// errMismatch is returned for a source with a log that does not add up to its head.
	errMismatch = errors.New("its log does not add up to its head")
	// errNoSource ends a pull: no source may be asked now.
	errNoSource = errors.New("no source has its log")
)

// outcome is the result of one pull.
type outcome struct {
	event event
	at    record.Version // of the head that quotaExceeded is about
	err   error          // of pullFailed
}

func failedBy(err error) outcome { return outcome{event: pullFailed, err: err} }

// pullLog decides whether a portal's log is pulled at all, and pulls it.
func (p *puller) pullLog(ctx context.Context) outcome {
	d := p.s.Registry.Decide(ctx, p.id, "")
	if !d.Take {
		return failedBy(errUnwanted)
	}
	if p.s.summaryOnly(d) {
		if err := p.s.keepSummaryOnly(ctx, p.portal); err != nil {
			return failedBy(err)
		}
		return outcome{event: summaryChosen}
	}
	p.s.mu.Lock()
	head := p.head
	p.quota = quotaOf(d)
	p.s.mu.Unlock()
	if head.Count > int64(d.MaxAgents) {
		return p.dropOverQuota(ctx, head.Version, 0)
	}
	o := p.pullFromSources(ctx, d)
	if errors.Is(o.err, errTooMuch) {
		return p.dropOverQuota(ctx, head.Version, overQuotaFor)
	}
	return o
}

// pullFromSources asks the sources one after the other until one of them completes the log. If the logs of
// all do not add up, the next call asks each for the whole log; if those do not add up either, the
// leaves of the head prove which records count.
func (p *puller) pullFromSources(ctx context.Context, d federation.Decision) outcome {
	p.s.mu.Lock()
	head, got, whole := p.head.Version, p.got, p.needsWhole()
	p.s.mu.Unlock()
	var from *record.Version
	var tried []record.PortalID
	last, mismatch := failedBy(errNoSource), false
	for {
		if whole {
			from = new(record.Version)
		}
		list := p.s.listSources(p.portal, tried, whole)
		if len(list) == 0 {
			break
		}
		source, err := p.s.sources.takeSource(ctx, list)
		if err != nil {
			return failedBy(err)
		}
		one := &pull{puller: p, source: source, limits: d, from: from}
		last = one.runPull(ctx)
		p.s.sources.leaveSource(source)
		if errors.Is(last.err, errMismatch) {
			mismatch, from = true, &got
			if one.log != nil && !whole {
				whole, tried = true, nil // those that did not answer are asked once more
			}
		}
		switch {
		case last.event == logWhole, last.event == logPartial && !whole, ctx.Err() != nil,
			errors.Is(last.err, errForked), errors.Is(last.err, errTooMuch):
			return last
		case one.log != nil && (last.event == logPartial || errors.Is(last.err, errMismatch)):
			// listSources does not name it again within wholeGap
		default:
			tried = append(tried, source)
		}
	}
	p.s.mu.Lock()
	isPartial := p.got == head && len(p.part.missing) > 0
	p.s.mu.Unlock()
	switch {
	case isPartial:
		return outcome{event: logPartial}
	case whole && (mismatch || errors.Is(last.err, errNoSource)):
		return p.proveLog(ctx, d)
	}
	return last
}

// listSources returns the portals that may have a portal's log and were not tried: those that sent its
// head, then the portal itself; unreachable and doubtful sources come last. For a pull of the whole log
// those that gave it within wholeGap are left out.
func (s *Syncer) listSources(p *portal, tried []record.PortalID, whole bool) []record.PortalID {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.Now()
	list := slices.DeleteFunc(p.allSources(), func(id record.PortalID) bool {
		return slices.Contains(tried, id) || whole && !p.part.askedWhole.mayAsk(id, now)
	})
	rank := func(id record.PortalID) int {
		n := 2 * s.peers.rankSource(id, now)
		if id == p.part.doubtful {
			n++
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b record.PortalID) int { return rank(a) - rank(b) })
	return list
}

// dropOverQuota keeps only the head of a portal with a log larger than its quota, until pause is over. A
// part of the log would be indistinguishable from a log with omissions.
func (p *puller) dropOverQuota(ctx context.Context, at record.Version, pause time.Duration) outcome {
	p.s.mu.Lock()
	p.over.until = clock.Now().Add(pause)
	logged := p.over.logged
	p.over.logged = true
	p.s.mu.Unlock()
	// Its summary stays if no records are held.
	n, _, err := p.s.Replica.Holding(ctx, p.id)
	if err == nil && n > 0 {
		err = p.s.forgetAgents(ctx, p.id)
	}
	if err != nil {
		return failedBy(err)
	}
	if !logged {
		p.s.Log.Warn("a portal has more agents than its quota; none are kept until it has fewer or the quota is raised",
			"portal", p.id)
	}
	return outcome{event: quotaExceeded, at: at}
}

// takeFirst admits the head that an answer about a portal begins with.
func (s *Syncer) takeFirst(ctx context.Context, portal, source record.PortalID, wire []byte) (signedHead, error) {
	claim, err := record.Open(s.Self.Network(), wire)
	if err != nil || claim.Type != record.TypeHead || claim.Portal != portal {
		s.Registry.Fault(source, string(record.NotConsistent))
		return signedHead{}, errors.New("the answer does not begin with a head of the portal")
	}
	standing, err := s.Replica.Standing(ctx, portal)
	if err != nil {
		return signedHead{}, err
	}
	if claim.Version().Compare(standing.Head) < 0 {
		return signedHead{}, errBehind
	}
	r, fresh, err := s.admitHead(ctx, portal, wire)
	if err != nil {
		switch why := record.ReasonOf(err); why {
		case record.Equivocation:
			s.handleFork(ctx, portal)
			return signedHead{}, errForked
		case record.Stale:
			return signedHead{}, errBehind
		case "", record.Expired, record.Quarantined, record.NoPortal:
		case record.NoKey:
			s.fetchCard(ctx, portal, source) // for the next try
		default:
			s.Registry.Fault(source, string(why))
		}
		return signedHead{}, err
	}
	head := r.Body.(*record.Head)
	s.requestPull(ctx, source, head, fresh)
	return signedHead{head, r.Hash}, nil
}

// fetchCard requests a newer card of a portal from a source that has a head signed by an unknown key.
func (s *Syncer) fetchCard(ctx context.Context, portal, source record.PortalID) {
	t, err := s.fetchHead(ctx, portal, source)
	if err == nil {
		err = s.takeCard(ctx, portal, t.Card)
	}
	if err != nil {
		s.Log.Debug("no newer card", "portal", portal, "error", err)
	}
}

// blameSource records a refusal in a log as a fault of its source, and returns an error when the pull cannot
// go on.
func (s *Syncer) blameSource(ctx context.Context, portal, source record.PortalID, err error) error {
	switch why := record.ReasonOf(err); why {
	case record.Equivocation:
		s.handleFork(ctx, portal)
		return errForked
	case record.Quarantined:
		return errForked
	case "":
		return err
	case record.Stale, record.Expired:
		// We know more than the source, or its record is late.
	default:
		s.Registry.Fault(source, string(why))
	}
	return nil
}
