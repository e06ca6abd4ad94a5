// Package liveness probes agents, keeps the results of their last exchanges, plans the next ones
// host by host, and notifies owners of outages.
package liveness

import (
	"agentsite/internal/hub"
	"context"
)

// Directory is the part of the directory that a Service needs.
type Directory interface {
	// Open returns an agent with its credential.
	Open(ctx context.Context, agentID string) (hub.Agent, string, error)
	// LearnCard reads the card of an agent that could not be read before.
	LearnCard(ctx context.Context, a hub.Agent) hub.Agent
	// Relearn reads again the parts of an agent that change by themselves.
	Relearn(ctx context.Context, a hub.Agent)
	// Reindex updates the search index.
	Reindex(ctx context.Context, agentID string)
}

// Notifier stores notices for accounts.
type Notifier interface {
	// NotifyOwners stores a notice for the owners of an agent.
	NotifyOwners(ctx context.Context, a hub.Agent, n hub.Notice)
}

// Observer learns the results of exchanges with this portal's own agents.
type Observer interface {
	// OwnContacted takes an own agent with its new liveness. It must not block.
	OwnContacted(a hub.Agent)
}

// Proofs checks the proofs of agents and domains again.
type Proofs interface {
	ProveAgain(ctx context.Context, a hub.Agent) error
	RecheckDomains(ctx context.Context)
}

// Ports are the parts of a portal that a Service uses.
type Ports struct {
	Queue     *Queue
	Prober    Prober
	Directory Directory
	Notices   Notifier
	// Proofs is nil if proofs are not checked again.
	Proofs Proofs
	// Observer may be nil.
	Observer Observer
}

// Service probes agents, keeps their liveness, and notifies owners of outages. Create it with its
// constructor, and Run it. It is safe for concurrent use.
type Service struct {
	ports  Ports
	queue  *Queue
	prober Prober
	agents Directory
	proofs Proofs
}

// New returns a monitor of a portal's agents.
func New(p Ports) *Service {
	return &Service{ports: p, queue: p.Queue, prober: p.Prober, agents: p.Directory, proofs: p.Proofs}
}

// Prober makes a real protocol exchange with an agent that never makes the agent work: GetTask of
// an unknown id, a list of models. It returns within its own deadline and never an error: a
// failure is a liveness.
type Prober interface {
	Probe(ctx context.Context, t hub.Target) hub.Liveness
}
