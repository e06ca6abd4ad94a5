package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// model repeats the rules by counting all tasks anew for every question.
type model struct {
	t       *testing.T
	l       Limits
	s       *Scheduler
	now     time.Time
	waiting []Job
	running []Job
	gone    map[string]bool // abandoned tasks, also in running
	paused  map[string]bool // also in running
}

func count(list []Job, which func(Job) bool) int {
	n := 0
	for _, j := range list {
		if which(j) {
			n++
		}
	}
	return n
}

// blocked returns the rule that keeps a waiting task from starting, "" for none.
func (m *model) blocked(j Job) string {
	mine := func(o Job) bool { return o.Class == j.Class && o.Account == j.Account }
	holds := slices.DeleteFunc(slices.Clone(m.running), func(o Job) bool { return m.paused[o.ID] })
	here := func(o Job) bool { return !m.gone[o.ID] }
	all := count(holds, here)
	agent := count(holds, func(o Job) bool { return o.Agent == j.Agent })
	provider := count(holds, func(o Job) bool { return o.Provider == j.Provider })
	mineAll := count(holds, mine)
	mineAgent := count(holds, func(o Job) bool { return mine(o) && o.Agent == j.Agent })
	mineProvider := count(holds, func(o Job) bool { return mine(o) && o.Provider == j.Provider })
	first := m.waiting[slices.IndexFunc(m.waiting, func(o Job) bool { return o.Conversation == j.Conversation && o.Agent == j.Agent })]
	switch {
	case first.ID != j.ID:
		return "an earlier task of the mailbox waits"
	case count(m.running, func(o Job) bool { return here(o) && o.Conversation == j.Conversation && o.Agent == j.Agent }) > 0:
		return "the mailbox is busy"
	case all >= m.l.Running || all == m.l.Running-1 && mineAll > 0:
		return "the portal is full"
	case agent >= m.l.RunningPerAgent || agent == m.l.RunningPerAgent-1 && mineAgent > 0:
		return "the agent is full"
	case provider >= m.l.RunningPerProvider || provider == m.l.RunningPerProvider-1 && mineProvider > 0:
		return "the provider is full"
	case mineAll >= m.l.RunningPerAccount || mineAll >= halfOf(m.l.Running):
		return "the account is full"
	case mineAgent >= halfOf(m.l.RunningPerAgent) || mineProvider >= halfOf(m.l.RunningPerProvider):
		return "the account has half of the agent or provider"
	case count(holds, func(o Job) bool { return o.Owner == j.Owner }) >= m.l.RunningPerOwner:
		return "the owner is full"
	case count(holds, func(o Job) bool { return here(o) && o.Conversation == j.Conversation }) >= m.l.RunningPerRoom:
		return "the room is full"
	}
	return ""
}

func (m *model) dispatch() {
	for {
		j, ok := m.s.Next(m.now)
		if !ok {
			break
		}
		at := slices.IndexFunc(m.waiting, func(o Job) bool { return o == j })
		if at < 0 {
			m.t.Fatalf("%+v starts and does not wait", j)
		}
		if why := m.blocked(j); why != "" {
			m.t.Fatalf("%+v starts although %s; limits %+v, running %+v, abandoned %v", j, why, m.l, m.running, m.gone)
		}
		m.waiting = slices.Delete(m.waiting, at, at+1)
		m.running = append(m.running, j)
	}
	for i, j := range m.waiting {
		if m.blocked(j) == "" {
			m.t.Fatalf("%+v could start and does not", j)
		}
		want := count(m.waiting[:i], func(o Job) bool {
			return o.Class == j.Class && o.Account == j.Account && o.Background == j.Background && o.Agent == j.Agent
		})
		if before, wait, ok := m.s.Turn(j.ID); !ok || before != want || wait < minWait {
			m.t.Fatalf("%+v has %d before it and waits %s, want %d", j, before, wait, want)
		}
	}
}

