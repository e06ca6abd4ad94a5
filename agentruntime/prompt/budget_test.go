package prompt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/openai"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func clockAt(t time.Time) func() time.Time { return func() time.Time { return t } }

// ledger is a Ledger in memory.
type ledger struct {
	mu   sync.Mutex // guards days
	days map[string]map[string]int64
	fail error
}

func newLedger() *ledger { return &ledger{days: make(map[string]map[string]int64)} }

// Spent implements Ledger.
func (l *ledger) Spent(_ context.Context, day string) (map[string]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.days[day]), l.fail
}

// Add implements Ledger.
func (l *ledger) Add(ctx context.Context, day, who string, tokens int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil || ctx.Err() != nil {
		return errors.Join(l.fail, ctx.Err())
	}
	if l.days[day] == nil {
		l.days[day] = make(map[string]int64)
	}
	l.days[day][who] += tokens
	return nil
}

func (l *ledger) String() string { return fmt.Sprint(l.days) }

func person(id string) task.Caller { return task.Caller{Kind: "person", Handle: id, ID: id} }
func guest(id string) task.Caller  { return task.Caller{Kind: "guest", Handle: "guest", ID: id} }

// take spends n tokens and reports whether it was allowed.
func take(t *testing.T, b Budget, c task.Caller, n int) bool {
	t.Helper()
	settle, err := b.Reserve(t.Context(), c, n)
	if err != nil {
		if !fault.Is(err, fault.RateLimited) || !strings.HasSuffix(fault.As(err).Safe, "it opens again at 00:00 UTC.") {
			t.Errorf("%v", err)
		}
		return false
	}
	settle(n)
	return true
}

func TestDaily_KeepsTheShares(t *testing.T) {
	b := NewBudget(1000, clockAt(noon), newLedger())
	for _, tt := range []struct {
		who  task.Caller
		n    int
		want bool
	}{
		{guest("g1"), 20, true}, {guest("g1"), 1, false}, {guest("g2"), 21, false},
		{guest("g2"), 20, true}, {guest("g3"), 20, true}, {guest("g4"), 20, true}, {guest("g5"), 19, true},
		{guest("g6"), 2, false}, {guest("g6"), 1, true}, // a tenth together
		{task.Caller{Kind: "person", Handle: "eve@far.example", ID: "r"}, 1, false}, // spends with the guests
		{task.Caller{Kind: "portal", ID: "p"}, 1, false},
		{person("ada"), 251, false}, {person("ada"), 250, true}, {person("ada"), 1, false},
		{person("bob"), 250, true}, {task.Caller{Kind: "operator", Handle: "o", ID: "o"}, 250, true},
		{person("cyd"), 151, false}, {person("cyd"), 150, true}, // all of it
		{person("dan"), 1, false},
	} {
		if got := take(t, b, tt.who, tt.n); got != tt.want {
			t.Errorf("%s %d: %v", tt.who.ID, tt.n, got)
		}
	}
}

func TestDaily_WithoutCeilingGuestsHaveOne(t *testing.T) {
	b := NewBudget(0, clockAt(noon), newLedger())
	if !take(t, b, person("ada"), 100_000_000) {
		t.Error("an account has no ceiling")
	}
	got := 0
	for i := range 100 {
		if take(t, b, guest(fmt.Sprint(i)), 30_000) {
			got += 30_000
		}
	}
	if got != 180_000 || take(t, b, guest("one"), 40_001) {
		t.Errorf("guests got %d", got)
	}
}

func TestDaily_OpensAgainAtMidnight(t *testing.T) {
	now := noon
	b := NewBudget(1000, func() time.Time { return now }, newLedger())
	if !take(t, b, person("ada"), 250) || take(t, b, person("ada"), 1) {
		t.Fatal("the share is not kept")
	}
	_, err := b.Reserve(t.Context(), person("ada"), 1)
	if f := fault.As(err); f.RetryAfter != 12*time.Hour {
		t.Errorf("again in %v", f.RetryAfter)
	}
	now = noon.Add(12*time.Hour - time.Nanosecond)
	if take(t, b, person("ada"), 1) {
		t.Error("a moment early")
	}
	late, err := b.Reserve(t.Context(), person("bob"), 250)
	if err != nil {
		t.Fatal(err)
	}
	now = noon.Add(12 * time.Hour)
	if !take(t, b, person("ada"), 250) {
		t.Error("closed after midnight")
	}
	late(10) // of yesterday
	if !take(t, b, person("bob"), 250) || take(t, b, person("bob"), 1) {
		t.Error("yesterday's question counts today")
	}
	if _, err := b.Reserve(t.Context(), person("dan"), 250); err != nil {
		t.Fatal(err)
	}
	now = noon
	if take(t, b, person("dan"), 1) {
		t.Error("a clock that goes back opens a second budget")
	}
}

func TestDaily_SettlesWhatWasUsedOnce(t *testing.T) {
	l := newLedger()
	b := NewBudget(1000, clockAt(noon), l)
	settle, err := b.Reserve(t.Context(), person("ada"), 250)
	if err != nil {
		t.Fatal(err)
	}
	if take(t, b, person("ada"), 1) {
		t.Error("what is set aside can be spent")
	}
	settle(100)
	settle(100)
	if !take(t, b, person("ada"), 150) || take(t, b, person("ada"), 1) {
		t.Error("what is left is not 150")
	}
	if got := l.String(); got != "map[2026-11-20:map[account:ada:250]]" {
		t.Error(got)
	}
	free, _ := b.Reserve(t.Context(), guest("g"), 10)
	free(0)
	free, _ = b.Reserve(t.Context(), guest("g"), 10)
	free(-5)
	if got := l.String(); strings.Contains(got, "guest") {
		t.Error(got)
	}
}

