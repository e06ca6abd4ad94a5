package agentruntime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/scheduler"
	"agentsite/internal/task"
)

const (
	// maxRun bounds one attempt, so that a driver that never returns does not hold a slot for ever.
	maxRun = 15 * time.Minute
	// maxAttempts is how often a task is started before it fails. A restart of the portal may interrupt
	// the first attempt, but a task that crashes the process must not do so for ever.
	maxAttempts = 3
	// stopGrace is how long a stopped driver may take to return before its task is ended without it. The
	// outcome is then stored, and the place of the task is free within 500 ms.
	stopGrace = 450 * time.Millisecond
)

// Store is the worker's port to the database. TaskByID returns a NotFound fault for a task of
// a deleted conversation.
type Store interface {
	task.Queue
	TaskByID(ctx context.Context, id string) (task.Task, error)
}

// Worker dispatches tasks. Create it with New and keep Run running.
type Worker struct {
	queue   *Queue
	store   Store
	chat    *chat.Service
	hub     *hub.Service
	halts   Halts
	calls   CallObserver
	drivers map[hub.Kind]task.Agent
	log     *slog.Logger
	hosts   hosts

	// Run sets these fields. fence is the number of this process, position that of the last task that was
	// read from the queue.
	fence, position int64
}

// CallObserver records the liveness of agents from the results of real calls, so that busy agents need
// no probe. reason is empty if the agent was reached; took is the duration of the call.
type CallObserver interface {
	Called(ctx context.Context, agentID string, reached bool, reason string, took time.Duration)
}

// New returns a worker that runs agents of the kinds in drivers. A task of another kind fails as
// Unavailable.
func New(queue *Queue, store Store, chats *chat.Service, agents *hub.Service, halts Halts, calls CallObserver,
	drivers map[hub.Kind]task.Agent, log *slog.Logger) *Worker {
	return &Worker{queue: queue, store: store, chat: chats, hub: agents, halts: halts, calls: calls,
		drivers: drivers, log: log, hosts: hosts{agents: agents}}
}

// Run dispatches until ctx ends, then stops the running tasks, lets them record their state, and
// returns when all have. Work interrupted by the end of ctx stays in the queue for the next start.
func (w *Worker) Run(ctx context.Context) error {
	fence, err := w.store.NextFence(ctx)
	if ctx.Err() != nil {
		return nil // The portal stops before a task ran, which is no error.
	} else if err != nil {
		return fmt.Errorf("number this start: %w", err)
	}
	w.fence = fence
	if err := w.chat.Asides.EndOrphans(ctx); err != nil && ctx.Err() == nil {
		w.log.Error("end the questions of ended tasks", "error", err)
	}
	w.queue.resetPlan() // The queue may hold tasks that the last run of the portal left.
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { w.notifyEnded(ctx) })
	wg.Go(func() { w.updateWaits(ctx) })
	left := true // the tasks that the last run of the portal left are not read yet
	w.queue.Wake()
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.queue.wake:
		case <-retry:
			retry = nil
		}
		if w.queue.takeSubmitted() {
			n, err := w.loadQueue(ctx, left)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				w.log.Error("read the queue of tasks", "error", err)
				w.queue.keepSubmitted() // a wake-up for another reason must not hide that tasks are unread
				retry = time.After(time.Second)
			default:
				left = false
				w.log.Debug("tasks queued", "tasks", n)
			}
		}
		for {
			j, ok := w.queue.nextJob()
			if !ok {
				break
			}
			wg.Go(func() { w.runTask(ctx, j) })
		}
	}
}

// runTask runs one task until its outcome is stored, or leaves it in the queue if ctx ends because the
// portal stops.
func (w *Worker) runTask(ctx context.Context, j scheduler.Job) {
	r := &run{queue: w.queue, jobID: j.ID}
	defer r.endTask()
	id := taskOf(j)
	tctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running := runningTask{j, cancel, make(chan struct{})}
	if !w.queue.addRunning(id, running) {
		return
	}
	s := &sink{w: w, run: r, t: task.Task{ID: id}}
	stopped := func() bool {
		_, ok := stoppedBy(tctx)
		return ok
	}
	heard := false // true once the stop has become the task's result; otherwise endStopped ends the task
	defer func() {
		w.queue.removeRunning(id)
		if stopped() && !heard {
			w.endStopped(ctx, s.t, s)
		}
		w.queue.markEnded(id, running)
	}()
	// A task that was stopped before addRunning has ended in the store; later stops cancel tctx.
	t, ok := w.readTask(tctx, id)
	if !ok {
		return
	}
	s.t = t
	most := maxRun
	if t.Budget.IsSet() {
		most = min(most, t.Budget.Until.Sub(clock.Now()))
	}
	rctx, stop := context.WithTimeout(tctx, most)
	defer stop()
	began := time.Now()
	s.ctx = rctx
	result, err := w.runAttempt(rctx, s)
	t = s.t
	if errors.Is(err, errNotBegun) && !stopped() {
		return
	}
	parts, artifacts := s.closeSink()
	switch {
	case stopped():
		heard = true
		why, _ := stoppedBy(tctx)
		result = task.Result{State: task.Canceled, Parts: parts, Reason: why}
		if !r.begun {
			w.queue.Ended(t) // The driver was never called for this attempt, so notify the agent that the task ended.
		}
	case ctx.Err() != nil:
		return // the portal stops: the task stays in the queue
	case errors.Is(context.Cause(rctx), context.DeadlineExceeded):
		result = task.Result{State: task.Failed, Parts: parts,
			Reason: fmt.Sprintf("The agent did not finish within %s.", max(most.Round(time.Second), 0))}
	case err != nil:
		f := fault.As(err)
		result = task.Result{State: task.Failed, Parts: parts, Reason: f.Safe}
		if f.Kind == fault.Internal {
			w.log.Error("task failed", "task", t.ID, "agent", t.AgentID, "error", err)
		}
	}
	if s.elsewhere {
		w.reportCall(ctx, t, result, time.Since(began))
	}
	if s.peer != nil {
		w.seenElsewhere(ctx, t, result, s.peer)
	}
	t.Artifacts = artifacts
	w.finishTask(ctx, t, checkResult(cutToBudget(t.Budget, result)))
	w.log.Debug("task done", "task", t.ID, "state", string(result.State), "took", time.Since(began))
}

