package translate

import (
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// Agent reads the record of an agent of another portal, which a record.Gate
// admitted, as an agent of the directory. The card is its portal's current
// one. A signature says who speaks, not that it is true, so everything comes
// out within the bounds of agents registered here:
//
//   - ID is the agent's id in the network, Portal the host of the card's
//     origin, whatever the record says;
//   - Endpoint is the agent's A2A door at that origin when the record lists
//     it, else empty: nobody makes this portal call elsewhere;
//   - OwnerName is a handle, name@host; Proof.State is hub.Claimed at best, and
//     a publisher is in Proof.Publisher, where nobody takes it for proved;
//   - Version is the record's seq: it changes with each record;
//   - Liveness is unknown.
//
// A tombstone, or a record of another portal than the card's, is an Invalid
// fault.
func Agent(card *record.Card, r *record.Agent) (hub.Agent, error) {
	switch {
	case r.Deleted:
		return hub.Agent{}, fault.New(fault.Invalid, "The agent was removed from its portal.")
	case r.Portal != card.Portal:
		return hub.Agent{}, fault.New(fault.Invalid, "The agent's record is of another portal.")
	}
	host := federation.HostOf(card.Origin)
	a := hub.Agent{
		ID: r.AgentID(), Name: r.Name, Portal: host, Title: r.Title, Description: r.Description, Kind: kind(r.Kind), Version: int(r.Seq),
		InputModes: r.Inputs, OutputModes: r.Outputs, Languages: r.Languages,
		Status:    hub.Status{State: hub.Active},
		Proof:     hub.Proof{State: hub.Unproven, Publisher: r.Publisher},
		CreatedAt: within(r.Created, r.Issued), UpdatedAt: within(r.Updated, r.Issued),
	}
	if r.Status == record.StatusDeprecated {
		a.Status = hub.Status{State: hub.Deprecated, Message: r.StatusNote}
	}
	if r.Owner != "" {
		a.OwnerName = r.Owner + "@" + host
	}
	if p := r.Proof; p != nil && (p.Way == wayHosted || p.Way == hub.ProofToken || p.Way == hub.ProofCard) {
		a.Proof.State, a.Proof.Method, a.Proof.Origin = hub.Claimed, p.Way, p.Origin
		if p.At > 0 {
			a.Proof.At = within(p.At, r.Issued)
		}
	}
	for _, e := range r.Endpoints {
		if door := card.Origin + "/agents/" + r.Name + "/a2a"; e.Protocol == ProtocolA2A && e.URL == door {
			a.Endpoint = door
		}
	}
	for _, s := range r.Skills {
		a.Skills = append(a.Skills, hub.Skill{ID: s.ID, Name: s.Name, Description: s.Description, Tags: s.Tags, Examples: s.Examples})
	}
	return hub.Elsewhere(a)
}

// kind is how an agent is reached at its portal, as its portal says it. What
// is not known here is an agent like any other: it is asked by A2A.
func kind(s string) hub.Kind {
	switch k := hub.Kind(s); k {
	case hub.Builtin, hub.A2A, hub.MCP, hub.OpenAI, hub.Prompt, hub.Link:
		return k
	}
	return hub.A2A
}

// earliest is before any agent: what is older counts as not said.
var earliest = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// within is a time that a record says, or when it was issued.
func within(at, issued int64) time.Time {
	if t := clock.FromMilli(at); !t.Before(earliest) && at <= issued {
		return t
	}
	return clock.FromMilli(issued)
}

// Local returns the id at its portal from an agent's id in the network, and
// that portal; empty for an agent with a key of its own.
func Local(networkID string) (portal record.PortalID, local string) {
	p, id, ok := strings.Cut(networkID, "/")
	if !ok {
		return "", ""
	}
	return record.PortalID(p), id
}
