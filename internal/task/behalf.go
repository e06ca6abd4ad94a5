package task

import "context"

// Behalf is on whose behalf a driver calls out, for who introduces its
// requests. It goes with the context like a trace: drivers hand it on without
// knowing.
type Behalf struct {
	// AgentID is the agent that is called.
	AgentID string
	// Kind is what asks: person, guest, agent (one that another agent called),
	// or probe when nobody does.
	Kind string
	// CallerID is the person or guest behind the call; "" for a probe.
	CallerID string
	// Via is what led to the call, without the agent itself.
	Via Chain
	// Budget is what the agent's work may lead to.
	Budget Budget
}

type behalfKey struct{}

// WithBehalf returns a context in which drivers call out on somebody's behalf.
func WithBehalf(ctx context.Context, b Behalf) context.Context {
	return context.WithValue(ctx, behalfKey{}, b)
}

// BehalfOf reports on whose behalf requests in ctx are made; ok is false for
// requests that nobody introduces.
func BehalfOf(ctx context.Context) (b Behalf, ok bool) {
	b, ok = ctx.Value(behalfKey{}).(Behalf)
	return b, ok
}

// Behalf is on whose behalf the agent of a call works.
func (c Call) Behalf() Behalf {
	b := Behalf{AgentID: c.Agent.ID, Kind: c.Caller.Kind, CallerID: c.Caller.ID, Via: c.Via, Budget: c.Budget}
	switch {
	case c.Speaker.Kind == "agent":
		b.Kind = "agent"
	case b.Kind == "operator":
		b.Kind = "person"
	case b.Kind == "portal": // a visitor, wherever from
		b.Kind = "guest"
	}
	return b
}

// Calls is on whose behalf another agent works that the agent, which is self
// in a chain, calls by itself.
func (b Behalf) Calls(agentID string, self Hop) Behalf {
	return Behalf{AgentID: agentID, Kind: "agent", CallerID: b.CallerID, Via: b.Via.With(self),
		Budget: b.Budget.Less(0)}
}
