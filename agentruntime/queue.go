// Package agentruntime runs agents: it takes submitted tasks from their
// durable queue, hands each to the driver of its agent's kind, and records
// exactly one outcome. Queue is made before the services, because they wake
// it; Worker after them, because it calls them. It knows nothing of HTTP or
// pages; how an agent of some kind is reached is in the subpackages.
package agentruntime

import (
	"context"
	"sync"

	"agentsite/internal/task"
)

var _ task.Runner = (*Queue)(nil)

// Queue is where services and the worker meet: it is told that work waits and
// knows what is running in this process. It holds no work: that is in the
// database.
type Queue struct {
	wake  chan struct{}  // capacity 1
	ended chan task.Task // not running here when they were ended

	mu      sync.Mutex // guards running
	running map[string]context.CancelCauseFunc
}

// maxEnded is how many ended tasks wait for their agents to be told. The
// agents of more are not told: nobody may be held up by a portal that is slow.
const maxEnded = 1024

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	return &Queue{wake: make(chan struct{}, 1), ended: make(chan task.Task, maxEnded), running: make(map[string]context.CancelCauseFunc)}
}

// Wake implements task.Runner.
func (q *Queue) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// errStopped is the cause of a task's context when somebody stopped it.
type errStopped struct{}

func (errStopped) Error() string { return "stopped" }

// Stop implements task.Runner.
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

// Ended implements task.Runner.
func (q *Queue) Ended(t task.Task) {
	select {
	case q.ended <- t:
	default:
	}
}

// enter notes a task as running here; it reports false when it is already.
func (q *Queue) enter(id string, cancel context.CancelCauseFunc) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running[id] != nil {
		return false
	}
	q.running[id] = cancel
	return true
}

func (q *Queue) leave(id string) {
	q.mu.Lock()
	delete(q.running, id)
	q.mu.Unlock()
}
