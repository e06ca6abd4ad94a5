package agentruntime

import (
	"context"

	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// tell tells agents, until ctx ends, of tasks of theirs that were ended while
// nothing of them ran here.
func (w *Worker) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-w.queue.ended:
			w.tellOne(ctx, t)
		}
	}
}

func (w *Worker) tellOne(ctx context.Context, t task.Task) {
	// Whoever ended it may have read it before its agent was asked.
	now, err := w.store.TaskByID(ctx, t.ID)
	switch {
	case err == nil:
		t = now
	case !fault.Is(err, fault.NotFound): // its conversation is gone
		w.log.Warn("read an ended task", "task", t.ID, "error", err)
	}
	if len(t.Checkpoint) == 0 {
		return
	}
	a, secret, err := w.hub.Open(ctx, t.AgentID)
	if err != nil {
		return // there is nobody to tell
	}
	if s, ok := w.drivers[a.Kind].(task.Stopper); ok {
		s.Stop(ctx, task.Call{TaskID: t.ID, ConversationID: t.ConversationID, Agent: target(a, secret),
			Caller: task.Caller{Kind: t.CallerKind, Handle: t.CallerHandle, ID: t.CallerID}, Checkpoint: t.Checkpoint})
	}
}
