package liveness

import (
	"agentsite/internal/hub"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// history is contacts a minute apart; a is alive, u unreachable, w wrong
// protocol, n needs auth.
func history(states string) (h []hub.Contact) {
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for _, c := range states {
		h = append(h, hub.Contact{At: at, State: map[rune]hub.Live{'a': hub.Alive, 'u': hub.Unreachable, 'w': hub.WrongProtocol, 'n': hub.NeedsAuth, '?': hub.Unknown}[c]})
		at = at.Add(time.Minute)
	}
	return h
}

func TestPlan_WaitsAsLongAsItIsBelieved(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		history  string
		failures int
		state    hub.Live
		status   string
		want     time.Duration
		failed   int
	}{
		{"", 0, hub.Alive, hub.Active, 5 * time.Minute, 0},
		{"aa", 0, hub.Alive, hub.Active, 5 * time.Minute, 0},
		{"aaa", 0, hub.Alive, hub.Active, 10 * time.Minute, 0},
		{"aaaaaa", 0, hub.Alive, hub.Active, 20 * time.Minute, 0},
		{strings.Repeat("a", 12), 0, hub.Alive, hub.Active, 30 * time.Minute, 0},
		{strings.Repeat("a", 200), 0, hub.Alive, hub.Active, 30 * time.Minute, 0},
		{"", 0, hub.Unreachable, hub.Active, time.Minute, 1},
		{"u", 1, hub.Unreachable, hub.Active, 2 * time.Minute, 2},
		{"uu", 2, hub.Unreachable, hub.Active, 5 * time.Minute, 3},
		{"uuuuu", 5, hub.Unreachable, hub.Active, time.Hour, 6},
		{strings.Repeat("u", 8), 8, hub.Unreachable, hub.Active, 6 * time.Hour, 9},
		{strings.Repeat("u", 200), 1000, hub.Unreachable, hub.Active, 6 * time.Hour, 1001},
		{"n", 1, hub.NeedsAuth, hub.Active, 2 * time.Minute, 2},
		{"", 0, hub.Unknown, hub.Active, time.Minute, 1},
		// What changed is looked at again soon, whatever it changed to.
		{"aaaaaaaaaaaaaaa", 0, hub.Unreachable, hub.Active, 45 * time.Second, 1},
		{"a", 0, hub.WrongProtocol, hub.Active, 45 * time.Second, 1},
		{"uuuuuuuuuuuu", 12, hub.Alive, hub.Active, 45 * time.Second, 0},
		{"uuuuuuuuuuuu", 12, hub.NeedsAuth, hub.Active, 45 * time.Second, 13},
		{"uuua", 0, hub.Alive, hub.Active, 5 * time.Minute, 0},
		// What changes every time does not make anybody hurry.
		{"auau", 1, hub.Alive, hub.Active, 5 * time.Minute, 0},
		{"auaua", 0, hub.Unreachable, hub.Active, time.Minute, 1},
		{"uwuw", 4, hub.Unreachable, hub.Active, 30 * time.Minute, 5},
		// Few people look for these.
		{"aaa", 0, hub.Alive, hub.StatusDraft, time.Hour, 0},
		{"aaa", 0, hub.Unreachable, hub.Deprecated, time.Hour, 1},
		{"uuuuuuuuuuuu", 12, hub.Unreachable, hub.Deprecated, 6 * time.Hour, 13},
	} {
		now := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
		c := hub.Checkup{Agent: hub.Agent{Kind: hub.A2A, Status: hub.Status{State: tt.status}}, Failures: tt.failures, History: history(tt.history)}
		next, failures := planNext(c, tt.state, now, 0.5)
		if next.Sub(now) != tt.want || failures != tt.failed {
			t.Errorf("%s then %s (%s): %v, %d; want %v, %d", tt.history, tt.state, tt.status, next.Sub(now), failures, tt.want, tt.failed)
		}
		early, _ := planNext(c, tt.state, now, 0)
		late, _ := planNext(c, tt.state, now, 1)
		if d := early.Sub(now) - tt.want*9/10; d.Abs() > time.Millisecond {
			t.Errorf("%s: earliest %v", tt.history, early.Sub(now))
		}
		if d := late.Sub(now) - tt.want*11/10; d.Abs() > time.Millisecond {
			t.Errorf("%s: latest %v", tt.history, late.Sub(now))
		}
	}
	for _, k := range []hub.Kind{hub.Link, hub.Builtin} {
		if next, failures := planNext(hub.Checkup{Agent: hub.Agent{Kind: k}, Failures: 3}, hub.Unreachable, time.Now(), 0); !next.IsZero() || failures != 0 {
			t.Errorf("%s is asked at %v", k, next)
		}
	}
}

