package popularity_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/popularity"
)

type fake struct {
	mu    sync.Mutex // guards the fields below
	since []time.Time
	fail  bool
	set   []map[string]int
}

func (f *fake) CountUsers(_ context.Context, since time.Time, limit int) (map[string]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = append(f.since, since)
	if f.fail {
		return nil, errors.New("no database")
	}
	return map[string]int{"a": len(f.since), "limit": limit}, nil
}

func (f *fake) SetUsers(users map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set = append(f.set, users)
}

// after waits for the counts that are due, sets whether the next ones fail, and returns those so far.
func (f *fake) after(fail bool) (since []time.Time, set []map[string]int) {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
	return slices.Clone(f.since), slices.Clone(f.set)
}

func TestRun_CountsEachMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- popularity.New(f, f, slog.New(slog.DiscardHandler)).Run(ctx) }()
		_, set := f.after(true) // a failed count keeps the earlier one
		if len(set) != 1 || set[0]["a"] != 1 || set[0]["limit"] != 500 {
			t.Fatalf("at the start: %v", set)
		}
		time.Sleep(90 * time.Second)
		since, set := f.after(false)
		if len(set) != 1 || len(since) != 2 {
			t.Errorf("after a failure: set %v, counted %d times", set, len(since))
		}
		time.Sleep(time.Minute)
		since, set = f.after(false)
		if len(set) != 2 || since[2].Sub(since[0]) != 2*time.Minute {
			t.Errorf("set %v, since %v", set, since)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
