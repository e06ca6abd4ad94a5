package limit

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// take takes n tokens and returns how many there were.
func take(k *Keyed, key string, n int) (got int) {
	for range n {
		if _, ok := k.Allow(key); ok {
			got++
		}
	}
	return got
}

func TestAllow_BurstThenOnePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := New(10*time.Second, 3, 100)
		if got := take(k, "a", 10); got != 3 {
			t.Fatalf("%d at once, want 3", got)
		}
		if got := take(k, "b", 10); got != 3 {
			t.Errorf("another key got %d", got)
		}
		wait, ok := k.Allow("a")
		if ok || wait != 10*time.Second {
			t.Errorf("wait %v, want 10s", wait)
		}
		time.Sleep(wait - time.Millisecond)
		if wait, ok := k.Allow("a"); ok || wait <= 0 || wait > 2*time.Millisecond {
			t.Errorf("a moment early: %v %v", wait, ok)
		}
		time.Sleep(time.Millisecond)
		if got := take(k, "a", 5); got != 1 {
			t.Errorf("%d after one interval", got)
		}
		time.Sleep(time.Hour)
		if got := take(k, "a", 10); got != 3 {
			t.Errorf("%d after an hour, want the burst", got)
		}
	})
}

func TestAllow_BeingRefusedCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := New(time.Second, 1, 100)
		take(k, "a", 1)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 2000 {
					if wait, ok := k.Allow("a"); ok || wait > time.Second {
						t.Errorf("told to wait %v", wait)
						return
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		if take(k, "a", 1) != 1 {
			t.Error("refused attempts made the wait longer")
		}
	})
}

func TestAllow_RemembersBoundedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := New(time.Second, 2, 100)
		take(k, "busy", 2)
		for i := range 10_000 {
			take(k, fmt.Sprint(i), 1)
			if len(k.buckets) > 100 {
				t.Fatalf("%d keys are held", len(k.buckets))
			}
		}
		// Full buckets say nothing and go first; the emptied one stays.
		k = New(time.Second, 1, 100)
		for i := range 99 {
			take(k, fmt.Sprint(i), 1)
		}
		time.Sleep(time.Second)
		take(k, "busy", 1)
		if take(k, "one more", 1) != 1 || take(k, "busy", 1) != 0 {
			t.Error("an emptied bucket was forgotten although others were full")
		}
	})
}
