package replication

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/record"
)

// softTimeout is after how long a request that is not answered makes room for
// others. It goes on; but who is silent holds up nobody.
const softTimeout = 2 * time.Second

// slots bounds what is done at once: so many pieces of work, and beside them
// requests that have waited longer than softTimeout.
type slots struct {
	work, waiting chan struct{}
}

func newSlots(work, waiting int) *slots {
	return &slots{make(chan struct{}, work), make(chan struct{}, waiting)}
}

func enter(ctx context.Context, c chan struct{}) error {
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do runs ask, which waits for somebody else, when there is room.
func (s *slots) do(ctx context.Context, ask func() error) error {
	if err := enter(ctx, s.waiting); err != nil {
		return err
	}
	defer func() { <-s.waiting }()
	if err := enter(ctx, s.work); err != nil {
		return err
	}
	var once sync.Once
	leave := func() { once.Do(func() { <-s.work }) }
	defer leave()
	soft := time.AfterFunc(softTimeout, leave)
	defer soft.Stop()
	return ask()
}

// perSource is how many logs are asked of one portal at once; more it refuses.
const perSource = 2

// bySource bounds the logs that are asked of one portal at once.
type bySource struct {
	mu   sync.Mutex // guards busy
	busy map[record.PortalID]int
	free chan struct{} // closed and made anew when a place is free
}

func newBySource() *bySource {
	return &bySource{busy: make(map[record.PortalID]int), free: make(chan struct{})}
}

// take takes a place at the first of list that has one, and waits until there
// is one. list must not be empty.
func (b *bySource) take(ctx context.Context, list []record.PortalID) (record.PortalID, error) {
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

// leave gives a place back.
func (b *bySource) leave(id record.PortalID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[id]--; b.busy[id] == 0 {
		delete(b.busy, id)
	}
	close(b.free)
	b.free = make(chan struct{})
}
