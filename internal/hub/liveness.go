package hub

import (
	"context"
	"math/rand/v2"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

const (
	// probeTimeout bounds one exchange.
	probeTimeout = 10 * time.Second
	// publishWait is how long a registration waits for its first verdict.
	publishWait = 1500 * time.Millisecond
	// checkWait is how long somebody who asked for an exchange waits.
	checkWait = probeTimeout + consultWait + 2*time.Second
	// maxReason bounds the sentence of a verdict, in bytes.
	maxReason = 300
)

// contact makes one exchange and stores what it showed. No prober makes an
// agent work.
func (s *Service) contact(ctx context.Context, c Checkup) (Liveness, reach) {
	if c.Agent.Status.State == Withdrawn || c.Agent.Kind == Builtin || c.Agent.Kind == Link {
		return c.Agent.Liveness, nothing
	}
	a := s.learn(ctx, c.Agent)
	t := Target{Kind: a.Kind, Endpoint: a.Endpoint, Config: a.Config}
	if a.HasSecret {
		// What is known of the agent may be older than the last edit: a new
		// credential must not go to the old address.
		if now, secret, err := s.Open(ctx, a.ID); err == nil && now.Version == a.Version {
			t.Secret = secret
		}
	}
	l, showed := s.exchange(ctx, t)
	if ctx.Err() != nil {
		return a.Liveness, nothing
	}
	now, err := s.store.Checkup(ctx, a.ID)
	switch {
	case err != nil:
		return l, nothing
	case now.Agent.Version != a.Version:
		// What an earlier version's address answered says nothing of this one.
		return now.Agent.Liveness, nothing
	}
	l.CheckedAt = clock.Now()
	s.record(ctx, now, l)
	return l, showed
}

// exchange asks the prober, and watches whether a connection came about: that
// is all the hub wants to know of how an agent is reached.
func (s *Service) exchange(ctx context.Context, t Target) (Liveness, reach) {
	var got atomic.Bool
	ctx, cancel := context.WithTimeout(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	}), probeTimeout)
	defer cancel()
	l := s.prober.Probe(ctx, t)
	l.Reason = shortReason(l.Reason)
	switch {
	case got.Load():
		return l, connected
	case l.State == Unreachable && t.Endpoint != "":
		return l, missed
	}
	return l, nothing
}

// Observe stores what was seen of an agent by those who hold its connection.
func (s *Service) Observe(ctx context.Context, agentID string, l Liveness) {
	c, err := s.store.Checkup(ctx, agentID)
	if err != nil {
		if !fault.Is(err, fault.NotFound) {
			s.cfg.Log.Warn("read an agent", "agent", agentID, "error", err)
		}
		return
	}
	if l.CheckedAt.IsZero() {
		l.CheckedAt = clock.Now()
	}
	s.record(ctx, c, l)
}

// record stores a verdict, plans the next contact and tells the owners. c is
// how the agent stood before.
func (s *Service) record(ctx context.Context, c Checkup, l Liveness) {
	next, failures := plan(c, l.State, l.CheckedAt, rand.Float64())
	s.keep(ctx, c, l, next, failures)
}

func (s *Service) keep(ctx context.Context, c Checkup, l Liveness, next time.Time, failures int) {
	l.Reason = shortReason(l.Reason)
	if err := s.store.SetLiveness(ctx, c.Agent.ID, l, next, failures); err != nil {
		if ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
			s.cfg.Log.Warn("store liveness", "agent", c.Agent.ID, "error", err)
		}
		return
	}
	s.reindex(ctx, c.Agent.ID)
	s.contacted(c.Agent, l)
	if at := s.follow(ctx, c, l); !at.IsZero() {
		select {
		case s.probes <- probeJob{agent: c.Agent, away: at}:
		default:
		}
	}
}

