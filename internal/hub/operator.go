package hub

import (
	"context"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Each calls yield for every agent of the portal, listed or not, in the order
// of registration, until yield returns false. It is for the operator.
func (s *Service) Each(ctx context.Context, actor ident.Actor, yield func(Agent) bool) error {
	if !actor.IsOperator() || !actor.May(ident.Admin) {
		return fault.New(fault.Forbidden, "Only the operator of this portal may do that.")
	}
	return s.store.AllAgents(ctx, yield)
}
