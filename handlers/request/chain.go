package request

import (
	"net/http"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// ReadChain returns the agents whose work led to a request, as the request states, for chat.Ask. A request that
// leaves some out is still bounded by the portal's other limits.
func ReadChain(r *http.Request) (task.Chain, error) {
	lines := r.Header.Values(task.HopsField)
	if len(lines) == 0 {
		return task.Chain(nil), nil
	}
	c, err := task.ParseField(lines)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s: %s, or leave it out.", task.HopsField, err)
	}
	return c, nil
}

// ReadBudget returns the budget that a request states, for chat.Ask. A portal states the budget left for this call.
// Other callers forward the budget that an agent was given, of which this call takes one.
func ReadBudget(r *http.Request, actor ident.Actor) (task.Budget, error) {
	b, err := task.ParseBudgetField(r.Header.Values(task.BudgetField), clock.Now())
	if err != nil {
		return task.Budget{}, fault.New(fault.Invalid, "%s: %s, or leave it out.", task.BudgetField, err)
	}
	if !b.IsSet() || actor.Kind == ident.Portal {
		return b, nil
	}
	if b.Calls < 1 {
		return task.Budget{}, fault.Wrap(fault.Invalid, task.ErrBudget,
			"No agent was asked: the original request allows no more calls of agents.")
	}
	return b.SpendCall(0), nil
}