func TestDaily_RemembersOverARestart(t *testing.T) {
	l := newLedger()
	b := NewBudget(1000, clockAt(noon), l)
	take(t, b, person("ada"), 250)
	take(t, b, guest("g1"), 20)
	b = NewBudget(1000, clockAt(noon), l)
	if take(t, b, person("ada"), 1) || take(t, b, guest("g1"), 1) || !take(t, b, guest("g2"), 20) {
		t.Error("what was spent is forgotten")
	}
}

func TestDaily_WritesLaterWhatTheLedgerDidNotTake(t *testing.T) {
	l := newLedger()
	b := NewBudget(1000, clockAt(noon), l)
	take(t, b, person("ada"), 10)
	l.fail = errors.New("disk full")
	take(t, b, person("ada"), 20)
	l.fail = nil
	ctx, cancel := context.WithCancel(t.Context())
	settle, err := b.Reserve(ctx, person("ada"), 30)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // who stops a question pays for it
	settle(30)
	if got := l.String(); got != "map[2026-11-20:map[account:ada:60]]" {
		t.Error(got)
	}
	l.fail = errors.New("disk full")
	if _, err := NewBudget(1000, clockAt(noon), l).Reserve(t.Context(), person("ada"), 1); !errors.Is(err, l.fail) {
		t.Errorf("%v", err)
	}
}

func TestDaily_RemembersBoundedly(t *testing.T) {
	b := NewBudget(0, clockAt(noon), newLedger())
	for i := range maxSpenders + 100 {
		take(t, b, guest(fmt.Sprint(i)), 1)
	}
	if n := len(b.spent); n > maxSpenders+2 {
		t.Errorf("%d spenders", n)
	}
}

func TestDaily_IsNeverOverspent(t *testing.T) {
	b := NewBudget(10_000, clockAt(noon), newLedger())
	var wg sync.WaitGroup
	var mu sync.Mutex
	spent := 0
	for i := range 40 {
		wg.Go(func() {
			for range 100 {
				if take(t, b, person(fmt.Sprint(i)), 7) {
					mu.Lock()
					spent += 7
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if spent > 10_000 || spent < 10_000-7 {
		t.Errorf("%d spent", spent)
	}
}

// onPortal makes w's agent one of the portal's own model.
func (w *world) onPortal(b Budget) {
	w.d = New(Config{RT: transport(w.t), Models: oneModel(w.s.Base(agenttest.Scripted), "sk-portal", "house"), Budget: b})
	w.cfg.Model, w.cfg.Tools = "", nil
}

func TestRun_ThePortalsModelIsPaidFor(t *testing.T) {
	l := newLedger()
	w := newWorld(t, nil, agenttest.Turn{Text: "Hi.", Usage: &openai.Usage{TotalTokens: 77}}, agenttest.Turn{Text: "Hi."}, agenttest.Turn{Status: 500})
	w.onPortal(NewBudget(100_000, clockAt(noon), l))
	call := w.call("hello")
	call.Agent.Endpoint = ""
	for range 3 {
		w.run(call)
	}
	reqs, headers := w.s.Requests()
	if reqs[0].Model != "house" || reqs[0].MaxTokens != portalTokens || headers[0].Get("Authorization") != "Bearer sk-portal" {
		t.Errorf("%+v %v", reqs[0], headers[0])
	}
	spent := l.days["2026-11-20"]["account:1"]
	if guess := spent - 77; guess < 200 || guess > 1000 { // the second; the third failed
		t.Errorf("%d tokens", spent)
	}
	w.cfg.MaxTokens = 1 << 20
	w.run(func() task.Call { c := w.call("x"); c.Agent.Endpoint = ""; return c }())
	if reqs, _ = w.s.Requests(); reqs[3].MaxTokens != portalTokens {
		t.Errorf("asked for %d tokens", reqs[3].MaxTokens)
	}
}

func TestRun_SaysThatTheBudgetIsUsedUp(t *testing.T) {
	w := newWorld(t, nil, agenttest.Turn{Text: "Hi."})
	w.onPortal(NewBudget(100, clockAt(noon), newLedger()))
	call := w.call("hello")
	call.Agent.Endpoint = ""
	res, _ := w.run(call)
	if res.State != task.Failed || res.Reason != "The portal's model has used up today's budget; it opens again at 00:00 UTC." {
		t.Errorf("%+v", res)
	}
	// The owner's model is the owner's to pay.
	w.cfg.Model = "m"
	if res, _ = w.run(w.call("hello")); res.State != task.Completed {
		t.Errorf("%+v", res)
	}
	if _, headers := w.s.Requests(); len(headers) != 1 || headers[0].Get("Authorization") != "Bearer sk-owner" {
		t.Errorf("%v", headers)
	}
}

func TestRun_StoppedQuestionsCost(t *testing.T) {
	l := newLedger()
	w := newWorld(t, nil, agenttest.Turn{Hang: true})
	w.onPortal(NewBudget(1<<30, clockAt(noon), l))
	call := w.call("hello")
	call.Agent.Endpoint = ""
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-w.s.Started
		cancel()
	}()
	if _, err := w.d.Run(ctx, call, &agenttest.Recorder{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if spent := l.days["2026-11-20"]["account:1"]; spent < 200 {
		t.Errorf("%d tokens", spent)
	}
}
