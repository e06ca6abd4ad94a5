package agentruntime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
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

// runAttempt calls the driver in a goroutine of its own, so that a driver that does not return cannot
// block the task.
func (w *Worker) runAttempt(ctx context.Context, s *sink) (task.Result, error) {
	t := s.t
	var call task.Call
	var driver task.Agent
	var own bool
	err := whileStoreFails(ctx, func() (err error) {
		call, driver, own, err = w.buildCall(ctx, t)
		return err
	})
	if h, ok := errors.AsType[errHalted](err); ok {
		return task.Result{State: task.Rejected, Reason: string(h)}, nil
	}
	if err != nil {
		return task.Result{}, err
	}
	// A program that is connected works on through restarts; its driver bounds how often it gets the task.
	if t.Attempt >= maxAttempts && call.Agent.Kind != string(hub.Link) {
		return task.Result{State: task.Failed,
			Reason: "The portal was restarted several times while this was worked on. Ask again."}, nil
	}
	// Agents of other portals do not count, because their own portal probes them.
	s.elsewhere = call.Agent.Kind != string(hub.Builtin) && call.Agent.Kind != string(hub.Link) &&
		call.Agent.Kind != string(hub.Peer) && call.Agent.Kind != string(hub.Wasm)
	if own {
		traces := &tracer{secret: call.Agent.Secret}
		defer func() { w.hub.Usage.AddTraces(context.WithoutCancel(ctx), t.AgentID, t.ID, traces.allTraces()) }()
		ctx = task.WithTrace(ctx, traces)
	}
	ctx = task.WithBehalf(ctx, call.OnBehalfOf())
	if call.Agent.Kind == string(hub.Peer) {
		s.peer = new(contact)
		ctx = s.peer.traceRequests(ctx)
	}
	type outcome struct {
		result task.Result
		err    error
	}
	// The attempt counts from here: a task that waits for its place takes none.
	err = whileStoreFails(ctx, func() (err error) {
		s.t, err = w.store.Begin(ctx, t.ID, w.fence)
		return err
	})
	if err != nil {
		s.t = t
		if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
			return task.Result{}, errNotBegun
		}
		return task.Result{}, err
	}
	call.Attempt = s.t.Attempt
	w.chat.Working(s.t)
	done := make(chan outcome, 1)
	s.run.begun = true
	go func() {
		defer s.run.endDriver()
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("driver %s panicked: %v\n%s", call.Agent.Kind, p, debug.Stack())
			}
			done <- o
		}()
		o.result, o.err = driver.Run(ctx, call, s)
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		w.log.Warn("driver did not let go in time", "kind", call.Agent.Kind, "task", t.ID)
	}
	return task.Result{}, ctx.Err()
}

// Halts decides which agents take no work; halt.Service implements it.
type Halts interface {
	// ReasonOf returns the reason as a sentence, "" for an agent that works. provider is the host that runs it.
	ReasonOf(a hub.Agent, provider string) string
}

// errHalted is the error of a call of an agent that takes no work: the reason as a sentence.
type errHalted string

func (e errHalted) Error() string { return string(e) }

