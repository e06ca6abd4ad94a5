package index

import (
	"testing"
	"time"

	"agentsite/internal/hub"
)

func TestState_ChangesWithWhatIsShown(t *testing.T) {
	x := New()
	a := hub.Agent{ID: "1", Name: "calc", Title: "Calc", Kind: hub.A2A, Visibility: hub.Public, Liveness: hub.Liveness{State: hub.Unknown}}
	last := x.State()
	for _, c := range []struct {
		what    string
		change  func()
		changes bool
	}{
		{"registered", func() { x.Put(a) }, true},
		{"the same again", func() { x.Put(a) }, false},
		{"checked again", func() {
			a.Liveness.CheckedAt, a.Liveness.Latency = time.Now(), time.Second
			x.Put(a)
		}, false},
		{"alive", func() { a.Liveness.State = hub.Alive; x.Put(a) }, true},
		{"reason", func() { a.Liveness.Reason = "answers"; x.Put(a) }, true},
		{"renamed", func() { a.Title = "Sums"; x.Put(a) }, true},
		{"made private", func() { a.Visibility = hub.Private; x.Put(a) }, true},
		{"removed again", func() { x.Remove(a.ID) }, false},
	} {
		c.change()
		if changed := x.State() != last; changed != c.changes {
			t.Errorf("%s: changed %v, want %v", c.what, changed, c.changes)
		}
		last = x.State()
	}
}
