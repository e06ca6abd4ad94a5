package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/handlers/request"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// pollEvery is how long a client shall wait before it asks for a task again.
const pollEvery = time.Second

// tasks are the tasks of callers, as the tasks extension sees them.
type tasks struct {
	d *Door
	// agent is the id of the agent whose server it is, "" for the portal's.
	agent string
}

// find returns a task of the caller's and who they are.
func (k tasks) find(ctx context.Context, c *endpoint.Call, id string) (request.Caller, task.Task, error) {
	asker, err := k.d.cfg.Callers.Identify(c.HTTP, c.Actor, id)
	var t task.Task
	if err == nil {
		t, err = k.d.cfg.Chat.OwnTask(ctx, asker.Actor, id)
	}
	if fault.Is(err, fault.NotFound) || err == nil && k.agent != "" && t.AgentID != k.agent {
		err = endpoint.NoTask()
	}
	return asker, t, err
}

// Get implements endpoint.Tasks.
func (k tasks) Get(ctx context.Context, c *endpoint.Call, id string) (endpoint.Task, error) {
	asker, t, err := k.find(ctx, c, id)
	if err != nil {
		return endpoint.Task{}, err
	}
	return k.d.detailed(ctx, c, asker.Actor, t)
}

// Update implements endpoint.Tasks.
func (k tasks) Update(ctx context.Context, c *endpoint.Call, id string, inputs map[string]json.RawMessage) error {
	asker, t, err := k.find(ctx, c, id)
	if err != nil || t.State.Terminal() || t.State.Active() {
		return err
	}
	_, err = k.d.give(ctx, c, asker.Actor, t, t.AnswerSeq, inputs[inputKey(t.AnswerSeq)])
	return err
}

// Cancel implements endpoint.Tasks.
func (k tasks) Cancel(ctx context.Context, c *endpoint.Call, id string) error {
	asker, t, err := k.find(ctx, c, id)
	if err != nil || t.State.Terminal() {
		return err
	}
	return k.d.cfg.Chat.StopTask(ctx, asker.Actor, t.ID, "Canceled by its caller.")
}

// taskOf is a task without what it produced. message is what its agent says
// it is doing, "" for nothing.
func (d *Door) taskOf(t task.Task, message string) endpoint.Task {
	out := endpoint.Task{ID: t.ID, Status: endpoint.TaskWorking, Message: cmp.Or(message, t.Reason), CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Poll: pollEvery}
	switch {
	case t.State == task.Canceled:
		out.Status = endpoint.TaskCancelled
	case t.State.Terminal():
		// A call that ran and failed is completed: its result says so.
		out.Status = endpoint.TaskCompleted
	case !t.State.Active():
		out.Status = endpoint.TaskInputRequired
	}
	return out
}

// detailed is a task with its result, or with what it wants.
func (d *Door) detailed(ctx context.Context, c *endpoint.Call, actor ident.Actor, t task.Task) (endpoint.Task, error) {
	out := d.taskOf(t, "")
	if t.State.Active() {
		for _, run := range d.cfg.Chat.Running(t.ConversationID) {
			if run.ID == t.ID {
				out.Message = run.Status
			}
		}
		return out, nil
	}
	m, err := d.said(ctx, actor, t)
	if err != nil {
		return out, err
	}
	if out.Status == endpoint.TaskInputRequired {
		if c.Client.Elicitation && m != nil {
			out.Requests = map[string]endpoint.Request{inputKey(m.Seq): elicit(t, *m)}
			return out, nil
		}
		out.Message = cmp.Or(t.Reason, "The agent waits for input.") + ` Answer by another call, with context_id "` + t.ConversationID + `".`
		return out, nil
	}
	r := d.shown(ctx, t, m)
	out.Result = &r
	return out, nil
}

// said is what a task's agent said last, nil for nothing.
func (d *Door) said(ctx context.Context, actor ident.Actor, t task.Task) (*chat.Message, error) {
	if t.AnswerSeq == 0 {
		return nil, nil
	}
	m, err := d.cfg.Chat.Message(ctx, actor, t.ConversationID, t.AnswerSeq)
	if fault.Is(err, fault.NotFound) { // who has left reads nothing more
		return nil, nil
	}
	return &m, err
}
