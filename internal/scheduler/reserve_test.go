package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// Tasks that are admitted at once keep within the bounds before any of them is queued.
func TestReserve_CountsUntilTheTaskIsQueued(t *testing.T) {
	t.Parallel()
	l := loose()
	l.WaitingPerAccount = 3
	s := New(l)
	admit := func(id, account string) bool {
		j := jobOf(id, account)
		_, ok := s.Admit(j)
		if ok {
			s.Reserve(j, began)
		}
		return ok
	}
	for i := range 3 {
		if !admit(fmt.Sprint("a", i), "a") {
			t.Fatal("refused below the bound", i)
		}
	}
	if admit("a3", "a") || !admit("b0", "b") {
		t.Error("reservations do not count, or count for others")
	}
	s.Add(jobOf("a0", "a"))
	if admit("a4", "a") {
		t.Error("a queued task is not counted once")
	}
	s.Release("a1")
	s.Release("a1")
	if !admit("a5", "a") || admit("a6", "a") {
		t.Error("a task that was not stored still counts, or others with it do not")
	}
	s.Remove("a2")
	if !admit("a7", "a") {
		t.Error("a task that ended before it was queued still counts")
	}

	s.Reserve(jobOf("c0", "c"), after(maxReserved*time.Microsecond))
	if admit("a8", "a") {
		t.Error("young reservations ended")
	}
	s.Reserve(jobOf("c1", "c"), after(2*maxReserved*time.Microsecond))
	if !admit("a9", "a") || !admit("a10", "a") {
		t.Error("reservations of deleted tasks count for ever")
	}
	for _, id := range []string{"a0", "a9", "a10", "b0", "c0", "c1"} {
		s.Remove(id)
	}
	if n := len(s.reserved.jobs) + len(s.reserved.count); n != 0 {
		t.Errorf("%d reservations are left", n)
	}
}

func TestSnapshot_RefusedInTheLastHour(t *testing.T) {
	t.Parallel()
	s := New(loose())
	for _, c := range []struct{ minute, want int }{{0, 1}, {1, 2}, {59, 3}, {60, 3}, {62, 3}, {300, 1}} {
		at := after(time.Duration(c.minute) * time.Minute)
		s.Refuse(jobOf("x", "a"), at)
		if got := s.Snapshot(at).Classes[Accounts]; got.Lately != c.want {
			t.Errorf("minute %d: %d refused in the last hour, want %d", c.minute, got.Lately, c.want)
		}
	}
	if got := s.Snapshot(after(400 * time.Minute)).Classes[Accounts]; got.Lately != 0 || got.Refused != 6 {
		t.Errorf("later: %+v", got)
	}
}

func TestSnapshot_NamesTheBusiestPlaces(t *testing.T) {
	t.Parallel()
	s := New(loose())
	for i := range 3 {
		s.Add(jobOf(fmt.Sprint("x", i), "a", "", "calc", "", "host.example"))
	}
	s.Add(jobOf("y", "g:1", "", "guide", "", "other.example"))
	s.Next(began)
	got := s.Snapshot(began)
	if len(got.Agents) != 2 || got.Agents[0].Key != "calc" || got.Agents[0].Waiting+got.Agents[0].Running != 3 || len(got.Providers) != 2 ||
		got.Providers[0].Key != "host.example" || got.Running != 1 || got.Limits.Running != 1000 || got.Classes[got.Accounts[0].Class].Share != 1 {
		t.Errorf("%+v", got)
	}
}