// TestScheduler_KeepsItsRules compares random runs with the model: no start above a bound, none of a kept
// place, and none is left out that may start.
func TestScheduler_KeepsItsRules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		few := func(n int) int { return 1 + r.IntN(n) }
		l := Limits{Running: 1 + few(12), RunningPerAccount: few(8), RunningPerRoom: few(5), RunningPerAgent: few(6),
			RunningPerOwner: few(8), RunningPerProvider: few(8)}
		m := &model{t: t, l: l, s: New(l), now: began, gone: make(map[string]bool), paused: make(map[string]bool)}
		for step := range 600 {
			m.now = m.now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			switch k := r.IntN(14); {
			case k < 5 && len(m.waiting) < 60:
				agent := r.IntN(8)
				j := Job{ID: fmt.Sprint(step), Conversation: fmt.Sprint("r", r.IntN(12)), Agent: fmt.Sprint("x", agent),
					Owner: fmt.Sprint("o", agent%3), Provider: fmt.Sprint("h", agent%4), Class: Class(r.IntN(classes)),
					Account: fmt.Sprint("a", r.IntN(4)), Background: r.IntN(4) == 0}
				if !m.s.Add(j) || m.s.Add(j) {
					t.Fatal("added twice or not at all")
				}
				m.waiting = append(m.waiting, j)
			case k < 8 && len(m.running) > 0:
				i := r.IntN(len(m.running))
				m.s.Free(m.running[i].ID, m.now)
				delete(m.gone, m.running[i].ID)
				delete(m.paused, m.running[i].ID)
				m.running = slices.Delete(m.running, i, i+1)
			case k == 8 && len(m.running) > 0:
				id := m.running[r.IntN(len(m.running))].ID
				m.s.Abandon(id, m.now)
				m.gone[id] = true
				delete(m.paused, id)
			case k > 9 && len(m.running) > 0:
				id := m.running[r.IntN(len(m.running))].ID
				if m.paused[id] {
					m.s.Resume(id, m.now)
					delete(m.paused, id)
				} else {
					m.s.Pause(id, m.now) // does nothing for an abandoned task
					m.paused[id] = !m.gone[id]
					if !m.paused[id] {
						delete(m.paused, id)
					}
				}
			case k == 9 && len(m.waiting) > 0:
				i := r.IntN(len(m.waiting))
				if !m.s.Remove(m.waiting[i].ID) {
					t.Fatal("a waiting task is not removed")
				}
				m.waiting = slices.Delete(m.waiting, i, i+1)
			}
			m.dispatch()
			if got := m.s.Snapshot(m.now); got.Waiting != len(m.waiting) || got.Running != len(m.running)-len(m.gone)-len(m.paused) {
				t.Fatalf("seed %d: %d wait and %d run, want %d and %d", seed, got.Waiting, got.Running, len(m.waiting), len(m.running)-len(m.gone)-len(m.paused))
			}
		}
		for _, j := range m.waiting {
			m.s.Remove(j.ID)
		}
		for _, j := range m.running {
			m.s.Free(j.ID, m.now)
		}
		s := m.s
		if n := len(s.entries) + len(s.agents) + len(s.owners) + len(s.providers) + len(s.rooms) + len(s.lanes) +
			len(s.mailboxes) + len(s.flows) + len(s.lines) + len(s.held) + s.running + s.waiting; n != 0 {
			t.Fatalf("seed %d: %d records are left", seed, n)
		}
	}
}

// backlog keeps a number of tasks of each user waiting and runs them for a virtual time.
type backlog struct {
	s     *Scheduler
	users []*user
	now   time.Duration
	ends  map[string]ending
	next  int
}

type user struct {
	class      Class
	name       string
	background bool
	agents     []string
	length     time.Duration
	used       time.Duration
	started    int
	longest    time.Duration // between two starts
	last       time.Duration
}

type ending struct {
	at time.Duration
	by *user
}

func (b *backlog) run(until time.Duration) {
	byID := make(map[string]*user)
	for _, u := range b.users {
		for i := range 40 {
			b.add(u, i, byID)
		}
	}
	for b.now < until {
		for {
			j, ok := b.s.Next(after(b.now))
			if !ok {
				break
			}
			u := byID[j.ID]
			delete(byID, j.ID)
			u.started++
			u.longest = max(u.longest, b.now-u.last)
			u.last = b.now
			b.ends[j.ID] = ending{b.now + u.length, u}
			b.add(u, u.started, byID)
		}
		first := ""
		for id, e := range b.ends {
			if first == "" || e.at < b.ends[first].at || e.at == b.ends[first].at && id < first {
				first = id
			}
		}
		e := b.ends[first]
		delete(b.ends, first)
		b.now = e.at
		e.by.used += e.by.length
		b.s.Free(first, after(b.now))
	}
}

func (b *backlog) add(u *user, i int, byID map[string]*user) {
	b.next++
	id := fmt.Sprintf("%08d", b.next)
	byID[id] = u
	agent := u.agents[i%len(u.agents)]
	b.s.Add(Job{ID: id, Conversation: id, Agent: agent, Owner: "o", Provider: "", Class: u.class, Account: u.name, Background: u.background})
}

// TestScheduler_SharesPlaceSeconds has accounts of tasks of very different lengths in a full portal.
func TestScheduler_SharesPlaceSeconds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 2))
		l := loose()
		n := 4 + r.IntN(6)
		l.Running = 2*n + r.IntN(4*n)
		b := &backlog{s: New(l), ends: make(map[string]ending)}
		longest := time.Duration(0)
		for i := range n {
			u := &user{class: Accounts, name: fmt.Sprint("a", i), agents: []string{"x", fmt.Sprint("y", i)},
				length: time.Duration(1+r.IntN(9)) * time.Second}
			longest = max(longest, u.length)
			b.users = append(b.users, u)
		}
		b.run(100 * longest)
		total := time.Duration(0)
		for _, u := range b.users {
			total += u.used
		}
		fair := total / time.Duration(n)
		for _, u := range b.users {
			if d := u.used - fair; max(d, -d) > fair/10 {
				t.Errorf("seed %d, %d places: %s with tasks of %s used %s, its share is %s", seed, l.Running, u.name, u.length, u.used, fair)
			}
		}
	}
}

