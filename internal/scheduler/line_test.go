package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// The estimate of a turn follows the bound that the task waits for, with tasks of 10 s.
func TestTurn_Estimates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits func(*Limits)
		add    []Job
		before int
		wait   time.Duration
	}{
		"the agent is full of others": {func(l *Limits) { l.RunningPerAgent = 2 },
			[]Job{jobOf("1", "ada"), jobOf("2", "bob"), jobOf("x", "eve")}, 0, 10 * time.Second},
		"its account's tasks wait first": {func(l *Limits) { l.RunningPerAgent = 2 },
			[]Job{jobOf("1", "ada"), jobOf("2", "ada"), jobOf("3", "ada"), jobOf("x", "ada")}, 2, 30 * time.Second},
		"accounts take turns": {func(l *Limits) { l.RunningPerAgent = 2 },
			[]Job{jobOf("1", "ada"), jobOf("2", "ada"), jobOf("3", "ada"), jobOf("4", "bob"), jobOf("5", "bob"), jobOf("6", "bob"),
				jobOf("x", "eve")}, 0, 15 * time.Second},
		"one at a time in a conversation": {func(*Limits) {},
			[]Job{jobOf("1", "ada", "room"), jobOf("2", "bob", "room"), jobOf("3", "ada", "room"), jobOf("x", "ada", "room")}, 1, 20 * time.Second},
	} {
		l := loose()
		c.limits(&l)
		s := New(l)
		s.Start(jobOf("0"), began)
		s.Free("0", after(10*time.Second))
		for _, j := range c.add {
			s.Add(j)
		}
		drain(s, after(10*time.Second))
		before, wait, ok := s.Turn("x")
		if !ok || before != c.before || wait != c.wait {
			t.Errorf("%s: %v, %d before it, %s", name, ok, before, wait)
		}
		if _, _, ok := s.Turn("1"); ok {
			t.Errorf("%s: a running task waits", name)
		}
	}
	if _, _, ok := New(loose()).Turn("none"); ok {
		t.Error("an unknown task waits")
	}
}

func BenchmarkTurn(b *testing.B) {
	l := loose()
	l.RunningPerAgent = 2
	s := New(l)
	for i := range 1000 {
		s.Add(jobOf(fmt.Sprint(i), "ada"))
	}
	drain(s, began)
	for b.Loop() {
		s.Turn("999")
	}
}
