package liveness

import (
	"context"
	"log/slog"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
)

const (
	// publishWait is how long a registration waits for its first verdict.
	publishWait = 1500 * time.Millisecond
	// checkWait is how long the requester of an exchange waits.
	checkWait = probeTimeout + readWait + 2*time.Second
	// readWait is the time to read an agent's description before its probe.
	readWait = 3 * time.Second
)

// MonitorStore keeps liveness.
type Store interface {
	// SetLiveness stores a verdict, adds it to the history and sets when the
	// agent is due again and how often in a row it did not answer.
	SetLiveness(ctx context.Context, agentID string, l hub.Liveness, next time.Time, failures int) error
	// Due returns agents outside this process that are to be checked by now, longest due first,
	// with their counts of failures in a row.
	Due(ctx context.Context, now time.Time, limit int) ([]hub.Checkup, error)
	// Checkup returns one agent as Due does, due or not.
	Checkup(ctx context.Context, agentID string) (hub.Checkup, error)
	// DueAt makes an agent due at a time, if it would be later.
	DueAt(ctx context.Context, agentID string, at time.Time) error
	AgentByID(ctx context.Context, id string) (hub.Agent, error)
	// SetProof stores an agent's proof if it still belongs to the owner; the
	// zero Proof ends it.
	SetProof(ctx context.Context, agentID, ownerID string, p hub.Proof) error
}

// ProbeQueue takes requests for probes until a Monitor runs them. It exists
// before the directory, which asks for probes, and the Monitor, which needs the
// directory. Create it with NewProbeQueue; it is safe for concurrent use.
type Queue struct {
	store Store
	jobs  chan probeJob
	log   *slog.Logger
}

// NewProbeQueue returns an empty queue.
func NewQueue(store Store, log *slog.Logger) *Queue {
	return &Queue{store: store, jobs: make(chan probeJob, 256), log: log}
}

// ProbeFirst probes a new version of an agent and waits a moment for the verdict.
func (q *Queue) ProbeFirst(ctx context.Context, a hub.Agent) hub.Agent {
	done := make(chan hub.Liveness, 1)
	select {
	case q.jobs <- probeJob{agent: a, done: done}:
	default:
		q.dueAt(ctx, a.ID, clock.Now())
		return a
	}
	wait := time.NewTimer(publishWait)
	defer wait.Stop()
	select {
	case a.Liveness = <-done:
		// The exchange may have taught a new version.
		if now, err := q.store.AgentByID(ctx, a.ID); err == nil {
			return now
		}
	case <-wait.C:
	case <-ctx.Done():
	}
	return a
}

// ProbeNow probes an agent and returns the verdict, or a fault if that takes too
// long.
func (q *Queue) ProbeNow(ctx context.Context, a hub.Agent) (hub.Liveness, error) {
	wait := time.NewTimer(checkWait)
	defer wait.Stop()
	done := make(chan hub.Liveness, 1)
	select {
	case q.jobs <- probeJob{agent: a, done: done}:
	case <-wait.C:
		return hub.Liveness{}, fault.New(fault.Unavailable,
			"Too many agents are being contacted. Try again in a moment.")
	case <-ctx.Done():
		return hub.Liveness{}, ctx.Err()
	}
	select {
	case verdict := <-done:
		return verdict, nil
	case <-wait.C:
		return hub.Liveness{}, fault.New(fault.Unavailable, "%s was not contacted in time. Try again in a moment.",
			a.Name)
	case <-ctx.Done():
		return hub.Liveness{}, ctx.Err()
	}
}

// dueAt makes an agent due at a time, if it would be later.
func (q *Queue) dueAt(ctx context.Context, agentID string, at time.Time) {
	if err := q.store.DueAt(ctx, agentID, at); err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
		q.log.Warn("make an agent due", "agent", agentID, "error", err)
	}
}
