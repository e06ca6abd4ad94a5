package openai

import "sync"

// waiting counts the calls that wait for each task. The zero value is ready.
type waiting struct {
	mu    sync.Mutex // guards calls
	calls map[string]int
}

// enterCall counts a call. leave must be called once; it ends the call and reports whether it was
// the last.
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
