// Package agentruntime runs agents: it takes submitted tasks from their durable queue, passes each to
// the driver of its agent's kind, and records exactly one outcome. Queue is created before the
// services, because they wake it; Worker after them, because it calls them. It does not depend on HTTP
// or pages. The drivers of the kinds are in the subpackages.
package agentruntime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentsite/internal/fault"
	"agentsite/internal/halt"
	"agentsite/internal/meter"
	"agentsite/internal/scheduler"
	"agentsite/internal/task"
)

var _ task.Runner = (*Queue)(nil)

// Queue connects the services and the worker: services signal that tasks wait and ask whether more may,
// and it holds the plan of the waiting tasks and those that run in this process. The tasks themselves are
// in the database.
type Queue struct {
	wake    chan struct{}  // has capacity 1, because one wake-up stands for any number of waiting tasks
	ended   chan task.Task // tasks that were not running here when they ended
	limits  scheduler.Limits
	refused *prometheus.CounterVec

	mu        sync.Mutex // guards the fields below
	running   map[string]runningTask
	ends      map[string]chan struct{} // closed when the outcome of the newest run of a task is stored
	plan      *scheduler.Scheduler
	submitted bool // tasks may wait in the database that are not in plan
}

// maxEnded bounds the ended tasks that wait for the notification of their agents. Further agents are not
// notified, because a slow portal must not delay the others.
const maxEnded = 1024

// NewQueue returns an empty queue. It needs no Close: the tasks themselves are in the database.
func NewQueue(l scheduler.Limits) *Queue {
	var names []string
	for _, c := range scheduler.Classes() {
		names = append(names, c.String())
	}
	return &Queue{wake: make(chan struct{}, 1), ended: make(chan task.Task, maxEnded), limits: l,
		running: make(map[string]runningTask), ends: make(map[string]chan struct{}), plan: scheduler.New(l),
		refused: meter.NewCounters("agentsite_tasks_refused_total", "Tasks that were not queued because too many waited, by the "+
			"kind of their callers.", "class", names...)}
}

// Wake implements task.Runner. It never blocks, because a wake-up that is already pending covers this
// one.
func (q *Queue) Wake() {
	q.mu.Lock()
	q.submitted = true
	q.mu.Unlock()
	q.signal()
}

// signal makes the worker decide again which tasks start.
func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Admit reports whether a task may be queued, and if not, about how long the caller should wait before
// the next attempt. It counts a refusal. An admitted task counts as waiting until it is stored and read
// from the database, or until Withdraw.
func (q *Queue) Admit(j scheduler.Job) (wait time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if wait, ok = q.plan.Admit(j); ok {
		q.plan.Reserve(j, now)
		return 0, true
	}
	q.plan.Refuse(j, now)
	q.refused.WithLabelValues(j.Class.String()).Inc()
	return wait, false
}

// Withdraw ends the admission of tasks that were not stored. Other ids change nothing.
func (q *Queue) Withdraw(taskIDs ...string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range taskIDs {
		q.plan.Release(id)
	}
}

// Snapshot returns the state of the queue for operators.
func (q *Queue) Snapshot() scheduler.Snapshot {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.plan.Snapshot(time.Now())
}

// AgentState returns the number of tasks of an agent that run and wait.
func (q *Queue) AgentState(agentID string) scheduler.PlaceState {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.plan.AgentState(agentID)
}

// ListCollectors returns the metrics of the queue, to be registered by the caller.
func (q *Queue) ListCollectors() []prometheus.Collector {
	return []prometheus.Collector{q.refused, queueSizes{q}}
}

// runningTask is a task that runs in this process.
type runningTask struct {
	job    scheduler.Job
	cancel context.CancelCauseFunc
	ended  chan struct{} // see Queue.ends
}

// errStopped is the cause of a task's context when the task was stopped, with the reason as a sentence.
type errStopped struct{ reason string }

func (errStopped) Error() string { return "stopped" }

// stoppedBy returns the reason why the task of a context was stopped; ok is false if it was not.
func stoppedBy(ctx context.Context) (reason string, ok bool) {
	err, ok := errors.AsType[errStopped](context.Cause(ctx))
	return err.reason, ok
}

// Stop implements task.Runner. It cancels the task's context with errStopped and does not wait until the
// task has ended. It cancels before removeRunning can run, because runTask looks for a stop only after that.
func (q *Queue) Stop(taskID string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t, ok := q.running[taskID]
	if ok {
		t.cancel(errStopped{stoppedReason})
	}
	return ok
}

