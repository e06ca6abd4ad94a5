package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

var began = time.Unix(1_800_000_000, 0)

func after(d time.Duration) time.Time { return began.Add(d) }

// loose returns limits that no test meets unless it tightens them.
func loose() Limits {
	return Limits{Running: 1000, RunningPerAccount: 1000, RunningPerRoom: 1000, RunningPerAgent: 1000, RunningPerOwner: 1000,
		RunningPerProvider: 1000, Waiting: 1000, WaitingPerAccount: 1000, WaitingPerRoom: 1000, WaitingPerAgent: 1000,
		WaitingPerOwner: 1000, WaitingPerProvider: 1000}
}

// jobOf parses "account room agent owner provider"; missing words are the defaults of a task alone. A "!"
// before the account is background work, g: and p: name a guest and a portal.
func jobOf(id string, words ...string) Job {
	j := Job{ID: id, Conversation: "room " + id, Agent: "agent", Owner: "owner", Provider: "host"}
	for i, w := range words {
		if w == "" {
			continue
		}
		switch i {
		case 0:
			if w[0] == '!' {
				j.Background, w = true, w[1:]
			}
			switch {
			case len(w) > 2 && w[:2] == "g:":
				j.Class = Guests
			case len(w) > 2 && w[:2] == "p:":
				j.Class = Portals
			}
			j.Account = w
		case 1:
			j.Conversation = w
		case 2:
			j.Agent = w
		case 3:
			j.Owner = w
		case 4:
			j.Provider = w
		}
	}
	return j
}

// drain starts all tasks that may start and returns their ids.
func drain(s *Scheduler, now time.Time) []string {
	ids := []string{}
	for {
		j, ok := s.Next(now)
		if !ok {
			return ids
		}
		ids = append(ids, j.ID)
	}
}

