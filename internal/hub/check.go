package hub

import (
	"context"

	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Probes has agents probed. Package liveness implements it.
type Probes interface {
	// ProbeFirst probes a new version of an agent and waits a moment for the
	// verdict.
	ProbeFirst(ctx context.Context, a Agent) Agent
	// ProbeNow probes an agent and returns the verdict, or a fault if that takes
	// too long.
	ProbeNow(ctx context.Context, a Agent) (Liveness, error)
}

// checkNow returns an agent with the first verdict on a new version, if it comes
// within a moment. See agentkind.Spec for the kinds that are not probed.
func (s *Service) checkNow(ctx context.Context, a Agent) Agent {
	if s.probes == nil || agentkind.Of(a.Kind).Unprobed {
		return a
	}
	return s.probes.ProbeFirst(ctx, a)
}

// Check probes an agent now, for its owner or the operator, and returns the
// agent with the verdict.
func (s *Service) Check(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	a, err := s.ownedAgent(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if wait, ok := s.reads.Allow(actor.ID); !ok {
		return Agent{}, fault.Limited(wait, "You checked often in a short time. Wait a moment.")
	}
	if s.probes == nil || agentkind.Of(a.Kind).Unprobed {
		return a, nil // they are not probed
	}
	verdict, err := s.probes.ProbeNow(ctx, a)
	if err != nil {
		return Agent{}, err
	}
	if a, err = s.store.AgentByID(ctx, a.ID); err == nil {
		a.Liveness = verdict // also when it could not be stored
	}
	return a, err
}