// StopTasks implements halt.Tasks. It does not wait until the tasks have ended.
func (q *Queue) StopTasks(s halt.Subject) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.running {
		keys := map[halt.Kind]string{halt.Agent: t.job.Agent, halt.Owner: t.job.Owner,
			halt.Provider: t.job.Provider}
		if keys[s.Kind] == s.Key {
			t.cancel(errStopped{haltedReason})
		}
	}
}

const haltedReason = "The agent was paused before it had finished."

// WaitOf implements task.Runner.
func (q *Queue) WaitOf(taskID string) (task.Wait, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, wait, ok := q.plan.Turn(taskID)
	return task.Wait{Before: before, Left: wait}, ok
}

// Ended implements task.Runner. It never blocks: beyond maxEnded waiting tasks the notification is
// dropped.
func (q *Queue) Ended(t task.Task) {
	q.mu.Lock()
	removed := q.plan.Remove(t.ID)
	q.mu.Unlock()
	if removed {
		q.signal()
	}
	select {
	case q.ended <- t:
	default:
	}
}

// addRunning records a task as running here; false if it is running already.
func (q *Queue) addRunning(id string, t runningTask) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.running[id]; ok {
		return false
	}
	q.running[id], q.ends[id] = t, t.ended
	return true
}

func (q *Queue) removeRunning(id string) {
	q.mu.Lock()
	delete(q.running, id)
	q.mu.Unlock()
}

// markEnded ends the waiting of AwaitStop for a run.
func (q *Queue) markEnded(id string, t runningTask) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ends[id] == t.ended {
		delete(q.ends, id)
	}
	close(t.ended)
}

// stopTime bounds AwaitStop. A driver returns within stopGrace, so only a store that does not answer takes longer.
const stopTime = 5 * time.Second

// AwaitStop implements task.Runner.
func (q *Queue) AwaitStop(ctx context.Context, taskID string) error {
	q.mu.Lock()
	ended, ok := q.ends[taskID]
	q.mu.Unlock()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Unavailable, ctx.Err(),
			"The agent was stopped, but the portal could not store that yet. Stop it again.")
	}
}

// resetPlan drops all waiting and running tasks from the plan, for a worker that begins to run.
func (q *Queue) resetPlan() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.plan, q.submitted = scheduler.New(q.limits), true
}

// takeSubmitted reports whether tasks were submitted since the last call.
func (q *Queue) takeSubmitted() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.submitted
	q.submitted = false
	return was
}

// keepSubmitted undoes takeSubmitted after a read that failed. It does not wake the worker.
func (q *Queue) keepSubmitted() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.submitted = true
}

// addJob adds a task to the plan; false if a task of the same id waits or runs.
func (q *Queue) addJob(j scheduler.Job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.plan.Add(j)
}

// nextJob returns the task that starts now; false if none may.
func (q *Queue) nextJob() (scheduler.Job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.plan.Next(time.Now())
}

// startJob starts a task that was not queued; false if it would have to wait. The caller must call
// freeJob.
func (q *Queue) startJob(j scheduler.Job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.plan.Start(j, time.Now())
}

// freeJob ends a task of the plan.
func (q *Queue) freeJob(id string) {
	q.mu.Lock()
	q.plan.Free(id, time.Now())
	q.mu.Unlock()
	q.signal()
}

// pauseJob frees the places of a task while it waits for another one; resumeJob takes them again.
func (q *Queue) pauseJob(id string) {
	q.mu.Lock()
	q.plan.Pause(id, time.Now())
	q.mu.Unlock()
	q.signal()
}

func (q *Queue) resumeJob(id string) {
	q.mu.Lock()
	q.plan.Resume(id, time.Now())
	q.mu.Unlock()
}

// abandonJob frees the portal's place of a task that has ended while its driver still runs.
func (q *Queue) abandonJob(id string) {
	q.mu.Lock()
	q.plan.Abandon(id, time.Now())
	q.mu.Unlock()
	q.signal()
}

// queueSizes are the metrics of tasks that run and wait, read at each request.
type queueSizes struct{ queue *Queue }

var tasksHeld = prometheus.NewDesc("agentsite_tasks_held", "Tasks that run or wait for a place, by the kind of their callers.",
	[]string{"class", "state"}, nil)

// Describe implements prometheus.Collector.
func (s queueSizes) Describe(out chan<- *prometheus.Desc) { out <- tasksHeld }

// Collect implements prometheus.Collector.
func (s queueSizes) Collect(out chan<- prometheus.Metric) {
	for _, c := range s.queue.Snapshot().Classes {
		name := c.Class.String()
		out <- prometheus.MustNewConstMetric(tasksHeld, prometheus.GaugeValue, float64(c.Running), name, "running")
		out <- prometheus.MustNewConstMetric(tasksHeld, prometheus.GaugeValue, float64(c.Waiting), name, "waiting")
	}
}