func TestDaily_OnceADayAtATimeOfItsOwn(t *testing.T) {
	t.Parallel()
	turns := make(map[time.Time]int)
	for i := range 200 {
		id, n := fmt.Sprintf("01JAGENT%018d", i*7919), 0
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 3 * 48 {
			before := at
			if at = at.Add(30 * time.Minute); isDaily(id, before, at) {
				n++
				turns[at.Truncate(24*time.Hour).Add(time.Duration(at.Hour())*time.Hour)]++
			}
		}
		if n != 3 {
			t.Errorf("%s had %d turns in three days", id, n)
		}
	}
	for at, n := range turns {
		if n > 60 {
			t.Errorf("%d of 200 agents have their turn at %v", n, at)
		}
	}
	if isDaily("x", time.Unix(1000, 0), time.Unix(1001, 0)) {
		t.Error("twice in a second")
	}
}

// replayed are the notices that contacts at minutes make, by minute.
func replayed(link bool, states string, minutes ...int) (out []string) {
	o := &outage{link: link}
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for i, c := range history(states) {
		c.At = start.Add(time.Duration(minutes[i]) * time.Minute)
		if kind := o.addContact(c); kind != "" {
			out = append(out, fmt.Sprintf("%s@%d", kind, minutes[i]))
		}
	}
	return out
}

func TestOutage_IsToldOnceAndWhenItIsOver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		states  string
		minutes []int
		want    string
	}{
		{"aau", []int{0, 5, 10}, ""},                                                      // not confirmed
		{"aauu", []int{0, 5, 10, 12}, ""},                                                 // not long enough
		{"aauuu", []int{0, 5, 10, 12, 13}, "down@13"},                                     //
		{"aauuuuuu", []int{0, 5, 10, 12, 13, 15, 60, 600}, "down@13"},                     // once
		{"aauuuua", []int{0, 5, 10, 12, 13, 15, 16}, "down@13 up@16"},                     //
		{"aaua", []int{0, 5, 10, 60}, ""},                                                 // was not told, is not told
		{"aanwu", []int{0, 5, 10, 11, 14}, "down@14"},                                     // whatever is wrong with it
		{"uuuuu", []int{0, 5, 10, 20, 30}, ""},                                            // it never was alive
		{"uuuua", []int{0, 5, 10, 20, 30}, ""},                                            //
		{"a??u?uu", []int{0, 1, 2, 3, 4, 5, 6}, "down@6"},                                 // who knows nothing says nothing
		{"auuauuuauuua", []int{0, 1, 5, 6, 7, 11, 20, 21, 30, 40, 64, 70}, "down@5 up@6"}, // an hour between two
		{"auuauuua", []int{0, 1, 5, 6, 7, 50, 65, 70}, "down@5 up@6 down@65 up@70"},       // it lasts: then all the same
	} {
		if got := strings.Join(replayed(false, tt.states, tt.minutes...), " "); got != tt.want {
			t.Errorf("%s %v: %q, want %q", tt.states, tt.minutes, got, tt.want)
		}
	}
	// A linked agent has no contacts while it is away.
	for _, tt := range []struct {
		states  string
		minutes []int
		want    string
	}{
		{"aua", []int{0, 5, 14}, ""},
		{"aua", []int{0, 5, 15}, "up@15"},
		{"auuua", []int{0, 5, 6, 7, 30}, "up@30"},
		{"auaua", []int{0, 5, 20, 21, 40}, "up@20"},
		{"auaua", []int{0, 5, 20, 21, 75}, "up@20 up@75"},
	} {
		if got := strings.Join(replayed(true, tt.states, tt.minutes...), " "); got != tt.want {
			t.Errorf("link %s %v: %q, want %q", tt.states, tt.minutes, got, tt.want)
		}
	}
	long := replayOutage(hub.Checkup{History: slices.Repeat(history("u"), hub.MaxHistory)})
	if got := long.addContact(hub.Contact{At: time.Now(), State: hub.Unreachable}); got != "" {
		t.Errorf("told again after a long time: %s", got)
	}
	if got := long.addContact(hub.Contact{At: time.Now(), State: hub.Alive}); got != hub.NoticeUp {
		t.Errorf("back after a long time: %q", got)
	}
}

