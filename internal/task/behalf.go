package task

import "context"

// Behalf names the person and the agents behind the requests of a driver. The code that signs requests
// to other portals reads it. It travels in the context, like a trace, so that drivers need no parameter
// for it.
type Behalf struct {
	// AgentID is the id of the agent that the requests go to.
	AgentID string
	// Kind is the kind of the asking side: person, guest, agent (called by another agent), or probe for
	// a request without a caller.
	Kind string
	// CallerID is the person or guest behind the call; "" for a probe.
	CallerID string
	// Via is the chain of agents that led to the call, without the agent itself.
	Via Chain
	// Budget bounds the work that the agent may cause in turn.
	Budget Budget
}

type behalfKey struct{}

// WithBehalf returns a context whose requests to other portals are made on behalf of b.
func WithBehalf(ctx context.Context, b Behalf) context.Context {
	return context.WithValue(ctx, behalfKey{}, b)
}

// BehalfOf returns the Behalf of the requests in ctx; ok is false if ctx has none, and such requests
// are sent unsigned.
func BehalfOf(ctx context.Context) (b Behalf, ok bool) {
	b, ok = ctx.Value(behalfKey{}).(Behalf)
	return b, ok
}

// OnBehalfOf returns the Behalf for the requests that the call causes. An operator counts as a
// person, so that other portals do not learn the operator of this one.
func (c Call) OnBehalfOf() Behalf {
	b := Behalf{AgentID: c.Agent.ID, Kind: c.Caller.Kind, CallerID: c.Caller.ID, Via: c.Via, Budget: c.Budget}
	switch {
	case c.Speaker.Kind == "agent":
		b.Kind = "agent"
	case b.Kind == "operator":
		b.Kind = "person"
	case b.Kind == "portal": // people of other portals count as guests
		b.Kind = "guest"
	}
	return b
}

// ForCall returns the Behalf for calling another agent in the course of this work. self is the
// present agent's hop, which is appended to the chain. The budget shrinks by one call.
func (b Behalf) ForCall(agentID string, self Hop) Behalf {
	return Behalf{AgentID: agentID, Kind: "agent", CallerID: b.CallerID, Via: b.Via.AppendHop(self),
		Budget: b.Budget.SpendCall(0)}
}
