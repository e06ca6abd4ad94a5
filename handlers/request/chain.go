package request

import (
	"net/http"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// ReadChain returns the agents whose work led to a request, as its headers state, for chat.Ask. A request
// may leave agents out, so the chain only stops honest loops; the portal's other limits stop the rest.
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

// ReadBudget returns the task budget in a request's headers, for chat.Ask. A portal states the budget
// that is left for this call. Other callers forward the budget that their agent got, from which this call
// takes one.
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
