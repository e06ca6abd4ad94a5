package replication

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation/archive"
	"agentsite/internal/record"
)

const (
	// summaryLook is the interval of searches for missing summaries; a new head starts one earlier.
	// summaryPause is the minimum time between two searches.
	summaryLook  = time.Minute
	summaryPause = time.Second
	// summaryGap is the minimum time between two requests for one portal's summary: an honest portal
	// publishes one an hour.
	summaryGap = 10 * time.Minute
	// summaryRetry is the wait before a summary that no source had is requested again.
	summaryRetry = time.Minute
	// summaryAtOnce bounds concurrent requests for summaries, summaryTries the portals asked for one
	// summary in a search.
	summaryAtOnce = 8
	summaryTries  = 4
)

// wanted is the summary that a portal's newest head names. Only the goroutine of runSummaries uses it, and
// the one that it started for this summary.
type wanted struct {
	at   record.Version // version of the head that names the summary
	hash record.Hash    // hash of the summary record; zero if there is none
	got  bool
	next time.Time // no request is sent before this time
}

// summaryKeeper is the part of a Syncer that fetches the summaries of portals without agents here. Remote
// search uses them to choose the portals that it asks.
type summaryKeeper struct {
	s    *Syncer
	wake chan struct{}
	// known holds the summaries that are wanted; only the goroutine of runSummaries uses it.
	known map[record.PortalID]*wanted
}

func newSummaryKeeper(s *Syncer) *summaryKeeper {
	return &summaryKeeper{s: s, wake: make(chan struct{}, 1), known: make(map[record.PortalID]*wanted)}
}

// fetchSoon wakes runSummaries; it never blocks.
func (k *summaryKeeper) fetchSoon() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// runSummaries fetches missing summaries until ctx ends: after fetchSoon, and every summaryLook.
func (k *summaryKeeper) runSummaries(ctx context.Context) {
	for {
		k.fetchSummaries(ctx)
		if !clock.Sleep(ctx, summaryPause) {
			return
		}
		t := time.NewTimer(summaryLook)
		select {
		case <-t.C:
		case <-k.wake:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// fetchSummaries fetches the missing summaries of all portals without a log. It returns when each was
// fetched or none of its sources had it.
func (k *summaryKeeper) fetchSummaries(ctx context.Context) {
	heads := make(map[record.PortalID]record.Version)
	k.s.mu.Lock()
	for id, p := range k.s.portals {
		if p.isWithoutLog() {
			heads[id] = p.head.Version
		}
	}
	k.s.mu.Unlock()
	for portal := range k.known {
		if _, ok := heads[portal]; !ok {
			delete(k.known, portal)
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	places := make(chan struct{}, summaryAtOnce)
	for portal, at := range heads {
		if ctx.Err() != nil {
			return
		}
		w := k.known[portal]
		if w == nil {
			w = new(wanted)
			k.known[portal] = w
		}
		due := !clock.Now().Before(w.next)
		if (due || w.at != at) && !k.checkSummary(ctx, portal, at, w) || !due {
			continue
		}
		w.next = clock.Now().Add(k.s.dice.varyTime(summaryGap))
		if w.got || !k.s.Registry.Decide(ctx, portal, "").Take {
			continue
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		all.Go(func() {
			defer func() { <-places }()
			err := k.fetchSummary(ctx, portal)
			if err != nil && ctx.Err() == nil {
				w.next = clock.Now().Add(k.s.dice.varyTime(summaryRetry))
				k.s.Log.Debug("summary not fetched", "portal", portal, "error", err)
			}
		})
	}
}

// checkSummary sets w to the summary that a portal's newest head names, and w.got to whether it is held. It
// returns false, and leaves w as it is, when the Replica does not have that head.
func (k *summaryKeeper) checkSummary(ctx context.Context, portal record.PortalID, at record.Version, w *wanted) bool {
	wire, err := k.s.Replica.Head(ctx, portal)
	if err != nil || wire == nil {
		return false
	}
	r, err := record.Open(k.s.Self.Network(), wire)
	if err != nil || r.Version().Compare(at) < 0 {
		return false
	}
	head, ok := r.Body.(*record.Head)
	if !ok {
		return false
	}
	w.at, w.hash = at, head.Summary
	seen, err := k.s.Replica.Seen(ctx, record.Slot{Type: record.TypeSummary, Portal: portal})
	w.got = w.hash == (record.Hash{}) || err == nil && !seen.Void && seen.Hash == w.hash
	return true
}

// fetchSummary fetches the summary of a portal from at most summaryTries of its sources, and returns the
// last error if all failed.
func (k *summaryKeeper) fetchSummary(ctx context.Context, portal record.PortalID) error {
	k.s.mu.Lock()
	p := k.s.portals[portal]
	k.s.mu.Unlock()
	if p == nil {
		return errUnwanted
	}
	last := errors.New("nobody has it")
	for n, source := range k.summarySources(p) {
		if n >= summaryTries {
			break
		}
		err := k.summaryFrom(ctx, portal, source)
		if err == nil || ctx.Err() != nil {
			return err
		}
		last = err
	}
	return last
}

// summaryFrom fetches a summary from one portal and admits it if the newest head names it. An answer that
// contradicts the head is counted as a fault of the source.
func (k *summaryKeeper) summaryFrom(ctx context.Context, portal, source record.PortalID) error {
	leave, err := k.s.work.enterSlot(ctx)
	if err != nil {
		return err
	}
	defer leave()
	a, err := k.s.askPortal(ctx, source, http.MethodGet, "/peering/v1/portals/"+string(portal)+"/summary", nil,
		shortTimeout, archive.MaxSummary)
	if err != nil {
		return err
	}
	var in archive.Summarized
	if err := readAnswer(a, &in); err != nil {
		k.s.Registry.Fault(source, "malformed")
		return err
	}
	head, err := k.s.takeFirst(ctx, portal, source, in.Head)
	if err != nil {
		return err
	}
	claim, err := record.Open(k.s.Self.Network(), in.Summary)
	if err != nil || claim.Type != record.TypeSummary || claim.Portal != portal || claim.Hash != head.Summary {
		k.s.Registry.Fault(source, string(record.NotConsistent))
		return errors.New("it is not the summary that the head names")
	}
	r, _, err := k.s.gate.Admit(ctx, in.Summary, clock.Now())
	switch why := record.ReasonOf(err); {
	case err == nil:
	case why == record.Equivocation:
		k.s.handleFork(ctx, portal)
		return err
	case why == "" || why == record.Stale || why == record.Expired || why == record.Quarantined:
		return err
	default:
		k.s.Registry.Fault(source, string(why))
		return err
	}
	if k.s.Summaries != nil {
		k.s.Summaries.Put(r)
	}
	return nil
}

// summarySources returns the portals that may have a portal's summary, best first: portals that have its
// log and the portal itself, then those that only sent its head. The latter come first while the best
// source is down. The result is never empty.
func (k *summaryKeeper) summarySources(p *portal) []record.PortalID {
	list := k.s.listSources(p, nil, false)
	k.s.mu.Lock()
	headOnly := slices.DeleteFunc(slices.Clone(p.headOnly),
		func(id record.PortalID) bool { return slices.Contains(list, id) })
	k.s.mu.Unlock()
	if k.s.peers.isDown(list[0]) {
		return append(headOnly, list...)
	}
	return append(list, headOnly...)
}