// buildCall collects the data that the driver may see. mine is true when the caller owns the agent,
// which allows traces of the call. It returns a NotFound fault for a deleted agent and an Unavailable
// one for a kind without a driver, and errHalted for an agent that takes no work.
func (w *Worker) buildCall(ctx context.Context, t task.Task) (call task.Call, driver task.Agent, mine bool, err error) {
	a, secret, err := w.hub.Open(ctx, t.AgentID)
	if fault.Is(err, fault.NotFound) {
		return call, nil, false, fault.New(fault.NotFound, "%s is not here any more.", t.AgentHandle)
	}
	if err != nil {
		return call, nil, false, err
	}
	if why := w.halts.ReasonOf(a, w.hub.TextGoesTo(a)); why != "" {
		return call, nil, false, errHalted(why)
	}
	driver = w.drivers[a.Kind]
	if driver == nil {
		return call, nil, false, fault.New(fault.Unavailable, "This portal cannot run agents of kind %q.", a.Kind)
	}
	h, err := w.chat.History(ctx, t)
	if err != nil {
		return call, nil, false, err
	}
	call = task.Call{
		TaskID: t.ID, ConversationID: t.ConversationID, MessageID: h.Ask.ID, MessageSeq: t.MessageSeq,
		Attempt:    t.Attempt,
		Checkpoint: t.Checkpoint,
		Agent:      agentTarget(a, secret),
		Caller:     task.Caller{Kind: t.CallerKind, Handle: t.CallerHandle, ID: t.CallerID},
		Speaker:    task.Speaker{Kind: h.Ask.Sender.Kind, Handle: h.Ask.Sender.Handle},
		Parts:      withoutOwnMention(h.Ask.Parts, t.AgentHandle),
		Via:        t.Via, Budget: t.Budget, Relayed: t.Face == chat.FaceRelay,
		Files: w.chat.Files.ForTask(t),
	}
	if h.Ask.Sender.Kind != "agent" {
		call.ClientID = storedClientID{w.chat, t}
	}
	// A new id for a regenerated answer, because some agents treat a repeated message id as the same
	// request.
	if t.Replaces > 0 {
		call.MessageID = t.ID
	}
	if a.Kind == hub.Peer {
		if call.Budget, err = w.chat.Allowance(ctx, t); err != nil {
			return call, nil, false, err
		}
	}
	for _, m := range h.Earlier {
		agent := m.Sender.Kind == "agent"
		call.History = append(call.History, task.Turn{Seq: m.Seq, Mine: agent && m.Sender.ID == a.ID, Asker: !agent &&
			m.Sender.ID == t.CallerID,
			Speaker: m.Sender.Handle, Kind: m.Sender.Kind, Parts: m.Parts})
	}
	// The previous checkpoint gives access to the agent's memory of the conversation. Without a limit
	// to one caller ("") any task of the conversation counts.
	whose := ""
	if h.Asker.FromSeq > 0 {
		whose = t.CallerID // The memory may contain messages from before the caller joined.
	}
	if chat.Share(t.Share) == chat.ShareNothing {
		return call, driver, callerOwns(a, t), nil
	}
	call.Scope = fmt.Sprintf("%s/%d", t.Share, h.Asker.FromSeq)
	if call.Previous, err = w.store.LastCheckpoint(ctx, t.ConversationID, t.AgentID, whose, t.ID); err != nil {
		return call, nil, false, err
	}
	return call, driver, callerOwns(a, t), nil
}

// callerOwns reports whether the caller is the owner or a co-owner of the agent; guests never are.
func callerOwns(a hub.Agent, t task.Task) bool {
	return t.CallerID != "" && (t.CallerID == a.OwnerID || slices.Contains(a.CoOwnerIDs, t.CallerID))
}

// checkResult makes any result of a driver valid for storage: an unknown state and an answer over the
// size limits become state failed, the latter with the parts that fit. An answer that stands as data and as text stays
// once.
func checkResult(r task.Result) task.Result {
	switch r.State {
	case task.Completed, task.Failed, task.Rejected, task.InputRequired, task.AuthRequired, task.Canceled:
	default:
		r.State, r.Reason = task.Failed, "The agent ended without an outcome."
	}
	size := 0
	for i, p := range r.Parts { // Files count by their URL only; their contents are bounded where they are stored.
		size += len(p.Text) + len(p.Data) + len(p.URL)
		if size > 8*chat.MaxAnswerBytes || i >= chat.MaxParts {
			r.Parts = r.Parts[:i]
			r.State, r.Reason = task.Failed, "The answer was too large and was cut."
			break
		}
	}
	r.Parts = task.DropRepeats(slices.Clone(r.Parts))
	return r
}

// cutToBudget cuts an answer to the bytes that the budget of the calling portal allows and marks it as
// failed. A budget that is not set allows any size.
func cutToBudget(b task.Budget, r task.Result) task.Result {
	if !b.IsSet() {
		return r
	}
	left := b.Bytes
	for i, p := range r.Parts {
		if left -= int64(len(p.Text) + len(p.Data)); left < 0 {
			r.Parts = r.Parts[:i:i]
			if p.Text != "" {
				r.Parts = append(r.Parts, task.TextPart(strings.ToValidUTF8(p.Text[:int64(len(p.Text))+left], "")))
			}
			r.State, r.Reason = task.Failed, "The answer is longer than its caller allows, and was cut."
			break
		}
	}
	return r
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
