// Package agentruntime runs agents: it takes submitted tasks from their durable queue, passes each to
// the driver of its agent's kind, and records exactly one outcome. Queue is created before the
// services, because they wake it; Worker after them, because it calls them. It does not depend on HTTP
// or pages. The drivers of the kinds are in the subpackages.
package agentruntime

import (
	"context"
	"sync"

	"agentsite/internal/task"
)

var _ task.Runner = (*Queue)(nil)

// Queue connects the services and the worker: services signal that tasks wait, and it holds the tasks
// that run in this process. The waiting tasks themselves are in the database.
type Queue struct {
	wake  chan struct{}  // has capacity 1, because one wake-up stands for any number of waiting tasks
	ended chan task.Task // tasks that were not running here when they ended

	mu      sync.Mutex
	running map[string]context.CancelCauseFunc
}

// maxEnded bounds the ended tasks that wait for the notification of their agents. Further agents are not
// notified, because a slow portal must not delay the others.
const maxEnded = 1024

// NewQueue returns an empty queue. It needs no Close: the tasks themselves are in the database.
func NewQueue() *Queue {
	return &Queue{wake: make(chan struct{}, 1), ended: make(chan task.Task, maxEnded),
		running: make(map[string]context.CancelCauseFunc)}
}

// Wake implements task.Runner. It never blocks, because a wake-up that is already pending covers this
// one.
func (q *Queue) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// errStopped is the cause of a task's context when the task was stopped.
type errStopped struct{}

func (errStopped) Error() string { return "stopped" }

// Stop implements task.Runner. It cancels the task's context with errStopped and does not wait until the
// task has ended.
func (q *Queue) Stop(taskID string) bool {
	q.mu.Lock()
	cancel := q.running[taskID]
	q.mu.Unlock()
	if cancel == nil {
		return false
	}
	cancel(errStopped{})
	return true
}

// Ended implements task.Runner. It never blocks: beyond maxEnded waiting tasks the notification is
// dropped.
func (q *Queue) Ended(t task.Task) {
	select {
	case q.ended <- t:
	default:
	}
}

// addRunning records a task as running here; false if it is running already.
func (q *Queue) addRunning(id string, cancel context.CancelCauseFunc) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running[id] != nil {
		return false
	}
	q.running[id] = cancel
	return true
}

func (q *Queue) removeRunning(id string) {
	q.mu.Lock()
	delete(q.running, id)
	q.mu.Unlock()
}
