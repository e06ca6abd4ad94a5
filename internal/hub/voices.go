package hub

import (
	"context"
	"time"
)

// Voice is what one portal's own exchanges with an agent showed.
type Voice struct {
	// Portal is the host of the portal that says it.
	Portal string
	State  Live
	At     time.Time
	// Called is true when it was work for somebody that showed it, false when
	// it was a probe.
	Called bool
	// Role is whose voice it is: RoleHere, RoleHome, RolePinned, RoleProved, or
	// empty for a portal whose word does not count.
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

// maxVoices is how many voices are shown of an agent.
const maxVoices = 20

// Voices returns what portals say of an agent that the actor may see, those
// that count most first, at most 20, and what that comes to; for an own agent
// that stays what this portal saw itself. Of agents that are not listed nobody
// else is told anything, so there are none.
func (s *Service) Voices(a Agent) (Liveness, []Voice) {
	if s.cfg.Voices == nil || a.Portal == "" && !a.Listable() {
		return a.Liveness, nil
	}
	l, list := s.cfg.Voices(a)
	if a.Portal == "" {
		l = a.Liveness
	}
	return l, list[:min(len(list), maxVoices)]
}

// CalledElsewhere takes note of a task that was given to an agent of another
// portal: whether that portal brought an answer, or nobody was reached.
func (s *Service) CalledElsewhere(ctx context.Context, agentID string, reached bool) {
	if s.cfg.Elsewhere == nil {
		return
	}
	if a, err := s.store.AgentByID(ctx, agentID); err == nil && a.Kind == Peer {
		s.cfg.Elsewhere(a, reached)
	}
}
