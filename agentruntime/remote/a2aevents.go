package remote

import (
	"context"
	"fmt"
	"slices"

	"agentsite/internal/a2a"
	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// handleEvent takes one event and stores the task's id before it shows any content. Events of other
// tasks are ignored. It returns errSettled when the outcome is known.
func (r *run) handleEvent(ctx context.Context, ev a2a.Event) error {
	if r.events++; r.events > maxEvents {
		return &trouble{fmt.Sprintf("The agent sent more than %d events and was stopped.", maxEvents)}
	}
	taskID, contextID := ev.IDs()
	if !r.adopted && (taskID != "" || r.at.Task == "" && ev.Message != nil) {
		// The first event names the task of this call; an answer that is a message alone has none.
		r.adopted = true
		r.at = checkpoint{Task: taskID, Context: contextID}
	} else if taskID != "" && taskID != r.at.Task {
		r.d.cfg.Log.Info("event of a foreign task ignored", "task_id", r.call.TaskID)
		return nil
	}
	if r.at.Context == "" {
		r.at.Context = contextID
	}
	if err := r.saveCheckpoint(ctx); err != nil {
		return err
	}
	if c := ev.Cost(); c != nil {
		r.cost = c
	}
	if r.way.files != nil {
		ev = r.fetchFiles(ctx, ev)
	}
	var err error
	switch {
	case ev.Message != nil:
		err = r.answer.addMessage(ev.Message.Parts)
		if err == nil {
			return r.setOutcome(a2a.Status{State: task.Completed})
		}
	case ev.Artifact != nil:
		err = r.answer.applyUpdate(ev.Artifact)
	case ev.Status != nil:
		return r.handleStatus(ev.Status.Status)
	case ev.Task != nil:
		if err = r.answer.setSnapshot(ev.Task.Artifacts); err == nil {
			r.answer.keepLast(ev.Task.History)
			return r.handleStatus(ev.Task.Status)
		}
	}
	return err
}

// saveCheckpoint stores the state of the task if it changed, and returns once it is on disk.
func (r *run) saveCheckpoint(ctx context.Context) error {
	if r.at == r.saved {
		return nil
	}
	if err := r.keep.SaveRun(ctx, r.at); err != nil {
		return fault.Wrap(fault.Internal, err, "The portal could not store where the task stands.")
	}
	r.saved = r.at
	return nil
}

// fetchFiles returns a copy of an event in which the files of the remote portal are inline where they
// could be downloaded, because their addresses expire.
func (r *run) fetchFiles(ctx context.Context, ev a2a.Event) a2a.Event {
	list := func(in []task.Artifact) []task.Artifact {
		out := slices.Clone(in)
		for i := range out {
			out[i].Parts = r.way.files.inlineFiles(ctx, out[i].Parts)
		}
		return out
	}
	switch {
	case ev.Message != nil:
		m := *ev.Message
		m.Parts = r.way.files.inlineFiles(ctx, m.Parts)
		ev.Message = &m
	case ev.Artifact != nil:
		u := *ev.Artifact
		u.Artifact.Parts = r.way.files.inlineFiles(ctx, u.Artifact.Parts)
		ev.Artifact = &u
	case ev.Task != nil:
		t := *ev.Task
		t.Artifacts = list(t.Artifacts)
		ev.Task = &t
	}
	return ev
}

func (r *run) handleStatus(s a2a.Status) error {
	if s.State.Terminal() || s.State == task.InputRequired || s.State == task.AuthRequired {
		return r.setOutcome(s)
	}
	if s.Message != nil && s.Message.FromAgent {
		r.answer.showNote(s.Message.Parts)
	}
	return nil
}

// setOutcome sets the result of the run from the final status, or from one that asks for input, and
// returns errSettled. A remote cancellation counts as failed, because it was not asked for here.
func (r *run) setOutcome(s a2a.Status) error {
	said := ""
	if s.Message != nil {
		said = a2a.Line(task.PlainText(s.Message.Parts), 500)
	}
	// The message of a failed task is the reason, not the answer.
	if s.Message != nil && (s.State == task.Completed || !s.State.Terminal()) {
		if err := r.answer.setFinal(s.Message.Parts); err != nil {
			return err
		}
	}
	if s.State == task.Completed {
		if err := r.answer.useFallback(); err != nil {
			return err
		}
	}
	reason := joinReason
	// Another portal gives a whole sentence, so no words of this portal are put before it.
	if r.way.peer && said != "" {
		reason = func(_, said string) string { return said }
	}
	r.settled = true
	r.result = task.Result{State: s.State, Parts: r.answer.finishParts()}
	if r.cost != nil && s.State.Terminal() && len(r.result.Parts) > 0 {
		r.result.Parts[0] = r.result.Parts[0].WithClaim(*r.cost)
	}
	switch s.State {
	case task.Completed:
		if len(r.result.Parts) == 0 {
			r.result.Reason = "The agent finished without an answer."
		}
	case task.Canceled:
		r.result.State = task.Failed
		r.result.Reason = reason("The agent stopped the task by itself", said)
	case task.Failed:
		r.result.Reason = reason("The agent reports that it failed", said)
	case task.Rejected:
		r.result.Reason = reason("The agent rejected the task", said)
	case task.InputRequired:
		r.result.Reason = reason("The agent needs an answer to go on", said)
	case task.AuthRequired:
		r.result.Reason = reason("The agent needs an authorization to go on", said)
	}
	return errSettled
}

func joinReason(ours, said string) string {
	if said == "" {
		return ours + "."
	}
	return ours + ": " + said
}
