package openai

import "sync"

// waiting counts the calls that wait for each task, so that only the last one cancels the task. The zero
// value is ready.
type waiting struct {
	mu    sync.Mutex // guards calls
	calls map[string]int
}

// enterCall counts a call that waits for a task. Call leave once, at the end of the call; it reports
// whether no other call waits.
func (w *waiting) enterCall(task string) (leave func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = make(map[string]int)
	}
	w.calls[task]++
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.calls[task]--; w.calls[task] > 0 {
			return false
		}
		delete(w.calls, task)
		return true
	}
}