// TestScheduler_SharesBetweenClassesFirst has one account, many guests and two portals.
func TestScheduler_SharesBetweenClassesFirst(t *testing.T) {
	t.Parallel()
	l := loose()
	l.Running = 60
	b := &backlog{s: New(l), ends: make(map[string]ending)}
	add := func(c Class, n int) {
		for i := range n {
			b.users = append(b.users, &user{class: c, name: fmt.Sprint(c, i), agents: []string{"x"}, length: time.Duration(1+i%3) * time.Second})
		}
	}
	add(Accounts, 2)
	add(Guests, 8)
	add(Portals, 2)
	b.run(300 * time.Second)
	by, total := make(map[Class]time.Duration), time.Duration(0)
	for _, u := range b.users {
		by[u.class] += u.used
		total += u.used
	}
	for c, used := range by {
		if d := used - total/3; max(d, -d) > total/30 {
			t.Errorf("%s used %s of %s", c, used, total)
		}
	}
}

// TestScheduler_StarvesNobody has a portal, agents and a provider that are always full, and background
// work beside people.
func TestScheduler_StarvesNobody(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 3))
		l := loose()
		l.Running, l.RunningPerAgent, l.RunningPerOwner = 4+r.IntN(8), 2+r.IntN(4), 12
		b := &backlog{s: New(l), ends: make(map[string]ending)}
		for i := range 10 {
			agents := []string{"x"}
			if i%3 > 0 {
				agents = []string{"x", "y", "z"}[:1+r.IntN(3)]
			}
			b.users = append(b.users, &user{class: Class(i % classes), name: fmt.Sprint("a", i/2), background: i%4 == 3, agents: agents,
				length: time.Duration(1+r.IntN(5)) * time.Second})
		}
		b.run(2000 * time.Second)
		for i, u := range b.users {
			u.longest = max(u.longest, b.now-u.last)
			if most := 10 * time.Minute; u.longest > most {
				t.Errorf("seed %d: user %d (background %v) waited %s for its next start, %d started", seed, i, u.background, u.longest, u.started)
			}
		}
	}
}

// TestScheduler_WorkElsewhereCostsNoTurn has a guest that keeps an agent of its own busy, and another guest
// that asks an agent which accounts keep full. The portal has free places.
func TestScheduler_WorkElsewhereCostsNoTurn(t *testing.T) {
	t.Parallel()
	l := loose()
	l.Running, l.RunningPerAgent = 200, 8
	b := &backlog{s: New(l), ends: make(map[string]ending)}
	busy := &user{class: Guests, name: "busy", agents: []string{"own 1", "own 2", "own 3", "own 4"}, length: 5 * time.Second}
	other := &user{class: Guests, name: "other", agents: []string{"x"}, length: 5 * time.Second}
	b.users = append(b.users, busy, other)
	for i := range 20 {
		b.users = append(b.users, &user{class: Accounts, name: fmt.Sprint("a", i), agents: []string{"x"}, length: 5 * time.Second})
	}
	b.run(1000 * time.Second)
	other.longest = max(other.longest, b.now-other.last)
	if other.longest > 30*time.Second || other.used < 1000*time.Second {
		t.Errorf("the other guest waited %s and used %s", other.longest, other.used)
	}
}

// BenchmarkNext measures a decision and the end of a task while 100,000 tasks of 1,000 accounts wait.
func BenchmarkNext(b *testing.B) {
	l := Limits{Running: 512, RunningPerAccount: 64, RunningPerRoom: 64, RunningPerAgent: 32, RunningPerOwner: 128, RunningPerProvider: 128,
		Waiting: 200_000}
	r := rand.New(rand.NewPCG(1, 4))
	s, next := New(l), 0
	add := func(account int) {
		agent := r.IntN(100)
		s.Add(Job{ID: fmt.Sprint("task", next), Conversation: fmt.Sprint("c", next/2), Agent: fmt.Sprint("agent", agent),
			Owner: fmt.Sprint("owner", agent%40), Provider: fmt.Sprint("host", agent%7), Class: Class(account % 3), Account: fmt.Sprint("account", account)})
		next++
	}
	for range 100_000 {
		add(next % 1000)
	}
	now := began
	var running []Job
	for b.Loop() {
		now = now.Add(2 * time.Millisecond)
		for {
			j, ok := s.Next(now)
			if !ok {
				break
			}
			running = append(running, j)
		}
		i := r.IntN(len(running))
		s.Free(running[i].ID, now)
		running[i] = running[len(running)-1]
		running = running[:len(running)-1]
		add(next % 1000)
	}
	b.ReportMetric(float64(len(s.entries)), "tasks")
}
