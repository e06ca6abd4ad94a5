package hub

import (
	"context"
	"time"

	"agentsite/internal/ident"
)

// Agents stores agents with their versions. Absent rows are NotFound faults,
// taken names Conflict faults; deleted agents are absent, their names taken.
type Agents interface {
	// CreateAgent stores the agent as version 1 with its sealed secret.
	CreateAgent(ctx context.Context, a Agent, sealed []byte) error
	// UpdateAgent stores a as the version after base; a Conflict fault when
	// base is not the latest any more. sealed nil leaves the secret.
	UpdateAgent(ctx context.Context, a Agent, base int, sealed []byte, author ident.Actor) error
	// DeleteAgent removes the agent; the name stays taken for ever.
	DeleteAgent(ctx context.Context, id string) error
	AgentByName(ctx context.Context, name string) (Agent, error)
	AgentByID(ctx context.Context, id string) (Agent, error)
}

// Lists reads many agents.
type Lists interface {
	// AllAgents calls yield for every agent of the portal, without secrets,
	// leaving out those of disabled accounts, until yield returns false.
	AllAgents(ctx context.Context, yield func(Agent) bool) error
	// AgentsOf returns an account's agents by name.
	AgentsOf(ctx context.Context, ownerID string) ([]Agent, error)
	// Versions returns the versions of an agent, newest first.
	Versions(ctx context.Context, agentID string) ([]Agent, error)
}

// Secrets reads what only a call may see.
type Secrets interface {
	SealedSecret(ctx context.Context, agentID string) ([]byte, error)
}

// Health stores liveness.
type Health interface {
	SetLiveness(ctx context.Context, agentID string, l Liveness) error
	// Due returns agents that somebody else runs and that were last checked
	// before then, longest ago first.
	Due(ctx context.Context, then time.Time, limit int) ([]Agent, error)
}

// Store is all that the service keeps.
type Store interface {
	Agents
	Lists
	Secrets
	Health
}

// Sealer keeps credentials unreadable at rest. bound ties a sealed value to
// its owner: it opens only with the same bound.
type Sealer interface {
	Seal(plain, bound string) []byte
	Open(sealed []byte, bound string) (string, error)
}
