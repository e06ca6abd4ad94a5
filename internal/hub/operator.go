package hub

import (
	"context"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
)

// RequireOperator returns a fault unless the actor is an operator whose credential has the scope admin.
func RequireOperator(actor ident.Actor) error {
	if !actor.IsOperator() || !actor.May(ident.Admin) {
		return fault.New(fault.Forbidden, "Only the operator of this portal may do that.")
	}
	return nil
}

// RequireWriter returns a fault unless the actor has an account and a credential that may register agents.
func RequireWriter(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in to register agents.")
	}
	if !actor.May(ident.AgentsWrite) {
		return fault.New(fault.Forbidden, "%s", ident.AgentsWrite.DescribeMissing())
	}
	return nil
}

// Each calls yield for every agent of this portal, including hidden ones, in the order of registration,
// until yield returns false. Only the operator may call it.
func (s *Service) Each(ctx context.Context, actor ident.Actor, yield func(Agent) bool) error {
	if err := RequireOperator(actor); err != nil {
		return err
	}
	return s.store.AllAgents(ctx, yield)
}

// Hold withdraws an agent on behalf of the operator, or releases it (hold false). The owner cannot undo
// a hold and gets a notice with the reason.
func (s *Service) Hold(ctx context.Context, actor ident.Actor, name string, hold bool, reason string) (Agent, error) {
	if err := RequireOperator(actor); err != nil {
		return Agent{}, err
	}
	a, err := s.Get(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if a.Elsewhere() {
		return Agent{}, fault.New(fault.Forbidden,
			"%s is an agent of another portal. Keep out the portal, or talk to its operator.", a.Handle())
	}
	if a.Kind == Builtin {
		return Agent{}, fault.New(fault.Forbidden, "%s belongs to the portal itself.", a.Name)
	}
	if !hold && !a.Status.Held {
		return a, nil // The agent is not held, so a status set by its owner stays.
	}
	base := a.Version
	a.Status = Status{State: Active}
	note, text := "Given back by the operator", "The operator of this portal gave "+a.Name+" back."
	if hold {
		a.Status = Status{State: Withdrawn, Message: plaintext.Clean(reason), Held: true}
		note, text = "Withdrawn by the operator", "The operator of this portal withdrew "+a.Name+". "+a.Status.Message
	}
	if err := checkStatus(a.Status); err != nil {
		return Agent{}, err
	}
	if a, err = s.saveVersion(ctx, actor, a, base, nil, note); err != nil {
		return Agent{}, err
	}
	s.dropConnections(a.ID)
	s.Notices.NotifyOwners(ctx, a, Notice{Kind: NoticeHeld, Text: text})
	return a, nil
}
