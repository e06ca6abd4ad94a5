package replication

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation/archive"
	"agentsite/internal/record"
)

const (
	// summaryLook is the interval at which missing summaries are searched for, besides after a new head;
	// summaryPause is the minimum time between two searches.
	summaryLook  = time.Minute
	summaryPause = time.Second
	// summaryGap is the minimum time between two requests for one portal's summary: an honest portal
	// publishes one an hour.
	summaryGap = 10 * time.Minute
	// summaryRetry is when a summary is requested again after no source had it.
	summaryRetry = time.Minute
	// summaryAtOnce is how many summaries are requested at once, summaryTries how many portals are asked
	// for one.
	summaryAtOnce = 8
	summaryTries  = 4
)

// wanted is the summary that a portal's newest head names. Only the goroutine of runSummaries uses it.
type wanted struct {
	at   record.Version // of the head that names it
	hash record.Hash    // zero when the head names none
	got  bool
	next time.Time // no request before then
}

// wantSummaries wakes runSummaries; it never blocks.
func (s *Syncer) wantSummaries() {
	select {
	case s.summaryNews <- struct{}{}:
	default:
	}
}

// runSummaries fetches the summaries of portals that do not have their agents kept here: a search
// chooses by them which portals it asks.
func (s *Syncer) runSummaries(ctx context.Context) {
	known := make(map[record.PortalID]*wanted)
	for {
		s.fetchSummaries(ctx, known)
		if !clock.Sleep(ctx, summaryPause) {
			return
		}
		t := time.NewTimer(summaryLook)
		select {
		case <-t.C:
		case <-s.summaryNews:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// fetchSummaries fetches the missing ones, and returns when each was fetched or none of its sources had it.
func (s *Syncer) fetchSummaries(ctx context.Context, known map[record.PortalID]*wanted) {
	heads := make(map[record.PortalID]record.Version)
	s.mu.Lock()
	for id, p := range s.portals {
		if p.isWithoutLog() {
			heads[id] = p.head.Version
		}
	}
	s.mu.Unlock()
	for portal := range known {
		if _, ok := heads[portal]; !ok {
			delete(known, portal)
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	places := make(chan struct{}, summaryAtOnce)
	for portal, at := range heads {
		if ctx.Err() != nil {
			return
		}
		w := known[portal]
		if w == nil {
			w = new(wanted)
			known[portal] = w
		}
		due := !clock.Now().Before(w.next)
		if (due || w.at != at) && !s.checkSummary(ctx, portal, at, w) || !due {
			continue
		}
		w.next = clock.Now().Add(s.addJitter(summaryGap))
		if w.got || !s.Registry.Decide(ctx, portal, "").Take {
			continue
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		all.Go(func() {
			defer func() { <-places }()
			err := s.fetchSummary(ctx, portal)
			if err != nil && ctx.Err() == nil {
				w.next = clock.Now().Add(s.addJitter(summaryRetry))
				s.Log.Debug("summary not fetched", "portal", portal, "error", err)
			}
		})
	}
}

// checkSummary finds the summary that a portal's newest head names and whether it is held; false when
// that cannot be determined now.
func (s *Syncer) checkSummary(ctx context.Context, portal record.PortalID, at record.Version, w *wanted) bool {
	wire, err := s.Replica.Head(ctx, portal)
	if err != nil || wire == nil {
		return false
	}
	r, err := record.Open(s.Self.Network(), wire)
	if err != nil || r.Version().Compare(at) < 0 {
		return false
	}
	head, ok := r.Body.(*record.Head)
	if !ok {
		return false
	}
	w.at, w.hash = at, head.Summary
	seen, err := s.Replica.Seen(ctx, record.Slot{Type: record.TypeSummary, Portal: portal})
	w.got = w.hash == (record.Hash{}) || err == nil && !seen.Void && seen.Hash == w.hash
	return true
}

// fetchSummary fetches the summary of a portal from its sources: portals that sent its head, then the
// portal itself.
func (s *Syncer) fetchSummary(ctx context.Context, portal record.PortalID) error {
	s.mu.Lock()
	p := s.portals[portal]
	s.mu.Unlock()
	if p == nil {
		return errUnwanted
	}
	last := errors.New("nobody has it")
	for n, source := range s.summarySources(p) {
		if n >= summaryTries {
			break
		}
		err := s.summaryFrom(ctx, portal, source)
		if err == nil || ctx.Err() != nil {
			return err
		}
		last = err
	}
	return last
}

// summaryFrom fetches a summary from one portal. It is admitted when the newest head names it.
func (s *Syncer) summaryFrom(ctx context.Context, portal, source record.PortalID) error {
	leave, err := s.work.enterSlot(ctx)
	if err != nil {
		return err
	}
	defer leave()
	a, err := s.askPortal(ctx, source, http.MethodGet, "/peering/v1/portals/"+string(portal)+"/summary", nil,
		shortTimeout, archive.MaxSummary)
	if err != nil {
		return err
	}
	var in archive.Summarized
	if err := readAnswer(a, &in); err != nil {
		s.Registry.Fault(source, "malformed")
		return err
	}
	head, err := s.takeFirst(ctx, portal, source, in.Head)
	if err != nil {
		return err
	}
	claim, err := record.Open(s.Self.Network(), in.Summary)
	if err != nil || claim.Type != record.TypeSummary || claim.Portal != portal || claim.Hash != head.Summary {
		s.Registry.Fault(source, string(record.NotConsistent))
		return errors.New("it is not the summary that the head names")
	}
	r, _, err := s.gate.Admit(ctx, in.Summary, clock.Now())
	switch why := record.ReasonOf(err); {
	case err == nil:
	case why == record.Equivocation:
		s.handleFork(ctx, portal)
		return err
	case why == "" || why == record.Stale || why == record.Expired || why == record.Quarantined:
		return err
	default:
		s.Registry.Fault(source, string(why))
		return err
	}
	if s.Summaries != nil {
		s.Summaries.Put(r)
	}
	return nil
}
