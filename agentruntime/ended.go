package agentruntime

import (
	"context"

	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// notifyEnded notifies agents, until ctx ends, of their tasks that ended while nothing ran here for
// them.
func (w *Worker) notifyEnded(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-w.queue.ended:
			w.notifyAgent(ctx, t)
		}
	}
}

func (w *Worker) notifyAgent(ctx context.Context, t task.Task) {
	// The given task may have been read before its agent was called: read it again.
	now, err := w.store.TaskByID(ctx, t.ID)
	switch {
	case err == nil:
		t = now
	// NotFound means that the conversation was deleted with its tasks: t as given is the newest state.
	case !fault.Is(err, fault.NotFound):
		w.log.Warn("read an ended task", "task", t.ID, "error", err)
	}
	if len(t.Checkpoint) == 0 {
		return
	}
	a, secret, err := w.hub.Open(ctx, t.AgentID)
	if err != nil {
		return // The agent was deleted: no program is left to notify.
	}
	if s, ok := w.drivers[a.Kind].(task.Stopper); ok {
		s.Stop(ctx, task.Call{TaskID: t.ID, ConversationID: t.ConversationID, Agent: agentTarget(a, secret),
			Caller: task.Caller{Kind: t.CallerKind, Handle: t.CallerHandle, ID: t.CallerID}, Checkpoint: t.Checkpoint})
	}
}
