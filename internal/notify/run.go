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
	// maxFlying bounds how many hooks are told something at a time, maxPerHost
	// how many of them are at one host, maxPerOwner how many are one owner's,
	// and maxTrying how many did not take the last event: neither one host that
	// is slow nor many that are keep the others waiting.
	maxFlying   = 32
	maxPerHost  = 3
	maxPerOwner = 8
	maxTrying   = 16
	// burst is how many events one hook is told, and turn how long, before
	// others have theirs.
	burst = 20
	turn  = 10 * time.Second
	// troubleWait is how long the worker waits when the database has trouble.
	troubleWait = 5 * time.Second
)

// flight is who is being told something now.
type flight struct {
	hooks  map[string]Hook // by id
	hosts  map[string]int
	owners map[string]int
	trying int // those that failed before
}

// busy is for whom there is no room.
func (f *flight) busy() Busy {
	return Busy{IDs: slices.Collect(maps.Keys(f.hooks)), Hosts: full(f.hosts, maxPerHost),
		Owners: full(f.owners, maxPerOwner), Trying: f.trying >= maxTrying}
}

// full are those that have their most.
func full(counts map[string]int, most int) (out []string) {
	for k, n := range counts {
		if n >= most {
			out = append(out, k)
		}
	}
	return out
}

// takes reports whether there is room for a hook beside those at its host,
// those of its owner and those that failed before.
func (f *flight) takes(h Hook) bool {
	return f.hosts[h.Host] < maxPerHost && f.owners[h.OwnerID] < maxPerOwner &&
		(h.Failures == 0 || f.trying < maxTrying)
}

func (f *flight) begin(h Hook) {
	f.hooks[h.ID] = h
	f.hosts[h.Host]++
	f.owners[h.OwnerID]++
	if h.Failures > 0 {
		f.trying++
	}
}

func (f *flight) end(id string) {
	h := f.hooks[id]
	delete(f.hooks, id)
	if f.hosts[h.Host]--; f.hosts[h.Host] == 0 {
		delete(f.hosts, h.Host)
	}
	if f.owners[h.OwnerID]--; f.owners[h.OwnerID] == 0 {
		delete(f.owners, h.OwnerID)
	}
	if h.Failures > 0 {
		f.trying--
	}
}

// Run sends what waits until ctx ends. What is under way then is sent again at
// the next start.
func (s *Service) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	flying := &flight{hooks: make(map[string]Hook), hosts: make(map[string]int), owners: make(map[string]int)}
	landed := make(chan string, maxFlying) // never full: each is one of maxFlying
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-s.Wake:
		case id := <-landed:
			flying.end(id)
		case <-alarm.C:
		case <-ctx.Done():
			return nil
		}
		later := s.launch(ctx, flying, func(h Hook) {
			workers.Go(func() {
				defer func() { landed <- h.ID }()
				s.tell(ctx, h)
			})
		})
		alarm.Stop()
		if !later.IsZero() {
			alarm.Reset(max(later.Sub(clock.Now()), 0))
		}
	}
}

// launch begins to tell hooks that are due, as many as there is room for, and
// returns when to look again.
func (s *Service) launch(ctx context.Context, flying *flight, begin func(Hook)) (later time.Time) {
	room := maxFlying - len(flying.hooks)
	for room > 0 {
		due, next, err := s.Store.DueHooks(ctx, clock.Now(), flying.busy(), room)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Error("look for events to send", "error", err)
			}
			return clock.Now().Add(troubleWait)
		}
		later = next
		begun := 0
		for _, h := range due {
			if flying.takes(h) {
				flying.begin(h)
				begin(h)
				begun++
			}
		}
		if room -= begun; begun == len(due) {
			return later
		}
		// There is no room for the others now: look for some of another kind.
	}
	return later
}

