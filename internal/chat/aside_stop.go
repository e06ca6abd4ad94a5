package chat

import (
	"context"

	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// stopAsked cancels the questions that the agent of an ended task still waits for. Questions of a task that is
// completed are left alone: its agent had their answers, or stopped them itself. It does not wait for running ones.
func (d *Asides) stopAsked(ctx context.Context, t task.Task) {
	if !t.State.Terminal() || t.State == task.Completed {
		return
	}
	ctx = context.WithoutCancel(ctx)
	s := d.svc
	list, err := s.store.Asides(ctx, t)
	if err != nil {
		s.cfg.Log.Error("find questions to stop", "task", t.ID, "error", err)
		return
	}
	for _, k := range list {
		if err := d.stop(ctx, k); err != nil {
			s.cfg.Log.Error("stop a question", "task", k.ID, "error", err)
		}
	}
}

func (d *Asides) stop(ctx context.Context, t task.Task) error {
	s := d.svc
	if s.runner.Stop(t.ID) {
		return nil
	}
	err := s.EndTask(ctx, t, task.Result{State: task.Canceled, Reason: "Stopped with the agent that asked."})
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
		return nil // It has ended, or its conversation is gone.
	}
	return err
}

// EndOrphans cancels the questions of tasks that have ended, before they run again. A portal that is killed while a
// task ends leaves such questions. The runtime calls it at its start.
func (d *Asides) EndOrphans(ctx context.Context) error {
	list, err := d.svc.store.Orphans(ctx)
	for _, k := range list {
		if err := d.stop(ctx, k); err != nil {
			return err
		}
	}
	return err
}

// checkAsker stops a question that was stored while its asking task ended.
func (d *Asides) checkAsker(ctx context.Context, asker string, asked task.Task) error {
	t, err := d.svc.store.TaskByID(ctx, asker)
	if err == nil && !t.State.Terminal() {
		return nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if err := d.stop(ctx, asked); err != nil {
		return err
	}
	return fault.New(fault.Conflict, "The question was stopped: the work for which it was asked has ended.")
}
