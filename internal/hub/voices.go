package hub

import (
	"context"
	"time"
)

// Voice is the liveness report of one portal: the result of its own exchanges with an agent.
type Voice struct {
	Portal string
	State  Live
	At     time.Time
	// Called is true for the result of a real task, false for a probe.
	Called bool
	// Role is the role of the reporting portal: RoleHere, RoleHome, RolePinned, RoleProved, or "" for a
	// portal whose report is shown but not counted.
	Role string
}

// Roles of a reporting portal: this portal; the agent's own portal; a portal that the operator trusts; a
// portal whose domain was seen to serve its key.
const (
	RoleHere   = "here"
	RoleHome   = "home"
	RolePinned = "pinned"
	RoleProved = "proved"
)

// LivenessReports combines the liveness reports of portals.
type LivenessReports interface {
	// Reports returns the combined liveness of an agent and the reports about it, those with the most weight first.
	Reports(a Agent) (Liveness, []Voice)
	// RemoteCalled records the outcome of a call to an agent of another portal; reached is false if that
	// portal did not answer. It must not block.
	RemoteCalled(a Agent, reached bool)
}

// maxVoices is how many reports about an agent are returned.
const maxVoices = 20

// Voices returns the combined liveness of an agent and at most maxVoices reports about it, those with
// the most weight first. For a local agent the liveness is this portal's own result. Agents that are not
// listable have no reports, because they are never reported to other portals.
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

// CalledElsewhere records the outcome of a task for an agent of another portal: reached is false if that
// portal did not answer. Local agents are ignored. The runtime calls it.
func (s *Service) CalledElsewhere(ctx context.Context, agentID string, reached bool) {
	if s.reports == nil {
		return
	}
	if a, err := s.store.AgentByID(ctx, agentID); err == nil && a.Kind == Peer {
		s.reports.RemoteCalled(a, reached)
	}
}
