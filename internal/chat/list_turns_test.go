package chat

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
)

// slowPages is a store whose pages of messages are read for as long as the test wants.
type slowPages struct {
	*memory
	reading atomic.Int64
	finish  chan struct{} // each value ends one read
}

func (s *slowPages) Messages(ctx context.Context, id string, span Span) ([]Message, bool, error) {
	s.reading.Add(1)
	defer s.reading.Add(-1)
	<-s.finish
	return s.memory.Messages(ctx, id, span)
}

// TestMessages_OnePageAtATime checks that an account reads one page at a time, that another account does not wait for
// it, and that a page which waits for too long is refused.
func TestMessages_OnePageAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowPages{memory: newMemory(), finish: make(chan struct{})}
		room := store.open("ann", "ben")
		s := New(store, nil, nil, Config{})
		results := make(chan error)
		read := func(name string) {
			go func() {
				_, _, err := s.Messages(t.Context(), person(name), room, Span{Limit: 50})
				results <- err
			}()
			synctest.Wait()
		}
		read("ann")
		read("ann")
		if n := store.reading.Load(); n != 1 {
			t.Errorf("ann reads %d pages at a time", n)
		}
		read("ben")
		if n := store.reading.Load(); n != 2 {
			t.Errorf("%d pages are read when ben reads too", n)
		}
		time.Sleep(pageWait)
		if err := <-results; !fault.Is(err, fault.RateLimited) {
			t.Errorf("the page that waited: %v", err)
		}
		for range 2 {
			store.finish <- struct{}{}
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}