// The pauses before the store is asked again, which double from the first to the last.
const firstWait, lastWait = 50 * time.Millisecond, 5 * time.Second

// pause waits before another attempt and returns the next pause. It ends early with ctx.
func pause(ctx context.Context, wait time.Duration) time.Duration {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return min(2*wait, lastWait)
}

// whileStoreFails runs fn again until it succeeds, fails with an error that does not pass by itself, or ctx
// ends. It returns the last error.
func whileStoreFails(ctx context.Context, fn func() error) error {
	for wait := firstWait; ; {
		err := fn()
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Kind != fault.Unavailable || f.RetryAfter == 0 || ctx.Err() != nil {
			return err
		}
		wait = pause(ctx, wait)
	}
}

// readTask returns a task that is to run. It is false for one that has ended or was deleted; its row then
// leaves the queue. It retries until the store answers or ctx ends.
func (w *Worker) readTask(ctx context.Context, id string) (task.Task, bool) {
	for wait := firstWait; ; wait = pause(ctx, wait) {
		t, err := w.store.TaskByID(ctx, id)
		switch {
		case err == nil && !t.State.Terminal():
			return t, true
		case err == nil || fault.Is(err, fault.NotFound):
			if _, err := w.store.Begin(ctx, id, w.fence); !fault.Is(err, fault.Conflict) && ctx.Err() == nil {
				w.log.Error("drop an ended task from the queue", "task", id, "error", err)
			}
			return t, false
		case ctx.Err() != nil:
			return t, false
		case wait == lastWait:
			w.log.Error("task not read yet", "task", id, "error", err)
		}
	}
}

// errNotBegun is the result of an attempt whose task ended or was deleted before its driver was called.
var errNotBegun = errors.New("not begun")

const stoppedReason = "Stopped before it was finished."

// endStopped ends a task that was stopped after its agent returned and before it left the queue: a task
// that now waits for input, or that was deleted with its conversation.
func (w *Worker) endStopped(ctx context.Context, t task.Task, s *sink) {
	ctx = context.WithoutCancel(ctx)
	now, err := w.store.TaskByID(ctx, t.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		t.Checkpoint = s.lastCheckpoint()
		w.queue.Ended(t)
	case err != nil:
		w.log.Error("read a stopped task", "task", t.ID, "error", err)
	case !now.State.Terminal():
		err := w.chat.EndTask(ctx, now, task.Result{State: task.Canceled, Reason: stoppedReason})
		if err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) {
			w.log.Error("end a stopped task", "task", t.ID, "error", err)
		}
	}
}

// reportCall reports the result of the call to the directory: an answer of any kind proves that the
// agent is alive, any other result is a reason to probe it.
func (w *Worker) reportCall(ctx context.Context, t task.Task, r task.Result, took time.Duration) {
	switch r.State {
	case task.Canceled:
	case task.Failed:
		w.calls.Called(ctx, t.AgentID, false, r.Reason, took)
	default:
		w.calls.Called(ctx, t.AgentID, true, "", took)
	}
}

// finishTask records the outcome. It retries until the store takes it, because a known outcome must not be
// lost. When the portal stops, it gives up at the longest pause; the task is then done again after the start.
func (w *Worker) finishTask(ctx context.Context, t task.Task, r task.Result) {
	stopping := ctx
	ctx = context.WithoutCancel(ctx)
	for wait := firstWait; ; wait = pause(ctx, wait) {
		err := w.chat.Finish(ctx, t, r)
		switch {
		case err == nil:
			return
		case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
			return // The task has ended by another way, such as a stop, or its conversation was deleted.
		case fault.Is(err, fault.Invalid):
			// The store refuses the content: end the task without it.
			r = task.Result{State: task.Failed, Reason: "The answer could not be stored: it is too large."}
			t.Artifacts = nil
		}
		if wait == lastWait {
			w.log.Error("outcome not stored yet", "task", t.ID, "error", err)
			if stopping.Err() != nil {
				return
			}
		}
	}
}

// storedClientID reads the id of the message that asked for a task from the transcript, only when a
// driver needs it. It implements task.ClientID.
type storedClientID struct {
	chat *chat.Service
	task task.Task
}

// ReadClientID implements task.ClientID. It costs a query of the database; "" means that the message has
// no client id.
func (c storedClientID) ReadClientID(ctx context.Context) (string, error) {
	return c.chat.AskedAs(ctx, c.task)
}
