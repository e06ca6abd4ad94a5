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

// Day is how an agent was used on one day, UTC.
type Day struct {
	Day       time.Time
	Calls     int
	Completed int
	Failed    int
	Canceled  int
	Guests    int
	// Took is the time of all ended calls together.
	Took time.Duration
}

// CallRecord is one call as the agent's owner sees it: of others' calls kind,
// face, state and timing, never the text.
type CallRecord struct {
	TaskID string
	// Own is true when the viewing owner made the call; then it may have traces.
	Own        bool
	CallerKind string // guest, person, operator, agent
	Face       string
	State      string
	// Reason explains a failure, in the portal's words; empty for others' calls when it may quote
	// their text.
	Reason string
	At     time.Time
	// Took is zero while it has not ended.
	Took time.Duration
}

// Trace is one message of a call as it went over the wire, secrets removed.
type Trace struct {
	At   time.Time
	Sent bool // by the portal
	Head string
	Body string // cut
	Size int64  // before it was cut
}

// Usage is the public usage of an agent.
type Usage struct {
	Calls int // ever, as far as remembered
	Week  int // in the last seven days
}

// Stats is how an agent is used, for its owners.
type Stats struct {
	Days  []Day // the last 30, oldest first, without those that saw nothing
	Calls []CallRecord
	// P50 and P95 are of the last calls that were completed.
	P50, P95 time.Duration
}

// UsageRecords shows how agents are used.
type UsageRecords struct {
	store  Uses
	agents ownedAgents
	log    *slog.Logger
}

// ownedAgents finds the agents that an actor may change.
type ownedAgents interface {
	ownedAgent(ctx context.Context, actor ident.Actor, name string) (Agent, error)
}

// Count counts the calls of an agent the actor may see.
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

// maxCalls is how many calls an owner looks back on.
const maxCalls = 200

// Stats shows an agent's owners how it is used.
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

// Traces shows an owner the wire traffic of one of their own calls.
func (s *UsageRecords) Traces(ctx context.Context, actor ident.Actor, name, taskID string) ([]Trace, error) {
	a, err := s.agents.ownedAgent(ctx, actor, name)
	if err != nil {
		return nil, err
	}
	if !ident.ValidID(taskID) {
		return nil, fault.New(fault.NotFound, "There is no such call.")
	}
	// Text of a co-owner or a former owner is theirs, and the operator, with access to every
	// agent, reads no text.
	if !isOwner(actor, a) {
		return nil, fault.New(fault.Forbidden, "Only an owner of %s may read what its calls said.", a.Name)
	}
	return s.store.Traces(ctx, a.ID, taskID, actor.ID)
}

// AddTraces stores the wire traffic of an owner's call, for the runtime. Errors are logged.
func (s *UsageRecords) AddTraces(ctx context.Context, agentID, taskID string, list []Trace) {
	if len(list) == 0 {
		return
	}
	if err := s.store.AddTraces(ctx, agentID, taskID, list); err != nil {
		s.log.Warn("store traces", "agent", agentID, "error", err)
	}
}