// Called takes note of a task that was given to an agent. One that reached it
// shows that it is alive; one that did not makes it be contacted at once: what
// a call showed is no verdict, for it may have been the call's fault.
func (s *Service) Called(ctx context.Context, agentID string, reached bool, reason string, took time.Duration) {
	a, err := s.store.AgentByID(ctx, agentID)
	if err != nil || a.Kind == Builtin || a.Kind == Link {
		return
	}
	now, last := clock.Now(), a.Liveness
	if !reached || last.State != Alive {
		s.cfg.Log.Debug("contact an agent after a call", "agent", agentID, "reached", reached, "reason", reason, "took", took)
		at := last.CheckedAt.Add(hastyAfter)
		if reached && !at.After(now) {
			// Its host may rest; this says that it need not.
			select {
			case s.probes <- probeJob{agent: a, done: make(chan Liveness, 1)}:
				return
			default:
			}
		}
		if at.Before(now) {
			at = now
		}
		s.soon(ctx, agentID, at)
		return
	}
	if now.Sub(last.CheckedAt) < calledEvery {
		return
	}
	// How long the work took says nothing of how quickly it answers. It is
	// contacted again soon: somebody relies on it.
	next := now.Add(jittered(aliveEvery[len(aliveEvery)-1].every, rand.Float64()))
	s.keep(ctx, Checkup{Agent: a}, Liveness{State: Alive, CheckedAt: now, Latency: last.Latency, Reason: last.Reason}, next, 0)
}

// soon makes an agent due at a time, if it would be later.
func (s *Service) soon(ctx context.Context, agentID string, at time.Time) {
	if err := s.store.DueAt(ctx, agentID, at); err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
		s.cfg.Log.Warn("make an agent due", "agent", agentID, "error", err)
	}
}

// reindex puts the agent into the index as it is now. It looks again after
// each Put, so that an edit or removal that came in between, whose own Put or
// Remove went before, has the last word.
func (s *Service) reindex(ctx context.Context, agentID string) {
	for last := 0; ; {
		a, err := s.store.AgentByID(ctx, agentID)
		switch {
		case fault.Is(err, fault.NotFound):
			s.unlist(agentID)
			return
		case err != nil || a.Version == last:
			return
		}
		s.list(a)
		last = a.Version
	}
}

// checked waits a moment for the first verdict on a new version.
func (s *Service) checked(ctx context.Context, a Agent) Agent {
	if a.Kind == Builtin || a.Kind == Link {
		return a
	}
	done := make(chan Liveness, 1)
	select {
	case s.probes <- probeJob{agent: a, done: done}:
	default:
		s.soon(ctx, a.ID, clock.Now())
		return a
	}
	wait := time.NewTimer(publishWait)
	defer wait.Stop()
	select {
	case a.Liveness = <-done:
		// The exchange may have taught a new version.
		if now, err := s.store.AgentByID(ctx, a.ID); err == nil {
			return now
		}
	case <-wait.C:
	case <-ctx.Done():
	}
	return a
}

// Check makes an exchange now, for the agent's owner or the operator, and
// returns the agent with the verdict.
func (s *Service) Check(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	a, err := s.owned(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if wait, ok := s.reads.Allow(actor.ID); !ok {
		return Agent{}, fault.Limited(wait, "You checked often in a short time. Wait a moment.")
	}
	if a.Kind == Builtin || a.Kind == Link {
		return a, nil // nobody has to ask
	}
	wait := time.NewTimer(checkWait)
	defer wait.Stop()
	done := make(chan Liveness, 1)
	var verdict Liveness
	select {
	case s.probes <- probeJob{agent: a, done: done}:
		select {
		case verdict = <-done:
		case <-wait.C:
			return Agent{}, fault.New(fault.Unavailable, "%s was not contacted in time. Try again in a moment.", a.Name)
		case <-ctx.Done():
			return Agent{}, ctx.Err()
		}
	case <-wait.C:
		return Agent{}, fault.New(fault.Unavailable, "Too many agents are being contacted. Try again in a moment.")
	case <-ctx.Done():
		return Agent{}, ctx.Err()
	}
	if a, err = s.store.AgentByID(ctx, a.ID); err == nil {
		a.Liveness = verdict // also when it could not be stored
	}
	return a, err
}

// origin is scheme, host and port of an address.
func origin(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	return u.Scheme + "://" + u.Host
}