// tell sends a hook what waits for it, in order, until something is not taken.
func (s *Service) tell(ctx context.Context, h Hook) {
	begun := time.Now()
	for n := 0; n < burst && time.Since(begun) < turn; n++ {
		now, e, err := s.Store.NextEvent(ctx, h.ID)
		if fault.Is(err, fault.NotFound) {
			return
		}
		if err != nil {
			s.troubled(ctx, "look for an event to send", "hook", h.ID, "error", err)
			return
		}
		o, err := s.once(ctx, now, e)
		if ctx.Err() != nil {
			return // not its fault: sent at the next start
		}
		if err != nil {
			s.cfg.Log.Error("send an event", "hook", h.ID, "event", e.ID, "error", err)
			o = s.failed(now, e, reply{Attempt: Attempt{EventID: e.ID, Type: e.Type, At: clock.Now(),
				Error: "this portal had trouble"}})
		}
		o.HookID, o.Of = h.ID, now.UpdatedAt
		if err := s.Store.Settle(ctx, o); err != nil {
			s.troubled(ctx, "note what came of an event", "hook", h.ID, "event", e.ID, "error", err)
			return
		}
		if o.Failed && o.Notice.Kind != "" && s.cfg.Told != nil {
			s.cfg.Told(o.Notice, []string{now.OwnerID})
		}
		if o.Failures > 0 || o.Failed {
			return
		}
	}
}

// troubled logs what is wrong with the database and waits, or the same would
// be tried again at once.
func (s *Service) troubled(ctx context.Context, what string, args ...any) {
	if ctx.Err() != nil {
		return
	}
	s.cfg.Log.Error(what, args...)
	select {
	case <-time.After(troubleWait):
	case <-ctx.Done():
	}
}

// once tries to send one event. A panic over it is an error of that event
// alone.
func (s *Service) once(ctx context.Context, h Hook, e Event) (o Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	bodies, err := s.bodies(ctx, h, e)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Unauthenticated) {
		return Outcome{Seq: e.Seq, Gone: true, Failures: h.Failures, FailingSince: h.FailingSince, NextAt: h.NextAt,
			Reason: h.Reason}, nil
	}
	if err != nil {
		return Outcome{}, err
	}
	r, err := s.try(ctx, h, e, bodies)
	if err != nil {
		return Outcome{}, err
	}
	if r.Error != "" {
		return s.failed(h, e, r), nil
	}
	// What still waits has its turn after those that wait already.
	return Outcome{Seq: e.Seq, Gone: true, Attempt: &r.Attempt, NextAt: clock.Now()}, nil
}

// failed is the outcome of an attempt that was not taken.
func (s *Service) failed(h Hook, e Event, r reply) Outcome {
	now := clock.Now()
	o := Outcome{HookID: h.ID, Seq: e.Seq, Attempt: &r.Attempt, Failures: h.Failures + 1, FailingSince: h.FailingSince,
		Reason: r.Error}
	if o.FailingSince.IsZero() {
		o.FailingSince = now
	}
	o.NextAt = next(now, o.Failures, r.after)
	if h.Kind == Webhook && now.Sub(e.At) >= keepEvents {
		o.Gone = true // the next one may be taken
	}
	long := now.Sub(o.FailingSince) >= h.patience()
	if !r.gone && !long {
		return o
	}
	o.Failed = true
	if r.gone {
		o.Reason = "it answered that it is gone for good (status 410)"
	} else {
		o.Reason = clip(fmt.Sprintf("it took nothing for %s; last: %s", roughly(h.patience()), r.Error))
	}
	if h.Kind == Webhook {
		where := h.URL
		if u, err := url.Parse(h.URL); err == nil {
			where = u.Host
		}
		o.Notice = hub.Notice{Kind: hub.NoticeWebhook, Subject: where, Href: "/account/webhooks", CreatedAt: now,
			Text: clip("Your webhook at " + where + " was stopped: " + o.Reason + ".")}
	}
	return o
}

// roughly says a patience in words.
func roughly(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return fmt.Sprintf("%d hours", d/time.Hour)
}
