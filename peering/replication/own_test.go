package replication_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A copy of a portal signs a newer card and is gone again: the portal hears of it
// from those who hold that card, though they tell no newer head of it.
func TestSyncer_HearsOfItsNewerCard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		b := w.add(a)
		w.until(time.Minute, "settled", w.settled)
		var heard atomic.Pointer[string]
		w.mu.Lock()
		a.ownCard = func(wire []byte) { s := string(wire); heard.Store(&s) }
		w.mu.Unlock()
		a.Now = time.Now().UnixMilli()
		card := a.Portal.Card()
		card.Origin = "https://copy.example"
		r := a.Sign(t, card)
		b.admit(r)
		w.until(15*time.Minute, "heard", func() bool { s := heard.Load(); return s != nil && *s == string(r.Wire) })
	})
}
