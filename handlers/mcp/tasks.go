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

// pollEvery is the interval at which clients are asked to poll a task.
const pollEvery = time.Second

// tasks implements endpoint.Tasks: the tasks of a caller in the form of the tasks extension.
type tasks struct {
	d *Handler
	// agent is the id of the agent that this server belongs to, "" for the portal's server, which shows the
	// tasks of all agents.
	agent string
}

// findTask returns a task and its caller. A task of another caller or agent is unknown.
func (k tasks) findTask(ctx context.Context, c *endpoint.Call, id string) (request.Caller, task.Task, error) {
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
	asker, t, err := k.findTask(ctx, c, id)
	if err != nil {
		return endpoint.Task{}, err
	}
	return k.d.detailedTask(ctx, c, asker.Actor, t)
}

// Update implements endpoint.Tasks. It ignores input for a task that waits for none.
func (k tasks) Update(ctx context.Context, c *endpoint.Call, id string, inputs map[string]json.RawMessage) error {
	asker, t, err := k.findTask(ctx, c, id)
	if err != nil || t.State.Terminal() || t.State.Active() {
		return err
	}
	_, err = k.d.giveAnswer(ctx, c, asker.Actor, t, t.AnswerSeq, inputs[inputKey(t.AnswerSeq)])
	return err
}

// Cancel implements endpoint.Tasks.
func (k tasks) Cancel(ctx context.Context, c *endpoint.Call, id string) error {
	asker, t, err := k.findTask(ctx, c, id)
	if err != nil || t.State.Terminal() {
		return err
	}
	return k.d.cfg.Chat.StopTask(ctx, asker.Actor, t.ID, "Canceled by its caller.")
}

// taskOf returns a task without its result. message is the status text that its agent reported, "" for
// none.
func (d *Handler) taskOf(t task.Task, message string) endpoint.Task {
	out := endpoint.Task{ID: t.ID, Status: endpoint.TaskWorking, Message: cmp.Or(message, t.Reason),
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Poll: pollEvery}
	switch {
	case t.State == task.Canceled:
		out.Status = endpoint.TaskCancelled
	case t.State.Terminal():
		// By the extension a call that ran and failed is completed, and its result contains the error.
		out.Status = endpoint.TaskCompleted
	case !t.State.Active():
		out.Status = endpoint.TaskInputRequired
	}
	return out
}

// detailedTask returns a task with its result, or with the input that it waits for.
func (d *Handler) detailedTask(ctx context.Context, c *endpoint.Call, actor ident.Actor, t task.Task) (endpoint.Task,
	error) {
	out := d.taskOf(t, "")
	if t.State.Active() {
		for _, run := range d.cfg.Chat.Running(t.ConversationID) {
			if run.ID == t.ID {
				out.Message = run.Status
			}
		}
		return out, nil
	}
	m, err := d.lastMessage(ctx, actor, t)
	if err != nil {
		return out, err
	}
	if out.Status == endpoint.TaskInputRequired {
		if c.Client.Elicitation && m.Seq != 0 {
			out.Requests = map[string]endpoint.Request{inputKey(m.Seq): elicitInput(t, m)}
			return out, nil
		}
		out.Message = cmp.Or(t.Reason, "The agent waits for input.") + ` Answer by another call, with context_id "` +
			t.ConversationID + `".`
		return out, nil
	}
	r := d.taskResult(ctx, t, m)
	out.Result = &r
	return out, nil
}

// lastMessage returns the last message of a task's agent, or a message with Seq 0 if there is none.
func (d *Handler) lastMessage(ctx context.Context, actor ident.Actor, t task.Task) (chat.Message, error) {
	if t.AnswerSeq == 0 {
		return chat.Message{}, nil
	}
	m, err := d.cfg.Chat.Message(ctx, actor, t.ConversationID, t.AnswerSeq)
	if fault.Is(err, fault.NotFound) { // an actor that has left the conversation cannot read its messages
		return chat.Message{}, nil
	}
	return m, err
}
