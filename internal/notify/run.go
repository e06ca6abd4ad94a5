package notify

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
)

const (
	// maxInFlight bounds the hooks that are served at a time, maxPerHost those at one host,
	// maxPerOwner those of one owner, and maxRetrying those with a failed last attempt. With these
	// bounds neither one slow host nor many of them delay the others.
	maxInFlight = 32
	maxPerHost  = 3
	maxPerOwner = 8
	maxRetrying = 16
	// maxEventsPerTurn and turnTime bound the work for one hook before waiting hooks are served.
	maxEventsPerTurn = 20
	turnTime         = 10 * time.Second
	// troubleWait is the pause after a database error.
	troubleWait = 5 * time.Second
)

// flight counts the hooks that are being served now, per host and owner. Only the goroutine of Run
// uses it.
type flight struct {
	hooks    map[string]Hook // hooks being served, by id
	hosts    map[string]int
	owners   map[string]int
	retrying int // number of these hooks with a failed last attempt
}

// listBusy returns the hooks being served and the hosts and owners at their limits, which the next
// query must leave out.
func (f *flight) listBusy() Busy {
	return Busy{IDs: slices.Collect(maps.Keys(f.hooks)), Hosts: fullKeys(f.hosts, maxPerHost),
		Owners: fullKeys(f.owners, maxPerOwner), Trying: f.retrying >= maxRetrying}
}

// fullKeys returns the keys with a count that has reached the limit most.
func fullKeys(counts map[string]int, most int) (out []string) {
	for k, n := range counts {
		if n >= most {
			out = append(out, k)
		}
	}
	return out
}

// hasRoom reports whether a hook may be served now: its host, its owner and the hooks that are
// being retried are below their limits.
func (f *flight) hasRoom(h Hook) bool {
	return f.hosts[h.Host] < maxPerHost && f.owners[h.OwnerID] < maxPerOwner &&
		(h.Failures == 0 || f.retrying < maxRetrying)
}

func (f *flight) addHook(h Hook) {
	f.hooks[h.ID] = h
	f.hosts[h.Host]++
	f.owners[h.OwnerID]++
	if h.Failures > 0 {
		f.retrying++
	}
}

func (f *flight) removeHook(id string) {
	h := f.hooks[id]
	delete(f.hooks, id)
	if f.hosts[h.Host]--; f.hosts[h.Host] == 0 {
		delete(f.hosts, h.Host)
	}
	if f.owners[h.OwnerID]--; f.owners[h.OwnerID] == 0 {
		delete(f.owners, h.OwnerID)
	}
	if h.Failures > 0 {
		f.retrying--
	}
}

// Run sends waiting events until ctx ends and then returns nil. A send that ctx interrupts is
// repeated after the next start.
func (s *Service) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	flying := &flight{hooks: make(map[string]Hook), hosts: make(map[string]int), owners: make(map[string]int)}
	landed := make(chan string, maxInFlight) // never full, because at most maxInFlight hooks are served
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-s.Wake:
		case id := <-landed:
			flying.removeHook(id)
		case <-alarm.C:
		case <-ctx.Done():
			return nil
		}
		later := s.startDue(ctx, flying, func(h Hook) {
			workers.Go(func() {
				defer func() { landed <- h.ID }()
				s.deliverEvents(ctx, h)
			})
		})
		alarm.Stop()
		if !later.IsZero() {
			alarm.Reset(max(later.Sub(clock.Now()), 0))
		}
	}
}

// startDue calls begin for each due hook that the limits allow. later is the time of the next call:
// when the next hook is due, after troubleWait if the database failed, or zero if no hook waits.
func (s *Service) startDue(ctx context.Context, flying *flight, begin func(Hook)) (later time.Time) {
	room := maxInFlight - len(flying.hooks)
	for room > 0 {
		due, next, err := s.Store.DueHooks(ctx, clock.Now(), flying.listBusy(), room)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Error("find events to send", "error", err)
			}
			return clock.Now().Add(troubleWait)
		}
		later = next
		begun := 0
		for _, h := range due {
			if flying.hasRoom(h) {
				flying.addHook(h)
				begin(h)
				begun++
			}
		}
		if room -= begun; begun == len(due) {
			return later
		}
		// Some of these hooks are beyond a limit now. Query again, without the hosts and owners
		// that reached it.
	}
	return later
}

