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
	// two requests for its leaves. It limits the traffic caused by a log that differs from its head.
	wholeGap = time.Hour
	// overQuotaFor is how long a portal over its quota in bytes is not pulled again. Unlike the number of
	// agents, the size is not in the head, so only a pull can find it out.
	overQuotaFor = time.Hour
)

var (
	// errBehind is returned for a source with an older head than the one held here.
	errBehind = errors.New("it has an older head")
	// errForked ends a pull: the portal is quarantined now.
	errForked = errors.New("the portal signed two records of one version")
	// errTooMuch ends a pull because the records exceed the portal's quota.
	errTooMuch = errors.New("the portal has more than its quota")
	// errUnwanted ends a pull because the policy does not allow records of the portal.
	errUnwanted = errors.New("its records are not taken")
	// errDropped ends a pull during which the records held were deleted.
	errDropped = errors.New("the records held of the portal were deleted meanwhile")
	// errMismatch is returned for a source with a log that does not have the root hash of its head.
	errMismatch = errors.New("its log does not add up to its head")
	// errNoSource ends a pull because no source has the log or may be asked now.
	errNoSource = errors.New("no source has its log")
)

// outcome is the result of one pull: the event to apply, and its details.
type outcome struct {
	event event
	at    record.Version // for quotaExceeded: the version of the large head
	err   error          // for pullFailed: the cause
}

func failedBy(err error) outcome { return outcome{event: pullFailed, err: err} }

// pullLog pulls a portal's log if policy, tier and quota allow it. The quota on the number of agents is
// checked first, by the count in the head, without any request.
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

// pullFromSources asks the sources one after the other until one of them completes the log. If a log does
// not have the root hash of its head, each source is asked for the whole log; if those differ too, proveLog
// fetches the leaves of the head to find out which records count.
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
				whole, tried = true, nil // start over, also with those that failed before
			}
		}
		switch {
		case last.event == logWhole, last.event == logPartial && !whole, ctx.Err() != nil,
			errors.Is(last.err, errForked), errors.Is(last.err, errTooMuch):
			return last
		case one.log != nil && (last.event == logPartial || errors.Is(last.err, errMismatch)):
			// askedWhole excludes this source from listSources until wholeGap is over
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

// listSources returns the portals that may have a portal's log and are not in tried: those that sent its
// head and the portal itself, with unreachable and doubtful sources last. With whole, sources that sent the
// whole log within wholeGap are left out.
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

// dropOverQuota deletes the agents of a portal with a log that exceeds its quota, and prevents pulls for
// the time pause. A part of the log would be indistinguishable from a log with omissions.
func (p *puller) dropOverQuota(ctx context.Context, at record.Version, pause time.Duration) outcome {
	p.s.mu.Lock()
	p.over.until = clock.Now().Add(pause)
	logged := p.over.logged
	p.over.logged = true
	p.s.mu.Unlock()
	// forgetAgents would also delete the summary, so it is called only when agents are held.
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

// takeFirst admits the head in the first line of a log, leaves or summary answer. It returns errBehind for
// an older head than the one held, and errForked for a head that contradicts another.
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
			s.fetchCard(ctx, portal, source) // the newer card is for the next attempt
		default:
			s.Registry.Fault(source, string(why))
		}
		return signedHead{}, err
	}
	head := r.Body.(*record.Head)
	s.requestPull(ctx, source, head, fresh)
	return signedHead{head, r.Hash}, nil
}

// fetchCard requests a newer card of a portal from a source with a head signed by a key that the card held
// does not list.
func (s *Syncer) fetchCard(ctx context.Context, portal, source record.PortalID) {
	t, err := s.fetchHead(ctx, portal, source)
	if err == nil {
		err = s.takeCard(ctx, portal, t.Card)
	}
	if err != nil {
		s.Log.Debug("no newer card", "portal", portal, "error", err)
	}
}

// blameSource handles a refused entry of a log: it counts a fault of the source if the entry proves one. It
// returns an error only when the pull cannot go on.
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
		// No fault of the source: it has an older state, or sent the record too late.
	default:
		s.Registry.Fault(source, string(why))
	}
	return nil
}
