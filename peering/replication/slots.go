package replication

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/record"
)

// softTimeout is how long an unanswered request occupies a slot in slots.work. Then the request goes on
// without it and another task may start, so that silent portals do not hold up others.
const softTimeout = 2 * time.Second

// slots bounds concurrent tasks: work has a place for each running task, waiting one for each task
// including those that have exceeded softTimeout.
type slots struct {
	work, waiting chan struct{}
}

func newSlots(work, waiting int) *slots {
	return &slots{make(chan struct{}, work), make(chan struct{}, waiting)}
}

// enterSlot waits for a slot for a task that asks another portal. The caller must call leave when the task
// ends. It fails only when ctx ends.
func (s *slots) enterSlot(ctx context.Context) (leave func(), err error) {
	select {
	case s.waiting <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case s.work <- struct{}{}:
	case <-ctx.Done():
		<-s.waiting
		return nil, ctx.Err()
	}
	free := sync.OnceFunc(func() { <-s.work })
	soft := time.AfterFunc(softTimeout, free)
	return func() {
		soft.Stop()
		free()
		<-s.waiting
	}, nil
}

// perSource is how many logs are pulled from one portal at once; that portal refuses more.
const perSource = 2

// bySource limits the logs that are pulled from one portal at the same time to perSource.
type bySource struct {
	mu   sync.Mutex // guards busy
	busy map[record.PortalID]int
	free chan struct{} // closed and replaced when a place becomes free
}

func newBySource() *bySource {
	return &bySource{busy: make(map[record.PortalID]int), free: make(chan struct{})}
}

// takeSource occupies a place of the first portal in list that has a free one, and waits until there is
// one. The caller must call leaveSource. list must not be empty. It fails only when ctx ends.
func (b *bySource) takeSource(ctx context.Context, list []record.PortalID) (record.PortalID, error) {
	for {
		b.mu.Lock()
		for _, id := range list {
			if b.busy[id] < perSource {
				b.busy[id]++
				b.mu.Unlock()
				return id, nil
			}
		}
		free := b.free
		b.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// leaveSource frees a place that takeSource occupied, and wakes all waiting callers.
func (b *bySource) leaveSource(id record.PortalID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[id]--; b.busy[id] == 0 {
		delete(b.busy, id)
	}
	close(b.free)
	b.free = make(chan struct{})
}
