package hub

import (
	"context"
	"time"
)

// Voice is a liveness report: the result of one portal's own exchanges with an agent.
type Voice struct {
	// Portal is the host of the portal that says it.
	Portal string
	State  Live
	At     time.Time
	// Called is true for the result of a real task, false for a probe.
	Called bool
	// Role is the role of the reporting portal: RoleHere, RoleHome, RolePinned, RoleProved, or
	// empty for a portal that does not count.
	Role string
}

// Roles of a Voice: this portal, the agent's own, one that an operator
// believes, one that was seen to hold its domain.
const (
	RoleHere   = "here"
	RoleHome   = "home"
	RolePinned = "pinned"
	RoleProved = "proved"
)

// LivenessReports are the liveness reports of portals.
type LivenessReports interface {
	// Reports returns the liveness of an agent and the reports about it, those that count most first.
	Reports(a Agent) (Liveness, []Voice)
	// RemoteCalled takes the outcome of a call to an agent of another portal. It must not block.
	RemoteCalled(a Agent, reached bool)
}

// maxVoices is how many voices are shown of an agent.
const maxVoices = 20

// Voices returns the liveness reports of portals about an agent that the actor may see, those that
// count most first, at most 20, and the combined liveness; for a local agent that is this portal's
// own result. Unlisted agents have none, because they are never reported to other portals.
func (s *Service) Voices(a Agent) (Liveness, []Voice) {
	if s.reports == nil || a.Portal == "" && !a.Listable() {
		return a.Liveness, nil
	}
	l, list := s.reports.Reports(a)
	if a.Portal == "" {
		l = a.Liveness
	}
	return l, list[:min(len(list), maxVoices)]
}

// CalledElsewhere notes the outcome of a task for an agent of another portal: whether that portal
// brought an answer or was not reached.
func (s *Service) CalledElsewhere(ctx context.Context, agentID string, reached bool) {
	if s.reports == nil {
		return
	}
	if a, err := s.store.AgentByID(ctx, agentID); err == nil && a.Kind == Peer {
		s.reports.RemoteCalled(a, reached)
	}
}
