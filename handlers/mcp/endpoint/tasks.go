package endpoint

import (
	"context"
	"encoding/json"
)

// Tasks gives clients access to the tasks that were answers to calls.
type Tasks interface {
	// Get returns a task of the caller, and NoTask as the error for any other id.
	Get(ctx context.Context, c *Call, id string) (Task, error)
	// Update passes input to a task, by the keys of Task.Requests. Unknown keys are ignored.
	Update(ctx context.Context, c *Call, id string, inputs map[string]json.RawMessage) error
	// Cancel requests the end of a task. A task that has ended stays unchanged.
	Cancel(ctx context.Context, c *Call, id string) error
}

// NoTask returns the problem for a task that does not exist or belongs to another caller, so that ids
// cannot be tested.
func NoTask() *Problem { return Wrong("taskId: is not a task of yours here.") }

// serveTask handles tasks/get, tasks/update and tasks/cancel of the tasks extension.
func (s *Server) serveTask(ctx context.Context, c *Call) (json.RawMessage, error) {
	if !c.Client.Tasks {
		return nil, missingTasks()
	}
	done := s.encodeResult(c.Version, struct{}{})
	switch c.Method {
	case "tasks/update":
		in, ok := readInputs(c.Params.Get("inputResponses"))
		if !ok {
			return nil, Wrong("inputResponses: send an object with an answer, itself an object, for each key of inputRequests.")
		}
		return done, s.offer.Tasks.Update(ctx, c, c.Name, in)
	case "tasks/cancel":
		return done, s.offer.Tasks.Cancel(ctx, c, c.Name)
	}
	t, err := s.offer.Tasks.Get(ctx, c, c.Name)
	if err != nil {
		return nil, err
	}
	out := t.asJSON(c.Version, true)
	out.ResultType, out.Meta = "complete", s.serverMeta
	return encodeJSON(out), nil
}
