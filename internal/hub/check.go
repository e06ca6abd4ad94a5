package hub

import (
	"context"

	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Probes probes agents on request; package liveness implements it.
type Probes interface {
	// ProbeFirst probes a new version of an agent. It waits a short time for the result and returns the
	// agent with it, or unchanged.
	ProbeFirst(ctx context.Context, a Agent) Agent
	// ProbeNow probes an agent and returns the result; an Unavailable fault if that takes too long.
	ProbeNow(ctx context.Context, a Agent) (Liveness, error)
}

// checkNow returns a new version of an agent with the result of its first probe, if that arrives in a
// short time. Kinds with agentkind.Spec.Unprobed are returned unchanged.
func (s *Service) checkNow(ctx context.Context, a Agent) Agent {
	if s.probes == nil || agentkind.Of(a.Kind).Unprobed {
		return a
	}
	return s.probes.ProbeFirst(ctx, a)
}

// Check probes an agent at once, for its owner or the operator, and returns the agent with the result. A
// RateLimited fault if one account does so too often.
func (s *Service) Check(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	a, err := s.ownedAgent(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if wait, ok := s.reads.Allow(actor.ID); !ok {
		return Agent{}, fault.Limited(wait, "You checked often in a short time. Wait a moment.")
	}
	if s.probes == nil || agentkind.Of(a.Kind).Unprobed {
		return a, nil // Agents of this kind are not probed, so the known liveness is returned.
	}
	verdict, err := s.probes.ProbeNow(ctx, a)
	if err != nil {
		return Agent{}, err
	}
	if a, err = s.store.AgentByID(ctx, a.ID); err == nil {
		a.Liveness = verdict // The result is shown even if it could not be stored.
	}
	return a, err
}