func TestNext_Decides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		tighten func(*Limits)
		jobs    [][]string // added in this order, with ids 1, 2, …
		want    []string   // started at once
	}{
		{"all that fits, in turns", nil, [][]string{{"a"}, {"a"}, {"b"}}, []string{"1", "3", "2"}},
		{"a mailbox is first come, first served", nil, [][]string{{"a", "r"}, {"b", "r"}, {"a", "r", "other"}}, []string{"1", "3"}},
		{"half of the portal and its kept place", func(l *Limits) { l.Running = 4 },
			[][]string{{"a"}, {"a"}, {"a"}, {"b"}, {"b"}, {"c"}}, []string{"1", "4", "6"}},
		{"the kept place of the portal", func(l *Limits) { l.Running = 4 },
			[][]string{{"a"}, {"a"}, {"a"}, {"b"}, {"b"}}, []string{"1", "4", "2"}},
		{"half of an agent", func(l *Limits) { l.RunningPerAgent = 4 },
			[][]string{{"a"}, {"a"}, {"a"}, {"a", "", "other"}}, []string{"1", "2", "4"}},
		{"the kept place of an agent", func(l *Limits) { l.RunningPerAgent = 4 },
			[][]string{{"a"}, {"a"}, {"b"}, {"b"}, {"c"}}, []string{"1", "3", "5"}},
		{"the kept place of a provider", func(l *Limits) { l.RunningPerProvider = 4 },
			[][]string{{"a", "", "x"}, {"a", "", "y"}, {"b", "", "x"}, {"b", "", "z"}, {"c", "", "x"}}, []string{"1", "3", "5"}},
		{"half of a provider", func(l *Limits) { l.RunningPerProvider = 4 },
			[][]string{{"a", "", "x"}, {"a", "", "y"}, {"a", "", "z"}, {"a", "", "z", "", "elsewhere"}}, []string{"1", "2", "4"}},
		{"an account's bound", func(l *Limits) { l.RunningPerAccount = 1 }, [][]string{{"a"}, {"a", "", "other"}, {"b"}}, []string{"1", "3"}},
		{"a room's bound", func(l *Limits) { l.RunningPerRoom = 2 },
			[][]string{{"a", "r", "x"}, {"b", "r", "y"}, {"c", "r", "z"}, {"c", "q", "z"}}, []string{"1", "2", "4"}},
		{"an owner's bound", func(l *Limits) { l.RunningPerOwner = 1 },
			[][]string{{"a", "", "x"}, {"b", "", "y"}, {"b", "", "z", "other"}}, []string{"1", "3"}},
		{"no owner and no provider are no bound", func(l *Limits) { l.RunningPerOwner, l.RunningPerProvider = 1, 1 },
			[][]string{{"a", "", "x", "-", "-"}, {"b", "", "y", "-", "-"}}, []string{"1", "2"}},
		{"people before background work", func(l *Limits) { l.RunningPerAgent = 2 },
			[][]string{{"!a"}, {"b"}}, []string{"2", "1"}},
		{"classes share before accounts do", func(l *Limits) { l.RunningPerAgent = 4 },
			[][]string{{"g:1"}, {"g:2"}, {"g:3"}, {"a"}, {"b"}}, []string{"4", "1", "5", "2"}},
	} {
		l := loose()
		if c.tighten != nil {
			c.tighten(&l)
		}
		s := New(l)
		for i, words := range c.jobs {
			j := jobOf(fmt.Sprint(i+1), words...)
			if j.Owner == "-" {
				j.Owner, j.Provider = "", ""
			}
			s.Add(j)
		}
		if got := drain(s, began); !slices.Equal(got, c.want) {
			t.Errorf("%s: started %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNext_AFloodLeavesAPlaceToANewAccount(t *testing.T) {
	t.Parallel()
	l := loose()
	l.Running, l.RunningPerAgent = 64, 32
	s := New(l)
	for i := range 800 {
		s.Add(jobOf(fmt.Sprint("flood", i), "a"))
	}
	if n := len(drain(s, began)); n != 16 {
		t.Fatalf("the flood runs %d tasks, want half of the agent's places", n)
	}
	for i := range 20 {
		for j := range 40 {
			s.Add(jobOf(fmt.Sprint("more", i, "-", j), fmt.Sprint("b", i)))
		}
	}
	if n := len(drain(s, after(time.Second))); n != 16 {
		t.Fatalf("the others start %d tasks, want the other half", n)
	}
	s = New(l)
	for i := range 800 {
		s.Add(jobOf(fmt.Sprint("flood", i), "a"))
	}
	for i := range 20 {
		s.Add(jobOf(fmt.Sprint("more", i), "b"))
	}
	drain(s, began)
	s.Add(jobOf("single", "ada"))
	if got := drain(s, after(time.Second)); !slices.Equal(got, []string{"single"}) {
		t.Errorf("started %v, want the question of the account that runs nothing", got)
	}
}

func TestAbandon_KeepsCountingForTheAccountAndTheAgent(t *testing.T) {
	t.Parallel()
	l := loose()
	l.Running, l.RunningPerAgent = 3, 2
	s := New(l)
	s.Add(jobOf("1", "a", "r"))
	s.Add(jobOf("2", "a", "r"))
	s.Add(jobOf("3", "b", "", "other"))
	s.Add(jobOf("4", "c", "", "other"))
	if got := drain(s, began); !slices.Equal(got, []string{"1", "3", "4"}) {
		t.Fatal(got)
	}
	s.Add(jobOf("5", "d", "", "third"))
	if got := drain(s, began); len(got) > 0 {
		t.Fatal("more than the portal's places:", got)
	}
	s.Abandon("1", after(time.Second))
	// The portal's place is free; the account still holds half of the agent's places.
	if got := drain(s, after(time.Second)); !slices.Equal(got, []string{"5"}) {
		t.Fatal(got)
	}
	s.Free("3", after(2*time.Second))
	if got := drain(s, after(2*time.Second)); len(got) > 0 {
		t.Fatal("the abandoned task does not count any more:", got)
	}
	s.Free("1", after(3*time.Second))
	if got := drain(s, after(3*time.Second)); !slices.Equal(got, []string{"2"}) {
		t.Fatal(got)
	}
}

func TestStart_TakesAFreePlaceOnly(t *testing.T) {
	t.Parallel()
	l := loose()
	l.RunningPerAgent = 4
	s := New(l)
	for i, want := range []bool{true, true, false} { // half of the agent's places
		if got := s.Start(jobOf(fmt.Sprint(i), "a"), began); got != want {
			t.Errorf("task %d: %v", i, got)
		}
	}
	if s.Start(jobOf("0", "a"), began) {
		t.Error("a task that runs is started again")
	}
	if !s.Start(jobOf("b", "b"), began) || s.Start(jobOf("b2", "b"), began) || !s.Start(jobOf("c", "c"), began) || s.Start(jobOf("d", "d"), began) {
		t.Error("the kept place")
	}
	for _, id := range []string{"0", "1", "b", "c"} {
		s.Free(id, after(time.Second))
	}
	if n := len(s.entries) + len(s.lanes) + len(s.agents) + len(s.mailboxes) + len(s.rooms) + len(s.held); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// Some accounts with tasks that never end take turns at all places of the portal but those kept for accounts
// of which nothing runs: many of these start at the same time.
func TestScheduler_ManyAccountsThatNeverEnd(t *testing.T) {
	t.Parallel()
	l := loose()
	l.Running, l.RunningPerAccount = 512, 64
	s := New(l)
	for a := range 12 {
		for i := range 64 {
			s.Add(jobOf(fmt.Sprint("hang", a, "-", i), fmt.Sprint("a", a)))
		}
	}
	for range l.Running {
		s.Next(began)
	}
	for i := range 20 {
		j := jobOf(fmt.Sprint("v", i), fmt.Sprint("victim", i))
		if i%2 == 0 {
			if !s.Start(j, began) {
				t.Errorf("account %d is not answered at once", i)
			}
			continue
		}
		s.Add(j)
		if got, ok := s.Next(began); !ok || got.ID != j.ID {
			t.Errorf("account %d waits", i)
		}
	}
}

// Guests that come from ever new networks leave half of the waiting places to accounts.
func TestAdmit_GuestsFillHalf(t *testing.T) {
	t.Parallel()
	l := loose()
	l.WaitingPerAgent = 8
	s := New(l)
	for i := range 20 {
		j := jobOf(fmt.Sprint("g", i), fmt.Sprint("network ", i))
		if j.Class = Guests; i < 4 {
			j.Class = Portals
		}
		if _, ok := s.Admit(j); ok {
			s.Add(j)
		}
	}
	if s.waiting != 4 {
		t.Errorf("%d tasks of guests and portals wait", s.waiting)
	}
	for i, want := range []bool{true, true, false} {
		j := jobOf(fmt.Sprint("a", i), "a")
		_, ok := s.Admit(j)
		if ok != want {
			t.Errorf("task %d of an account: %v", i, ok)
		}
		if ok {
			s.Add(j)
		}
	}
}

func TestAdmit_RefusesWhoFillsTheQueue(t *testing.T) {
	t.Parallel()
	l := loose()
	l.RunningPerAgent, l.WaitingPerAgent, l.WaitingPerAccount = 2, 8, 5
	s := New(l)
	add := func(id, account string) bool {
		_, ok := s.Admit(jobOf(id, account))
		if ok {
			s.Add(jobOf(id, account))
		}
		return ok
	}
	for i := range 5 {
		if !add(fmt.Sprint("a", i), "a") {
			t.Fatal("refused below the bound", i)
		}
	}
	wait, ok := s.Admit(jobOf("x", "a", "", "other"))
	if ok || wait < time.Second || wait > maxWait {
		t.Errorf("over the account's bound: %v %v", wait, ok)
	}
	if !add("b0", "b") || add("b1", "b") || !add("c0", "c") || !add("d0", "d") || add("e0", "e") {
		t.Error("the last quarter of the agent's bound is not kept for accounts without waiting tasks")
	}
	s.Refuse(jobOf("x", "a"), began)
	if got := s.Snapshot(began); got.Waiting != 8 || got.Classes[Accounts].Refused != 1 || got.Accounts[0].Refused != 1 {
		t.Errorf("%+v", got)
	}
	if !s.Remove("a3") || s.Remove("a3") || !s.Remove("b0") || !s.Remove("c0") || !add("a5", "a") {
		t.Error("a removed task still counts")
	}
}

func TestAccounts_AreForgottenUnlessTheyOwe(t *testing.T) {
	t.Parallel()
	s := New(loose())
	for i := range 3 * maxIdle {
		id := fmt.Sprint(i)
		s.Start(jobOf(id, id), after(time.Duration(i)*time.Second))
		s.Free(id, after(time.Duration(i+1)*time.Second))
	}
	if len(s.accounts) > maxIdle || len(s.retired) > maxIdle {
		t.Errorf("%d accounts without tasks are kept, %d in the list", len(s.accounts), len(s.retired))
	}
}
