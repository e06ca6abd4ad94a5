// Package liveness finds out whether agents work: it probes them without making them do work, keeps
// the results, plans the next probes host by host, and notifies owners of outages.
package liveness

import (
	"agentsite/internal/hub"
	"context"
)

// Directory is the part of the agent directory that a Service uses; hub.Service implements it.
type Directory interface {
	// Open returns an agent with its decrypted credential, "" for none.
	Open(ctx context.Context, agentID string) (hub.Agent, string, error)
	// LearnCard reads the agent card of an agent if it could not be read at registration, and
	// returns the agent with it. Other agents are returned unchanged.
	LearnCard(ctx context.Context, a hub.Agent) hub.Agent
	// Relearn reads again the parts of an agent that may change at any time, such as the tools of
	// an MCP server.
	Relearn(ctx context.Context, a hub.Agent)
	// Reindex updates the search index with the agent as it is stored.
	Reindex(ctx context.Context, agentID string)
}

// Notifier stores notifications for accounts.
type Notifier interface {
	// NotifyOwners stores a notification for each owner of an agent. Errors are logged and not
	// returned.
	NotifyOwners(ctx context.Context, a hub.Agent, n hub.Notice)
}

// Observer receives the liveness of this portal's own agents, to report it to other portals.
type Observer interface {
	// OwnContacted is called with an agent of this portal that has its new liveness. It must not
	// block.
	OwnContacted(a hub.Agent)
}

// Proofs checks again whether the sites of agents and domains still confirm their owners.
type Proofs interface {
	ProveAgain(ctx context.Context, a hub.Agent) error
	RecheckDomains(ctx context.Context)
}

// Ports are the parts of the portal that a Service uses. All must be set unless a comment says
// otherwise.
type Ports struct {
	Queue     *Queue
	Prober    Prober
	Directory Directory
	Notices   Notifier
	// Proofs is nil if proofs are not checked again, as in tests.
	Proofs Proofs
	// Observer is nil if the portal is in no network.
	Observer Observer
}

// Service probes agents, keeps their liveness and notifies owners of outages. Create it with New,
// then call Run. Its methods are safe for concurrent use.
type Service struct {
	ports  Ports
	queue  *Queue
	prober Prober
	agents Directory
	proofs Proofs
}

// New returns a Service over the other parts of the portal. It starts nothing: probes begin with
// Run.
func New(p Ports) *Service {
	return &Service{ports: p, queue: p.Queue, prober: p.Prober, agents: p.Directory, proofs: p.Proofs}
}

// Prober makes one exchange with an agent in the agent's protocol that causes no work, for example
// GetTask of an unknown id or a list of models. It returns within its own deadline. It returns no
// error, because a failed exchange is a liveness too.
type Prober interface {
	Probe(ctx context.Context, t hub.Target) hub.Liveness
}