// deliverEvents sends the waiting events of a hook in order, until one is not accepted or the
// hook's turn is over.
func (s *Service) deliverEvents(ctx context.Context, h Hook) {
	begun := time.Now()
	for n := 0; n < maxEventsPerTurn && time.Since(begun) < turnTime; n++ {
		now, e, err := s.Store.NextEvent(ctx, h.ID)
		if fault.Is(err, fault.NotFound) {
			return
		}
		if err != nil {
			s.logTrouble(ctx, "find an event to send", "hook", h.ID, "error", err)
			return
		}
		o, err := s.attemptEvent(ctx, now, e)
		if ctx.Err() != nil {
			return // the portal stops; the event is sent again after the next start
		}
		if err != nil {
			s.cfg.Log.Error("send an event", "hook", h.ID, "event", e.ID, "error", err)
			o = s.failureOutcome(now, e, reply{Attempt: Attempt{EventID: e.ID, Type: e.Type, At: clock.Now(),
				Error: "this portal had trouble"}})
		}
		o.HookID, o.Of = h.ID, now.UpdatedAt
		if err := s.Store.Settle(ctx, o); err != nil {
			s.logTrouble(ctx, "store the result of an event", "hook", h.ID, "event", e.ID, "error", err)
			return
		}
		if o.Failed && o.Notice.Kind != "" && s.cfg.NoticeQueue != nil {
			s.cfg.NoticeQueue.QueueNotice(o.Notice, []string{now.OwnerID})
		}
		if o.Failures > 0 || o.Failed {
			return
		}
	}
}

// logTrouble logs a database error and waits for troubleWait. Without the pause Run would repeat
// the failed statement at once.
func (s *Service) logTrouble(ctx context.Context, what string, args ...any) {
	if ctx.Err() != nil {
		return
	}
	s.cfg.Log.Error(what, args...)
	select {
	case <-time.After(troubleWait):
	case <-ctx.Done():
	}
}

// attemptEvent tries to send one event and returns the outcome to store. It turns a panic into an
// error, so that other events are still sent.
func (s *Service) attemptEvent(ctx context.Context, h Hook, e Event) (o Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	bodies, err := s.buildBodies(ctx, h, e)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Unauthenticated) {
		return Outcome{Seq: e.Seq, Gone: true, Failures: h.Failures, FailingSince: h.FailingSince, NextAt: h.NextAt,
			Reason: h.Reason}, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	r, err := s.sendBodies(ctx, h, e, bodies)
	if err != nil {
		return Outcome{}, err
	}
	if r.Error != "" {
		return s.failureOutcome(h, e, r), nil
	}
	// The next attempt is due now and not earlier, so hooks that were due before this one come
	// first.
	return Outcome{Seq: e.Seq, Gone: true, Attempt: &r.Attempt, NextAt: clock.Now()}, nil
}

// failureOutcome returns the outcome of an attempt that was not accepted: a retry, or the end of
// the event or of the hook.
func (s *Service) failureOutcome(h Hook, e Event, r reply) Outcome {
	now := clock.Now()
	o := Outcome{HookID: h.ID, Seq: e.Seq, Attempt: &r.Attempt, Failures: h.Failures + 1, FailingSince: h.FailingSince,
		Reason: r.Error}
	if o.FailingSince.IsZero() {
		o.FailingSince = now
	}
	o.NextAt = nextAttempt(now, o.Failures, r.after)
	if h.Kind == Webhook && now.Sub(e.At) >= keepEvents {
		o.Gone = true // drop the event: it is older than keepEvents
	}
	long := now.Sub(o.FailingSince) >= h.maxFailingTime()
	if !r.gone && !long {
		return o
	}
	o.Failed = true
	if r.gone {
		o.Reason = "it answered that it is gone for good (status 410)"
	} else {
		o.Reason = clipReason(fmt.Sprintf("it accepted nothing for %s; last: %s", formatPatience(h.maxFailingTime()),
			r.Error))
	}
	if h.Kind == Webhook {
		where := h.URL
		if u, err := url.Parse(h.URL); err == nil {
			where = u.Host
		}
		o.Notice = hub.Notice{Kind: hub.NoticeWebhook, Subject: where, Href: "/account/webhooks", CreatedAt: now,
			Text: clipReason("Your webhook at " + where + " was stopped: " + o.Reason + ".")}
	}
	return o
}

// formatPatience formats a duration in days or hours for a sentence.
func formatPatience(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return fmt.Sprintf("%d hours", d/time.Hour)
}
