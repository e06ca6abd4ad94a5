package replication_test

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/testing/racetest"
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

// TestSyncer_HalvesThatMeetCompareFew: portals that are back all at once know the
// same news, so it must not be told by each of them.
func TestSyncer_HalvesThatMeetCompareFew(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		first := w.add()
		half := 8
		if os.Getenv("AGENTSITE_TEST_FULL") != "" {
			half = 16
		}
		for range 2*half - 1 {
			w.add(first)
		}
		w.until(10*time.Minute, "settled", w.settled)
		side := func(n *node) bool { return slices.Index(w.nodes, n) < half }
		w.mu.Lock()
		w.cut = func(from, to *node) bool { return side(from) != side(to) }
		w.mu.Unlock()
		for range 3 { // each finds out that the others are away
			for _, n := range w.nodes {
				n.register("a")
				n.publish()
			}
			time.Sleep(2 * time.Minute)
		}
		heads := 0
		for _, n := range w.nodes[:half] {
			head, err := n.replica.Head(t.Context(), n.ID)
			if err != nil {
				t.Fatal(err)
			}
			card, err := n.replica.Card(t.Context(), n.ID)
			if err != nil {
				t.Fatal(err)
			}
			heads += len(head) + len(card)
		}
		w.mu.Lock()
		w.cut = nil
		clear(w.bytes)
		w.mu.Unlock()
		w.until(2*time.Minute, "healed", w.settled)
		w.mu.Lock()
		defer w.mu.Unlock()
		sum := 0
		for _, n := range w.nodes {
			sum += w.bytes[n]
		}
		t.Logf("%d bytes a portal, the news are %d", sum/(2*half), heads)
		if sum > 2*half*8*heads {
			t.Errorf("each portal exchanged %d bytes to have %d of news", sum/(2*half), heads)
		}
	})
}
