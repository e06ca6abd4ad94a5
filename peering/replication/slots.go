package replication

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/record"
)

// softTimeout is how long a request occupies its slot without an answer. Then another may start and
// the request goes on, so that a silent portal does not hold up others.
const softTimeout = 2 * time.Second

// slots bounds concurrent work: a number of running tasks, and beside them requests that have waited
// longer than softTimeout.
type slots struct {
	work, waiting chan struct{}
}

func newSlots(work, waiting int) *slots {
	return &slots{make(chan struct{}, work), make(chan struct{}, waiting)}
}

// enterSlot waits for a slot for a task that asks another portal. The task calls leave at its end.
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

// perSource is how many logs are pulled from one portal at once; it refuses more.
const perSource = 2

// bySource bounds the logs that are pulled from one portal at once.
type bySource struct {
	mu   sync.Mutex // guards busy
	busy map[record.PortalID]int
	free chan struct{} // closed and made anew when a place is free
}

func newBySource() *bySource {
	return &bySource{busy: make(map[record.PortalID]int), free: make(chan struct{})}
}

// takeSource occupies a slot of the first portal in list with a free one, and waits until there is
// one. list must not be empty.
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

// leaveSource frees a slot.
func (b *bySource) leaveSource(id record.PortalID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[id]--; b.busy[id] == 0 {
		delete(b.busy, id)
	}
	close(b.free)
	b.free = make(chan struct{})
}
