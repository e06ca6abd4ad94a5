package hub

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Day is the usage of an agent on one day (UTC).
type Day struct {
	Day       time.Time
	Calls     int
	Completed int
	Failed    int
	Canceled  int
	Guests    int
	// Took is the total duration of all ended calls.
	Took time.Duration
}

// CallRecord is one call as the agent's owner sees it. Calls of others show only kind, protocol
// endpoint, state and timing, never text.
type CallRecord struct {
	TaskID string
	// Own is true if the viewing owner made the call; only then can there be traces.
	Own        bool
	CallerKind string // guest, person, operator, agent
	Face       string
	State      string
	// Reason explains a failure, in the portal's words; empty for calls of others, whose text it may quote.
	Reason string
	At     time.Time
	// Took is zero until the call has ended.
	Took time.Duration
}

// Trace is one message of a call as it was sent over the wire, with secrets removed.
type Trace struct {
	At   time.Time
	Sent bool // true: sent by the portal, false: received
	Head string
	Body string // cut to the stored size
	Size int64  // bytes before the cut
}

// Usage is the part of an agent's usage that all actors may see.
type Usage struct {
	Calls int // calls on all stored days
	Week  int // in the last seven days
}

// Stats is the usage of an agent as its owners see it.
type Stats struct {
	Days  []Day // the last 30 days, oldest first; days without calls are absent
	Calls []CallRecord
	// P50 and P95 are percentiles of the duration of the completed ones among Calls.
	P50, P95 time.Duration
}

// UsageRecords reads usage, call records and traces of agents with the rights of owners.
type UsageRecords struct {
	store  Uses
	agents ownedAgents
	log    *slog.Logger
}

// ownedAgents is the method of Service that UsageRecords needs.
type ownedAgents interface {
	ownedAgent(ctx context.Context, actor ident.Actor, name string) (Agent, error)
}

// Count returns the public usage of an agent. The caller has checked that the actor may see the agent.
func (s *UsageRecords) Count(ctx context.Context, a Agent) (Usage, error) {
	now := clock.Now().UTC()
	days, err := s.store.Days(ctx, a.ID, time.Time{})
	var u Usage
	for _, d := range days {
		u.Calls += d.Calls
		if now.Sub(d.Day) < 7*24*time.Hour {
			u.Week += d.Calls
		}
	}
	return u, err
}

// maxCalls is how many call records an owner sees.
const maxCalls = 200

// Stats returns the usage of an agent; only its owners and the operator may read it.
func (s *UsageRecords) Stats(ctx context.Context, actor ident.Actor, name string) (Stats, error) {
	a, err := s.agents.ownedAgent(ctx, actor, name)
	if err != nil {
		return Stats{}, err
	}
	var out Stats
	if out.Days, err = s.store.Days(ctx, a.ID,
		clock.Now().UTC().Truncate(24*time.Hour).Add(-29*24*time.Hour)); err != nil {
		return Stats{}, err
	}
	if out.Calls, err = s.store.Calls(ctx, a.ID, actor.ID, maxCalls); err != nil {
		return Stats{}, err
	}
	var took []time.Duration
	for _, c := range out.Calls {
		if c.State == "completed" {
			took = append(took, c.Took)
		}
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		out.P50, out.P95 = took[n/2], took[min(n-1, n*95/100)]
	}
	return out, nil
}

// Traces returns the wire traffic of a call; only the owner who made the call may read it.
func (s *UsageRecords) Traces(ctx context.Context, actor ident.Actor, name, taskID string) ([]Trace, error) {
	a, err := s.agents.ownedAgent(ctx, actor, name)
	if err != nil {
		return nil, err
	}
	if !ident.ValidID(taskID) {
		return nil, fault.New(fault.NotFound, "There is no such call.")
	}
	// The text of a call belongs to its caller: co-owners, former owners and the operator do not read it.
	if !isOwner(actor, a) {
		return nil, fault.New(fault.Forbidden, "Only an owner of %s may read what its calls said.", a.Name)
	}
	return s.store.Traces(ctx, a.ID, taskID, actor.ID)
}

// AddTraces stores the wire traffic of an owner's call. The runtime calls it; errors are logged.
func (s *UsageRecords) AddTraces(ctx context.Context, agentID, taskID string, list []Trace) {
	if len(list) == 0 {
		return
	}
	if err := s.store.AddTraces(ctx, agentID, taskID, list); err != nil {
		s.log.Warn("store traces", "agent", agentID, "error", err)
	}
}
