package liveness

import (
	"context"
	"math/rand/v2"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"agentsite/internal/agentkind"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/plaintext"
)

const (
	// probeTimeout bounds one exchange with an agent.
	probeTimeout = 10 * time.Second
	// maxReason bounds the reason stored with a liveness, in bytes.
	maxReason = 300
)

// contactAgent probes one agent, stores the liveness and returns it, with the result for the host.
// A probe never makes an agent do work. The stored liveness is returned when ctx ends or the agent
// was edited meanwhile.
func (m *Service) contactAgent(ctx context.Context, c hub.Checkup) (hub.Liveness, reach) {
	if c.Agent.Status.State == hub.Withdrawn || agentkind.Of(c.Agent.Kind).Unprobed {
		return c.Agent.Liveness, nothing
	}
	a := m.agents.LearnCard(ctx, c.Agent)
	t := hub.Target{Kind: a.Kind, OwnerID: a.OwnerID, Endpoint: a.Endpoint, Config: a.Config}
	if a.HasSecret {
		// The agent in c may be older than the last edit: a new credential must not be sent to the
		// old address.
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
		// The probe reached the address of an earlier version, so its result does not apply.
		return now.Agent.Liveness, nothing
	}
	l.CheckedAt = clock.Now()
	m.recordVerdict(ctx, now, l)
	return l, showed
}

// askProber probes an agent within probeTimeout and detects by a trace whether a connection came
// about. The result for the host needs no other knowledge of the agent's protocol.
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

// Observe stores a liveness that was found without a probe: the link driver calls it when an agent
// connects or disconnects. A zero CheckedAt means now. Errors are logged.
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

// recordVerdict stores a new liveness, plans the next contact and notifies the owners of an outage.
// c is the agent's state before.
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

// Called takes the outcome of a task that was given to an agent. A task that reached the agent
// shows that it is alive. A failed one causes a probe soon and changes no liveness, because the
// task itself may have been at fault.
func (m *Service) Called(ctx context.Context, agentID string, reached bool, reason string, took time.Duration) {
	a, err := m.queue.store.AgentByID(ctx, agentID)
	if err != nil || agentkind.Of(a.Kind).Unprobed {
		return
	}
	now, last := clock.Now(), a.Liveness
	if !reached || last.State != hub.Alive {
		m.queue.log.Debug("contact an agent after a call", "agent", agentID, "reached", reached, "reason", reason,
			"took", took)
		at := last.CheckedAt.Add(hastyAfter)
		if reached && !at.After(now) {
			// A host that counts as down is probed only after a pause. A job with a waiting channel
			// goes ahead of that pause.
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
	// A task takes as long as its work, so its duration is not stored as latency. The agent is
	// probed again soon, because a caller relies on it.
	next := now.Add(addJitter(aliveEvery[len(aliveEvery)-1].every, rand.Float64()))
	m.storeVerdict(ctx, hub.Checkup{Agent: a},
		hub.Liveness{State: hub.Alive, CheckedAt: now, Latency: last.Latency, Reason: last.Reason}, next, 0)
}

// reportContact passes the new liveness of an agent of this portal to the Observer, if there is
// one.
func (m *Service) reportContact(a hub.Agent, l hub.Liveness) {
	if m.ports.Observer != nil {
		a.Liveness = l
		m.ports.Observer.OwnContacted(a)
	}
}

// rereadAgent reads the description of an agent that just answered, at most once a day. before is
// the time of the previous contact; the zero time means that there was none.
func (m *Service) rereadAgent(ctx context.Context, a hub.Agent, before time.Time) {
	if !before.IsZero() && isDaily(a.ID, before, clock.Now()) {
		m.agents.Relearn(ctx, a)
	}
}

// shortReason returns a reason on one line without control characters, cut to maxReason bytes.
func shortReason(s string) string {
	if s = plaintext.OneLine(s); len(s) <= maxReason {
		return s
	}
	const more = "…"
	s = s[:maxReason-len(more)]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return strings.TrimRight(s, " ") + more
}