func TestRounds_HostsTakeTurns(t *testing.T) {
	t.Parallel()
	r, now := newRounds(), time.Now()
	for i := range 500 {
		r.addVisit(&visit{agent: fmt.Sprint("slow", i), host: "slow"})
	}
	for i := range 50 {
		r.addVisit(&visit{agent: fmt.Sprint("good", i), host: fmt.Sprint("good", i)})
	}
	var order []string
	for {
		v, _ := r.nextVisit(now)
		if v == nil {
			break
		}
		order = append(order, v.host)
	}
	if len(order) != probesAtOnce || strings.Count(strings.Join(order, " "), "slow") != 1 {
		t.Fatalf("under way: %v", order)
	}
	// The second visit to a host begins a moment after the first.
	if v, wait := r.nextVisit(now); v != nil || wait != 0 {
		t.Errorf("%v %v", v, wait)
	}
	for _, host := range order[1:] {
		r.endVisit(r.visits[host])
	}
	if r.busy != 1 {
		t.Errorf("%d under way", r.busy)
	}
	seen := 0
	for range 200 {
		v, wait := r.nextVisit(now)
		if v == nil {
			now = now.Add(max(wait, time.Millisecond))
			continue
		}
		if v.host != "slow" {
			seen++
			r.endVisit(v)
		}
	}
	if seen != 35 {
		t.Errorf("%d good hosts were visited after the first 15", seen)
	}
	if slow := r.hosts["slow"]; slow.running != hostAtOnce {
		t.Errorf("%d visits to the slow host", slow.running)
	}
}

func TestRounds_WhoIsWaitedForGoesFirst(t *testing.T) {
	t.Parallel()
	r, now := newRounds(), time.Now()
	for i := range 10 {
		r.addVisit(&visit{agent: fmt.Sprint(i), host: "h", version: 1})
	}
	first, _ := r.nextVisit(now)
	if v, wait := r.nextVisit(now); v != nil || wait != hostGap {
		t.Errorf("%v %v", v, wait)
	}
	// Waiting in the queue, under way, and under way in an older version.
	done := make(chan hub.Liveness, 3)
	r.addVisit(&visit{agent: "9", host: "h", version: 1, waiters: []chan hub.Liveness{done}})
	if v, _ := r.nextVisit(now); v == nil || v.agent != "9" {
		t.Errorf("%+v goes first", v)
	}
	r.addVisit(&visit{agent: "0", host: "h", version: 1, waiters: []chan hub.Liveness{done}})
	if v, _ := r.nextVisit(now); v != nil {
		t.Error("an exchange is made twice")
	}
	r.noteResult(first, hub.Liveness{State: hub.NeedsAuth}, connected, 0, now)
	if l := <-done; l.State != hub.NeedsAuth {
		t.Error(l)
	}
	r.addVisit(&visit{agent: "0", host: "h", version: 2, waiters: []chan hub.Liveness{done}})
	if v, _ := r.nextVisit(now); v == nil || v.version != 2 {
		t.Errorf("%+v", v)
	}
	if r.waiting != 8 || r.busy != 3 {
		t.Errorf("%d wait, %d are under way", r.waiting, r.busy)
	}
}

func TestRounds_NothingIsKeptOfHostsThatAreFine(t *testing.T) {
	t.Parallel()
	r, now := newRounds(), time.Now()
	for i := range 3 * maxHosts {
		host := fmt.Sprint("h", i)
		r.addVisit(&visit{agent: host, host: host})
		v, _ := r.nextVisit(now)
		showed := connected
		if i%2 == 0 {
			showed = missed
		}
		r.noteResult(v, hub.Liveness{State: hub.Alive}, showed, 0, now)
		r.endVisit(v)
	}
	if len(r.hosts) > maxHosts || len(r.turn) != 0 || len(r.visits) != 0 || r.busy != 0 || r.waiting != 0 {
		t.Errorf("%d hosts, %d turns, %d visits, %d, %d", len(r.hosts), len(r.turn), len(r.visits), r.busy, r.waiting)
	}
	for i := range maxWaiting + 10 {
		if r.addVisit(&visit{agent: fmt.Sprint("a", i), host: "one"}) != (i < maxWaiting) {
			t.Fatal(i)
		}
	}
}
