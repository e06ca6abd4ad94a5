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
	// summaryLook is how often it is looked whose summaries are missing, besides
	// when a new head came; summaryPause lies between two looks at least.
	summaryLook  = time.Minute
	summaryPause = time.Second
	// summaryGap keeps questions for one portal's summary apart: an honest one
	// has another once an hour.
	summaryGap = 10 * time.Minute
	// summaryRetry is when it is tried again that nobody gave one.
	summaryRetry = time.Minute
	// summaryAtOnce is how many are asked for at once, summaryTries how many
	// portals are asked for one.
	summaryAtOnce = 8
	summaryTries  = 4
)

// wanted is which summary of a portal is wanted. It is of the one goroutine of
// runSummaries.
type wanted struct {
	at   record.Version // of the head that names it
	hash record.Hash    // zero: that has none
	got  bool
	next time.Time // it is not asked for before
}

// wantSummaries has summaries looked for soon; it never waits.
func (s *Syncer) wantSummaries() {
	select {
	case s.summaryNews <- struct{}{}:
	default:
	}
}

// runSummaries fetches the summaries of portals whose agents are not kept here:
// by them it is chosen whom a search asks.
func (s *Syncer) runSummaries(ctx context.Context) {
	known := make(map[record.PortalID]*wanted)
	for {
		s.summaries(ctx, known)
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

// summaries fetches those that are missing, and returns when each was fetched or
// nobody who was asked had it.
func (s *Syncer) summaries(ctx context.Context, known map[record.PortalID]*wanted) {
	heads := make(map[record.PortalID]record.Version)
	s.mu.Lock()
	for portal, f := range s.portals {
		if f.truncated {
			heads[portal] = f.head.Version
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
		if (due || w.at != at) && !s.look(ctx, portal, at, w) || !due {
			continue
		}
		w.next = clock.Now().Add(s.jitter(summaryGap))
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
			err := s.summary(ctx, portal)
			if err != nil && ctx.Err() == nil {
				w.next = clock.Now().Add(s.jitter(summaryRetry))
				s.Log.Debug("summary not fetched", "portal", portal, "error", err)
			}
		})
	}
}

// look finds out which summary the newest head of a portal names and whether it
// is held; false when that cannot be said now.
func (s *Syncer) look(ctx context.Context, portal record.PortalID, at record.Version, w *wanted) bool {
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

// summary fetches the summary of a portal from somebody who has it: those that
// told of its head, then the portal itself.
func (s *Syncer) summary(ctx context.Context, portal record.PortalID) error {
	s.mu.Lock()
	f := s.portals[portal]
	s.mu.Unlock()
	if f == nil {
		return errUnwanted
	}
	last := errors.New("nobody has it")
	for n, source := range s.summarySources(portal, f) {
		if n >= summaryTries {
			break
		}
		err := s.work.do(ctx, func() error { return s.summaryFrom(ctx, portal, source) })
		if err == nil || ctx.Err() != nil {
			return err
		}
		last = err
	}
	return last
}

// summaryFrom fetches a summary from one portal. It is taken in when it is the
// one that the newest head names.
func (s *Syncer) summaryFrom(ctx context.Context, portal, source record.PortalID) error {
	a, err := s.ask(ctx, source, http.MethodGet, "/peering/v1/portals/"+string(portal)+"/summary", nil, shortTimeout, archive.MaxSummary)
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
		s.forked(ctx, portal)
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
