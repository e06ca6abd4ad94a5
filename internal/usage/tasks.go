package usage

import "sync"

// maxTasks is the number of tasks whose sums are kept in memory.
const maxTasks = 10_000

// taskSums are the sums of the newest tasks, for the portals and programs that asked for them. A restart forgets them.
type taskSums struct {
	mu    sync.Mutex // guards the fields below
	sums  map[string]Sum
	order []string // the ids as a ring, the oldest one at next
	next  int
}

// add adds a sum to that of a task.
func (t *taskSums) add(id string, s Sum) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sums == nil {
		t.sums = make(map[string]Sum)
	}
	sum, known := t.sums[id]
	sum.add(s)
	t.sums[id] = sum
	switch {
	case known:
	case len(t.order) < maxTasks:
		t.order = append(t.order, id)
	default:
		delete(t.sums, t.order[t.next])
		t.order[t.next] = id
		t.next = (t.next + 1) % maxTasks
	}
}

// OfTask returns the sum of a task's calls of models since the start of the portal, and its currency; ok is false for
// none.
func (s *Service) OfTask(id string) (sum Sum, currency string, ok bool) {
	s.tasks.mu.Lock()
	sum, ok = s.tasks.sums[id]
	s.tasks.mu.Unlock()
	if currency = s.prices.Currency(); currency == "" {
		currency = defaultCurrency
	}
	return sum, currency, ok
}
