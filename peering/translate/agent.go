package translate

import (
	"strings"
	"time"

	"agentsite/internal/agentkind"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// Agent converts the record of an agent of another portal, which a record.Gate admitted, to an
// agent of the directory. The card is the current one of its portal. A signature proves the author,
// not the content, so every field is limited to the bounds of agents registered here:
//
//   - ID is the agent's network id, Portal the host of the card's
//     origin, whatever the record says;
//   - Endpoint is the agent's A2A endpoint at that origin if the record lists
//     it, otherwise empty: a record cannot make this portal call another host;
//   - OwnerName is a handle, name@host; Proof.State is hub.Claimed at best, and
//     a publisher is in Proof.Publisher, which counts as unproved;
//   - Version is the record's seq: it changes with each record;
//   - Liveness is unknown.
//
// An Invalid fault is returned for a tombstone, for a record of another portal than the card's, for a
// package, and for a built-in agent: portals up to November 2026 publish theirs, but every portal has its own.
func Agent(card *record.Card, r *record.Agent) (hub.Agent, error) {
	switch {
	case r.Deleted:
		return hub.Agent{}, fault.New(fault.Invalid, "The agent was removed from its portal.")
	case r.Portal != card.Portal:
		return hub.Agent{}, fault.New(fault.Invalid, "The agent's record is of another portal.")
	case r.Package != nil:
		return hub.Agent{}, fault.New(fault.Invalid, "The record describes a package, not an agent.")
	case r.Kind == string(hub.Builtin):
		return hub.Agent{}, fault.New(fault.Invalid, "The agent is built into its portal. Every portal has its own.")
	}
	host := federation.HostOf(card.Origin)
	a := hub.Agent{
		ID: r.AgentID(), Name: r.Name, Portal: host, Title: r.Title, Description: r.Description,
		Kind: agentKind(r.Kind), Version: int(r.Seq),
		InputModes: r.Inputs, OutputModes: r.Outputs, Languages: r.Languages,
		Status:    hub.Status{State: hub.Active},
		Proof:     hub.Proof{State: hub.Unproven, Publisher: r.Publisher},
		CreatedAt: boundedTime(r.Created, r.Issued), UpdatedAt: boundedTime(r.Updated, r.Issued),
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
			a.Proof.At = boundedTime(p.At, r.Issued)
		}
	}
	for _, e := range r.Endpoints {
		if endpoint := card.Origin + "/agents/" + r.Name + "/a2a"; e.Protocol == ProtocolA2A && e.URL == endpoint {
			a.Endpoint = endpoint
		}
	}
	for _, s := range r.Skills {
		a.Skills = append(a.Skills, hub.Skill{ID: s.ID, Name: s.Name, Description: s.Description, Tags: s.Tags,
			Examples: s.Examples})
	}
	return hub.Elsewhere(a)
}

// agentKind returns the kind that the agent's portal states. An unknown kind becomes hub.A2A,
// because each agent of another portal can be called by A2A.
func agentKind(s string) hub.Kind {
	if k := hub.Kind(s); agentkind.Of(k).Registered {
		return k
	}
	return hub.A2A
}

// earliest is a lower bound for times of agents; an earlier time in a record counts as missing.
var earliest = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// boundedTime returns the time at (Unix ms), or issued, the time of the record, if at is before earliest or
// after issued.
func boundedTime(at, issued int64) time.Time {
	if t := clock.FromMilli(at); !t.Before(earliest) && at <= issued {
		return t
	}
	return clock.FromMilli(issued)
}

// Local splits a network id into the portal and the agent's id there; both are empty for an agent
// with its own key.
func Local(networkID string) (portal record.PortalID, local string) {
	p, id, ok := strings.Cut(networkID, "/")
	if !ok {
		return "", ""
	}
	return record.PortalID(p), id
}
