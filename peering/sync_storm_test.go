package peering_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSyncer_ManyWhoMeetAskFew: what portals ask when they meet, and tell of a
// new head, must not grow with the square of how many they are.
func TestSyncer_ManyWhoMeetAskFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		first := w.add()
		const others = 13
		for range others {
			w.add(first)
		}
		asked := func(what string) int {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.asked[what]
		}
		began := time.Now()
		w.until(time.Minute, "settled", w.settled)
		// 8 of those that are met, and a few of a round.
		if got, most := asked("diff"), (others+1)*(8+3); got == 0 || got > most {
			t.Errorf("%d comparisons of heads until all know all, at most %d are needed", got, most)
		}
		time.Sleep(3*time.Minute - time.Since(began)) // all is quiet
		synctest.Wait()
		before := asked("hint")
		first.register("new")
		first.publish()
		w.until(15*time.Second, "held by all", w.settled)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		// The portal tells all, and each of them one other at most.
		if got := asked("hint") - before; got < others || got > 2*others {
			t.Errorf("%d hints of one head among %d portals", got, others+1)
		}
	})
}
