package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"

	"agentsite/internal/testing/pgtest"
	"agentsite/store/engine"
)

// Writes that wait share transactions. One that fails fails alone, whether before its first change, after it,
// by a constraint, by a statement that was sent for later, or in a panic.
func TestWrite_FailsAlone(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), pgtest.NewDatabase(t), Portal(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	const insert = `INSERT INTO counters (name, value) VALUES (?, 1)`
	own := errors.New("own")
	ways := []func(w engine.Tx, name string) error{
		func(w engine.Tx, name string) error { return w.Send(insert, name) },
		func(engine.Tx, string) error { return own },
		func(w engine.Tx, name string) error { return errors.Join(w.Send(insert, name), own) },
		func(w engine.Tx, name string) error {
			_, err := w.Exec(insert, name)
			return errors.Join(err, own)
		},
		func(w engine.Tx, name string) error {
			if err := w.Send(insert, name); err != nil {
				return err
			}
			return w.Send(insert, name) // refused when both run
		},
		func(w engine.Tx, name string) error {
			if err := w.Send(insert, name); err != nil {
				return err
			}
			// Of the second alone nothing stays, and the write goes on.
			return errors.Join(w.Try(func() error { return w.Send(insert, name) }), own)
		},
		func(engine.Tx, string) error { panic("a mistake") },
		func(w engine.Tx, name string) error {
			// Of an attempt that fails by itself nothing runs later.
			if err := w.Try(func() error { return errors.Join(w.Send(insert, name+" tried"), own) }); !errors.Is(err, own) {
				return err
			}
			return errors.Join(w.Send(insert, name), own)
		},
	}
	// The first write holds the turn until all others wait.
	first, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if err := d.Write(context.Background(), func(engine.Tx) error {
			close(first)
			<-release
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-first
	const rounds = 10
	for i := range rounds * len(ways) {
		all.Go(func() {
			err := d.Write(context.Background(), func(w engine.Tx) error {
				return ways[i%len(ways)](w, fmt.Sprint("w", i))
			})
			if (err == nil) != (i%len(ways) == 0) {
				t.Errorf("way %d: %v", i%len(ways), err)
			}
		})
	}
	for waiting := 0; waiting < rounds*len(ways); {
		d.waitMu.Lock()
		waiting = len(d.waiting)
		d.waitMu.Unlock()
		runtime.Gosched()
	}
	close(release)
	all.Wait()
	var stored []string
	if err := d.List(t.Context(), &stored, `SELECT name FROM counters WHERE name LIKE 'w%'`); err != nil {
		t.Fatal(err)
	}
	if len(stored) != rounds {
		t.Errorf("%d writes are stored, want %d", len(stored), rounds)
	}
	err = d.Write(context.Background(), func(w engine.Tx) error {
		if err := w.Try(func() error { return errors.Join(w.Send(insert, "wtried"), own) }); !errors.Is(err, own) {
			t.Error(err)
		}
		return w.Send(insert, "wkept")
	})
	if err != nil {
		t.Error(err)
	}
	var kept []string
	if err := d.List(t.Context(), &kept, `SELECT name FROM counters WHERE name IN ('wtried', 'wkept')`); err != nil ||
		!slices.Equal(kept, []string{"wkept"}) {
		t.Errorf("%q, %v", kept, err)
	}
}

// No write of a batch runs more than twice because of others that fail.
func TestWrite_RunsAtMostTwice(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), pgtest.NewDatabase(t), Portal(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	own := errors.New("own")
	runs := make([]int, maxBatch)
	d.turn <- struct{}{}
	for i := range runs {
		d.waiting = append(d.waiting, &op{done: make(chan struct{}), fn: func(w engine.Tx) error {
			runs[i]++
			return errors.Join(w.Send(`UPDATE counters SET value = 1`), map[bool]error{true: own}[i%3 != 0])
		}})
	}
	d.commitWaiting()
	<-d.turn
	if m := slices.Max(runs); m > 2 {
		t.Errorf("a write ran %d times: %d", m, runs)
	}
}

// A write that waits is withdrawn when its context ends, and never runs.
func TestWrite_IsWithdrawn(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), pgtest.NewDatabase(t), Portal(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	d.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Write(ctx, func(engine.Tx) error { t.Error("it ran"); return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ended := make(chan error)
	ctx, cancel = context.WithCancel(t.Context())
	go func() { ended <- d.Write(ctx, func(engine.Tx) error { t.Error("it ran"); return nil }) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-d.turn
	if err := d.Write(t.Context(), func(engine.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
}
