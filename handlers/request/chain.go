package request

import (
	"net/http"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// ReadChain is the agents whose work led to a request, as it says itself: for
// chat.Ask. Who leaves some out gets no further than the portal's other bounds.
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

// ReadBudget is what a request may lead to, as it says itself: for chat.Ask. A
// portal says what is left for the very call; everybody else sends on what an
// agent was given, of which the call is one.
func ReadBudget(r *http.Request, actor ident.Actor) (task.Budget, error) {
	b, err := task.ParseBudgetField(r.Header.Values(task.BudgetField), clock.Now())
	if err != nil {
		return task.Budget{}, fault.New(fault.Invalid, "%s: %s, or leave it out.", task.BudgetField, err)
	}
	if !b.IsSet() || actor.Kind == ident.Portal {
		return b, nil
	}
	if b.Calls < 1 {
		return task.Budget{}, fault.Wrap(fault.Invalid, task.ErrBudget, "Nobody was asked: whoever this goes back to allows no more calls of agents.")
	}
	return b.SpendCall(0), nil
}
