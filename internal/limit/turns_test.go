package limit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns checks that a key has one turn at a time, that others do not wait for it, that a turn which
// ends lets the next one begin, and that one who waits too long or gives up leaves the gate usable.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Turns
		begin := func(key string) (func(), error) {
			return g.Begin(t.Context(), key, time.Second)
		}
		const ann = "ann"
		end, err := begin(ann)
		if err != nil {
			t.Fatal(err)
		}
		if endBen, err := begin("ben"); err != nil {
			t.Errorf("another key: %v", err)
		} else {
			endBen()
		}
		began := make(chan func())
		go func() {
			next, err := begin(ann)
			if err != nil {
				t.Error(err)
			}
			began <- next
		}()
		synctest.Wait()
		select {
		case <-began:
			t.Fatal("a second turn began beside the first")
		default:
		}
		end()
		end = <-began
		if _, err := begin(ann); err != ErrTurnTaken {
			t.Errorf("a turn that waited a second: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Begin(ctx, ann, time.Second); err != context.Canceled {
			t.Errorf("a turn whose caller gave up: %v", err)
		}
		end()
		if end, err = begin(ann); err != nil {
			t.Errorf("after all ended: %v", err)
		}
		end()
		if len(g.busy) != 0 {
			t.Errorf("%d keys stay in the gate", len(g.busy))
		}
	})
}
