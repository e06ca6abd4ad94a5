package agentruntime

import (
	"testing"

	"agentsite/internal/scheduler"
)

// A run checks for a stop after it has left the running tasks. A stop that finds it there and cancels it later is
// lost: the task then waits for input without end, and its agent gets no notification.
func TestStop_CancelsBeforeTheTaskLeaves(t *testing.T) {
	q := NewQueue(scheduler.Limits{})
	canceled := false
	q.addRunning("1", runningTask{cancel: func(error) {
		canceled = true
		if q.mu.TryLock() {
			q.mu.Unlock()
			t.Error("the task can leave the running ones before it is canceled")
		}
	}, ended: make(chan struct{})})
	if !q.Stop("1") || !canceled {
		t.Error("not stopped")
	}
	q.removeRunning("1")
	if q.Stop("1") {
		t.Error("a task that has left was stopped")
	}
}
