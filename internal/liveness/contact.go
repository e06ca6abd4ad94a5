package liveness

import (
	"context"
	"math/rand/v2"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
)

const (
	// probeTimeout bounds one exchange.
	probeTimeout = 10 * time.Second
	// maxReason bounds the sentence of a verdict, in bytes.
	maxReason = 300
)

// contactAgent makes one exchange and stores what it showed. No prober makes an
// agent work.
func (m *Service) contactAgent(ctx context.Context, c hub.Checkup) (hub.Liveness, reach) {
	if c.Agent.Status.State == hub.Withdrawn || c.Agent.Kind == hub.Builtin || c.Agent.Kind == hub.Link {
		return c.Agent.Liveness, nothing
	}
	a := m.agents.LearnCard(ctx, c.Agent)
	t := hub.Target{Kind: a.Kind, Endpoint: a.Endpoint, Config: a.Config}
	if a.HasSecret {
		// What is known of the agent may be older than the last edit: a new
		// credential must not go to the old address.
		if now, secret, err := m.agents.Open(ctx, a.ID); err == nil && now.Version == a.Version {
			t.Secret = secret
		}
	}
	l, showed := m.askProber(ctx, t)
	if ctx.Err() != nil {
		return a.Liveness, nothing
	}
	now, err := m.queue.store.Checkup(ctx, a.ID)
	switch {
	case err != nil:
		return l, nothing
	case now.Agent.Version != a.Version:
		// What an earlier version's address answered says nothing of this one.
		return now.Agent.Liveness, nothing
	}
	l.CheckedAt = clock.Now()
	m.recordVerdict(ctx, now, l)
	return l, showed
}

// askProber asks the prober, and watches whether a connection came about: that
// is all the hub wants to know of how an agent is reached.
func (m *Service) askProber(ctx context.Context, t hub.Target) (hub.Liveness, reach) {
	var got atomic.Bool
	ctx, cancel := context.WithTimeout(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	}), probeTimeout)
	defer cancel()
	l := m.prober.Probe(ctx, t)
	l.Reason = shortReason(l.Reason)
	switch {
	case got.Load():
		return l, connected
	case l.State == hub.Unreachable && t.Endpoint != "":
		return l, missed
	}
	return l, nothing
}

// Observe stores what was seen of an agent by those who hold its connection.
func (m *Service) Observe(ctx context.Context, agentID string, l hub.Liveness) {
	c, err := m.queue.store.Checkup(ctx, agentID)
	if err != nil {
		if !fault.Is(err, fault.NotFound) {
			m.queue.log.Warn("read an agent", "agent", agentID, "error", err)
		}
		return
	}
	if l.CheckedAt.IsZero() {
		l.CheckedAt = clock.Now()
	}
	m.recordVerdict(ctx, c, l)
}

// recordVerdict stores a verdict, plans the next contact and tells the owners. c is
// how the agent stood before.
func (m *Service) recordVerdict(ctx context.Context, c hub.Checkup, l hub.Liveness) {
	next, failures := planNext(c, l.State, l.CheckedAt, rand.Float64())
	m.storeVerdict(ctx, c, l, next, failures)
}

func (m *Service) storeVerdict(ctx context.Context, c hub.Checkup, l hub.Liveness, next time.Time, failures int) {
	l.Reason = shortReason(l.Reason)
	if err := m.queue.store.SetLiveness(ctx, c.Agent.ID, l, next, failures); err != nil {
		if ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
			m.queue.log.Warn("store liveness", "agent", c.Agent.ID, "error", err)
		}
		return
	}
	m.agents.Reindex(ctx, c.Agent.ID)
	m.reportContact(c.Agent, l)
	if at := m.notifyOutage(ctx, c, l); !at.IsZero() {
		select {
		case m.queue.jobs <- probeJob{agent: c.Agent, away: at}:
		default:
		}
	}
}

// Called takes note of a task that was given to an agent. One that reached it
// shows that it is alive; one that did not makes it be contacted at once: what
// a call showed is no verdict, for it may have been the call's fault.
func (m *Service) Called(ctx context.Context, agentID string, reached bool, reason string, took time.Duration) {
	a, err := m.queue.store.AgentByID(ctx, agentID)
	if err != nil || a.Kind == hub.Builtin || a.Kind == hub.Link {
		return
	}
	now, last := clock.Now(), a.Liveness
	if !reached || last.State != hub.Alive {
		m.queue.log.Debug("contact an agent after a call", "agent", agentID, "reached", reached, "reason", reason, "took", took)
		at := last.CheckedAt.Add(hastyAfter)
		if reached && !at.After(now) {
			// Its host may rest; this says that it need not.
			select {
			case m.queue.jobs <- probeJob{agent: a, done: make(chan hub.Liveness, 1)}:
				return
			default:
			}
		}
		if at.Before(now) {
			at = now
		}
		m.queue.dueAt(ctx, agentID, at)
		return
	}
	if now.Sub(last.CheckedAt) < calledEvery {
		return
	}
	// How long the work took says nothing of how quickly it answers. It is
	// contacted again soon: somebody relies on it.
	next := now.Add(addJitter(aliveEvery[len(aliveEvery)-1].every, rand.Float64()))
	m.storeVerdict(ctx, hub.Checkup{Agent: a}, hub.Liveness{State: hub.Alive, CheckedAt: now, Latency: last.Latency, Reason: last.Reason}, next, 0)
}

// reportContact tells other portals what an exchange with an own agent showed.
func (m *Service) reportContact(a hub.Agent, l hub.Liveness) {
	if m.ports.Contacted != nil {
		a.Liveness = l
		m.ports.Contacted(a)
	}
}

// rereadAgent reads an agent that just answered again, once a day. before is the
// contact before that.
func (m *Service) rereadAgent(ctx context.Context, a hub.Agent, before time.Time) {
	if !before.IsZero() && isDaily(a.ID, before, clock.Now()) {
		m.agents.Relearn(ctx, a)
	}
}

// shortReason makes a plain sentence of a reason, within maxReason bytes.
func shortReason(s string) string {
	if s = hub.OneLine(s); len(s) <= maxReason {
		return s
	}
	const more = "…"
	s = s[:maxReason-len(more)]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return strings.TrimRight(s, " ") + more
}
