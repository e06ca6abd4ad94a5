package a2a

import (
	"cmp"
	"context"

	"agentsite/internal/a2a"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
)

// pushDraft converts a push configuration of the protocol to the notify service's form.
func (q *methodCall) pushDraft(c a2a.PushConfig) notify.PushDraft {
	return notify.PushDraft{TaskID: c.TaskID, Name: c.ID, Version: q.write.Version, URL: c.URL, Token: c.Token,
		Scheme: c.Scheme, Credentials: c.Credentials}
}

func pushConfig(h notify.Hook) a2a.PushConfig {
	return a2a.PushConfig{TaskID: h.TaskID, ID: h.Name, URL: h.URL, Scheme: h.Scheme}
}

// ofTask returns the caller's actor, and an error unless the task belongs to the caller and this agent.
func (q *methodCall) ofTask(id string) (ident.Actor, error) {
	asker, err := q.handler.cfg.Callers.Identify(q.r, q.proven, id)
	if fault.Is(err, fault.NotFound) {
		err = errNoTask()
	}
	if err == nil {
		_, err = q.findTask(asker.Actor, id)
	}
	return asker.Actor, err
}

// createPush stores the push configuration of a task (§3.1.7).
func (q *methodCall) createPush() (any, error) {
	c, f := a2a.ReadPush(q.params, q.write.Version)
	if f != nil {
		return nil, f
	}
	actor, err := q.ofTask(c.TaskID)
	if err != nil {
		return nil, err
	}
	if q.write.Version == a2a.Version03 { // A2A 0.3 allows one configuration per task, so a new one replaces it
		c.ID = cmp.Or(c.ID, c.TaskID)
	}
	h, err := q.handler.cfg.Hooks.SetPush(q.r.Context(), actor, q.pushDraft(c))
	if err != nil {
		return nil, err
	}
	return q.write.Push(pushConfig(h)), nil
}

// errNoConfig is the failure for an unknown configuration: the protocol uses the code of an unknown
// task (§3.1.8).
func errNoConfig() error {
	return &a2a.Failure{Code: a2a.CodeTaskNotFound, Text: "The task has no such push notification config."}
}

// readPush answers with one push configuration of a task, or with all of them (§3.1.8, §3.1.9).
func (q *methodCall) readPush() (any, error) {
	in, f := a2a.ReadPushRequest(q.params, q.method, q.write.Version)
	if f != nil {
		return nil, f
	}
	actor, err := q.ofTask(in.TaskID)
	if err != nil {
		return nil, err
	}
	list, err := q.handler.cfg.Hooks.Pushes(q.r.Context(), actor, in.TaskID)
	if err != nil {
		return nil, err
	}
	out := make([]a2a.PushConfig, len(list))
	for i, h := range list {
		out[i] = pushConfig(h)
	}
	if q.method == a2a.ListPush {
		return q.write.Pushes(out), nil
	}
	for _, c := range out {
		if c.ID == in.ID || in.ID == "" {
			return q.write.Push(c), nil
		}
	}
	return nil, errNoConfig()
}

// deletePush deletes the push configuration of a task; an unknown one is not an error (§3.1.10).
func (q *methodCall) deletePush() (any, error) {
	in, f := a2a.ReadPushRequest(q.params, q.method, q.write.Version)
	if f != nil {
		return nil, f
	}
	actor, err := q.ofTask(in.TaskID)
	if err == nil {
		err = q.handler.cfg.Hooks.DropPush(q.r.Context(), actor, in.TaskID, in.ID)
	}
	if err != nil {
		return nil, err
	}
	return q.write.WriteEmpty(), nil
}

// Pushed implements notify.Pusher: it returns the notifications of a task for its caller. In 1.0
// these are the events that end a stream: each artifact, then the state. In 0.3 it is the whole
// task.
func (d *Handler) Pushed(ctx context.Context, actor ident.Actor, t task.Task, version string) ([]any, error) {
	w := a2a.Writer{Version: version}
	if version == a2a.Version03 {
		v, err := d.viewTask(ctx, actor, t, detail{artifacts: true})
		return []any{w.Task(v)}, err
	}
	v, err := d.viewTask(ctx, actor, t, detail{history: new(int), artifacts: t.State.Terminal()})
	if err != nil {
		return nil, err
	}
	var out []any
	for _, a := range v.Artifacts {
		out = append(out, w.Event(a2a.Event{Artifact: &a2a.ArtifactUpdate{TaskID: t.ID, ContextID: t.ConversationID,
			Artifact: a, Last: true}}))
	}
	return append(out, w.Event(a2a.Event{Status: &a2a.StatusUpdate{TaskID: t.ID, ContextID: t.ConversationID,
		Status: v.Status}})), nil
}
