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
	// publishWait bounds the time that a registration waits for the result of its first probe.
	publishWait = 1500 * time.Millisecond
	// checkWait bounds the time that ProbeNow waits for the result of a probe.
	checkWait = probeTimeout + readWait + 2*time.Second
	// readWait is the time allowed for reading an agent's description before its probe.
	readWait = 3 * time.Second
)

// Store keeps the liveness of agents and the times of their next probes.
type Store interface {
	// SetLiveness stores a liveness, adds it to the history and sets the time of the next probe and
	// the number of failures in a row. A deleted agent is a NotFound fault.
	SetLiveness(ctx context.Context, agentID string, l hub.Liveness, next time.Time, failures int) error
	// Due returns agents that are to be probed by now, the longest due first, with their numbers of
	// failures in a row. Built-in and linked agents are left out, because they have no address to
	// probe.
	Due(ctx context.Context, now time.Time, limit int) ([]hub.Checkup, error)
	// Checkup returns one agent as Due does, whether it is due or not; NotFound if it does not
	// exist.
	Checkup(ctx context.Context, agentID string) (hub.Checkup, error)
	// DueAt moves an agent's next probe forward to a time. It never delays a probe.
	DueAt(ctx context.Context, agentID string, at time.Time) error
	AgentByID(ctx context.Context, id string) (hub.Agent, error)
	// SetProof stores an agent's proof if the agent still belongs to the owner. The zero Proof
	// removes it.
	SetProof(ctx context.Context, agentID, ownerID string, p hub.Proof) error
}

// Queue takes requests for probes until Service.Run makes them. It is a type of its own because of
// the order of construction: the directory asks for probes, and Service needs the directory. Create
// it with NewQueue; it is safe for concurrent use.
type Queue struct {
	store Store
	jobs  chan probeJob
	log   *slog.Logger
}

// NewQueue returns an empty queue over a store.
func NewQueue(store Store, log *slog.Logger) *Queue {
	return &Queue{store: store, jobs: make(chan probeJob, 256), log: log}
}

// ProbeFirst requests a probe of a new version of an agent and waits up to publishWait for the
// result. It returns the agent as stored then, or a unchanged if the result is late.
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
		// The probe may have read a newer description and stored it as a version.
		if now, err := q.store.AgentByID(ctx, a.ID); err == nil {
			return now
		}
	case <-wait.C:
	case <-ctx.Done():
	}
	return a
}

// ProbeNow probes an agent before all that wait for their turn and returns the result; an
// Unavailable fault when it takes longer than checkWait.
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

// dueAt moves an agent's next probe forward to a time. Errors are logged.
func (q *Queue) dueAt(ctx context.Context, agentID string, at time.Time) {
	if err := q.store.DueAt(ctx, agentID, at); err != nil && ctx.Err() == nil && !fault.Is(err, fault.NotFound) {
		q.log.Warn("make an agent due", "agent", agentID, "error", err)
	}
}
