package chat

import (
	"context"
	"sync"

	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// stopWhere cancels the unfinished tasks of a conversation that which selects. The change that led to it
// is stored already, so errors are only logged.
func (s *Service) stopWhere(ctx context.Context, id, reason string, which func(task.Task) bool) {
	ctx = context.WithoutCancel(ctx)
	list, err := s.store.ActiveTasks(ctx, id, "")
	if err != nil {
		s.cfg.Log.Error("find work to stop", "conversation", id, "error", err)
		return
	}
	var all sync.WaitGroup // The end of one is awaited after all are stopped.
	for _, t := range list {
		if which(t) {
			all.Go(func() {
				if err := s.stopTask(ctx, t, reason); err != nil {
					s.cfg.Log.Error("stop a task", "task", t.ID, "error", err)
				}
			})
		}
	}
	all.Wait()
}

// stopTask cancels one task: the runtime stops it if it is running there, otherwise its final state is stored here. It
// returns after the final state is stored.
func (s *Service) stopTask(ctx context.Context, t task.Task, reason string) error {
	if s.runner.Stop(t.ID) {
		return s.runner.AwaitStop(ctx, t.ID)
	}
	err := s.EndTask(ctx, t, task.Result{State: task.Canceled, Reason: reason})
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
		return nil // the task has ended, or its conversation is gone
	}
	return err
}
