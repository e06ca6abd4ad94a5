package popularity_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/popularity"
)

type fake struct {
	since []time.Time
	fail  bool
	set   []map[string]int
}

func (f *fake) CountUsers(_ context.Context, since time.Time, limit int) (map[string]int, error) {
	f.since = append(f.since, since)
	if f.fail {
		return nil, errors.New("no database")
	}
	return map[string]int{"a": len(f.since), "limit": limit}, nil
}

func (f *fake) SetUsers(users map[string]int) { f.set = append(f.set, users) }

func TestRun_CountsEachMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- popularity.New(f, f, slog.New(slog.DiscardHandler)).Run(ctx) }()
		synctest.Wait()
		if len(f.set) != 1 || f.set[0]["a"] != 1 || f.set[0]["limit"] != 500 {
			t.Fatalf("at the start: %v", f.set)
		}
		f.fail = true // a failed count keeps the earlier one
		time.Sleep(90 * time.Second)
		synctest.Wait()
		f.fail = false
		if len(f.set) != 1 || len(f.since) != 2 {
			t.Errorf("after a failure: set %v, counted %d times", f.set, len(f.since))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(f.set) != 2 || f.since[2].Sub(f.since[0]) != 2*time.Minute {
			t.Errorf("set %v, since %v", f.set, f.since)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
