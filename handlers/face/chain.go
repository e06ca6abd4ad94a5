package face

import (
	"net/http"

	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// Chain is the agents whose work led to a request, as it says itself: for
// chat.Ask. Who leaves some out gets no further than the portal's other bounds.
func Chain(r *http.Request) (task.Chain, error) {
	lines := r.Header.Values(task.HopsField)
	if len(lines) == 0 {
		return nil, nil
	}
	c, err := task.ParseField(lines)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s: %s, or leave it out.", task.HopsField, err)
	}
	return c, nil
}
