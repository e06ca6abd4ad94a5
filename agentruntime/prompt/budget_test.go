package prompt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agentruntime/model"
	"agentsite/internal/fault"
	"agentsite/internal/openai"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/usage"
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
	settle, err := reserve(t.Context(), b, c, n)
	if err != nil {
		if !fault.Is(err, fault.RateLimited) || !strings.HasSuffix(fault.As(err).Safe, "it opens again at 00:00 UTC.") {
			t.Errorf("%v", err)
		}
		return false
	}
	settle(n)
	return true
}

// reserve sets n tokens aside, for a question and an answer to a model that costs a millionth of a dollar a token.
func reserve(ctx context.Context, b Budget, c task.Caller, n int) (settle func(used int), err error) {
	half := func(n int) model.Used { return model.Used{Input: n / 2, Output: n - n/2} }
	done, err := b.Reserve(ctx, c, model.Terms{Name: "m", Price: usage.Price{Input: 1, Output: 1}}, half(n))
	return func(used int) { done(half(used)) }, err
}

func TestDaily_KeepsTheShares(t *testing.T) {
	for _, unit := range []string{"", "USD"} {
		keepShares(t, NewBudget(usage.Budget{Most: 1000, Currency: unit}, pricesOf(t, `{}`), clockAt(noon), newLedger()))
	}
}

// pricesOf returns the prices in a file with that text.
func pricesOf(t *testing.T, text string) *usage.Prices {
	path := filepath.Join(t.TempDir(), usage.PricesFile)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return usage.NewPrices(path, clockAt(noon), slog.New(slog.DiscardHandler))
}

// keepShares spends a budget of 1000.
func keepShares(t *testing.T, b Budget) {
	t.Helper()
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
	b := NewBudget(usage.Budget{Most: 0}, nil, clockAt(noon), newLedger())
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
	b := NewBudget(usage.Budget{Most: 1000}, nil, func() time.Time { return now }, newLedger())
	if !take(t, b, person("ada"), 250) || take(t, b, person("ada"), 1) {
		t.Fatal("the share is not kept")
	}
	_, err := reserve(t.Context(), b, person("ada"), 1)
	if f := fault.As(err); f.RetryAfter != 12*time.Hour {
		t.Errorf("again in %v", f.RetryAfter)
	}
	now = noon.Add(12*time.Hour - time.Nanosecond)
	if take(t, b, person("ada"), 1) {
		t.Error("a moment early")
	}
	late, err := reserve(t.Context(), b, person("bob"), 250)
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
	if _, err := reserve(t.Context(), b, person("dan"), 250); err != nil {
		t.Fatal(err)
	}
	now = noon
	if take(t, b, person("dan"), 1) {
		t.Error("a clock that goes back opens a second budget")
	}
}

func TestDaily_SettlesWhatWasUsedOnce(t *testing.T) {
	l := newLedger()
	b := NewBudget(usage.Budget{Most: 1000}, nil, clockAt(noon), l)
	settle, err := reserve(t.Context(), b, person("ada"), 250)
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
	free, _ := reserve(t.Context(), b, guest("g"), 10)
	free(0)
	free, _ = reserve(t.Context(), b, guest("g"), 10)
	free(-5)
	if got := l.String(); strings.Contains(got, "guest") {
		t.Error(got)
	}
}

func TestDaily_RemembersOverARestart(t *testing.T) {
	l := newLedger()
	b := NewBudget(usage.Budget{Most: 1000}, nil, clockAt(noon), l)
	take(t, b, person("ada"), 250)
	take(t, b, guest("g1"), 20)
	b = NewBudget(usage.Budget{Most: 1000}, nil, clockAt(noon), l)
	if take(t, b, person("ada"), 1) || take(t, b, guest("g1"), 1) || !take(t, b, guest("g2"), 20) {
		t.Error("what was spent is forgotten")
	}
}

func TestDaily_WritesLaterWhatTheLedgerDidNotTake(t *testing.T) {
	l := newLedger()
	b := NewBudget(usage.Budget{Most: 1000}, nil, clockAt(noon), l)
	take(t, b, person("ada"), 10)
	l.fail = errors.New("disk full")
	take(t, b, person("ada"), 20)
	l.fail = nil
	ctx, cancel := context.WithCancel(t.Context())
	settle, err := reserve(ctx, b, person("ada"), 30)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // who stops a question pays for it
	settle(30)
	if got := l.String(); got != "map[2026-11-20:map[account:ada:60]]" {
		t.Error(got)
	}
	l.fail = errors.New("disk full")
	if _, err := reserve(t.Context(), NewBudget(usage.Budget{Most: 1000}, nil, clockAt(noon), l), person("ada"), 1); !errors.Is(err, l.fail) {
		t.Errorf("%v", err)
	}
}

// A budget in money counts prices, apart from the tokens that were spent on the same day.
func TestDaily_CountsMoney(t *testing.T) {
	prices := pricesOf(t, `{"currency": "EUR", "models": {"dear": {"input": 2, "output": 10}, "free": {}}}`)
	l := newLedger()
	take(t, NewBudget(usage.Budget{Most: 1000}, nil, clockAt(noon), l), person("ada"), 250)
	b := NewBudget(usage.Budget{Most: 1000, Currency: "EUR"}, prices, clockAt(noon), l)
	dear, free := model.Terms{Name: "dear"}, model.Terms{Name: "free"}
	settle, err := b.Reserve(t.Context(), person("ada"), dear, model.Used{Input: 25, Output: 20}) // 250
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Reserve(t.Context(), person("ada"), dear, model.Used{Input: 1}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("what is set aside can be spent: %v", err)
	}
	if settle, err := b.Reserve(t.Context(), person("ada"), free, model.Used{Input: 1e6}); err != nil {
		t.Errorf("free: %v", err)
	} else {
		settle(model.Used{Input: 1e6})
	}
	settle(model.Used{Input: 25, Output: 5})
	if got := l.String(); got != "map[2026-11-20:map[account:ada:250 account:ada EUR:100]]" {
		t.Error(got)
	}
	b = NewBudget(usage.Budget{Most: 1000, Currency: "EUR"}, prices, clockAt(noon), l)
	if _, err := b.Reserve(t.Context(), person("ada"), dear, model.Used{Output: 16}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("forgotten over a restart: %v", err)
	}
	for _, tt := range []struct {
		unit  string
		terms model.Terms
		says  string
	}{
		{"EUR", model.Terms{Name: "none"}, "price of its model is not known"},
		{"USD", dear, "in EUR"},
		{"USD", model.Terms{Name: "own", Price: usage.Price{Input: 1}}, "in EUR"},
	} {
		b := NewBudget(usage.Budget{Most: 1000, Currency: tt.unit}, prices, clockAt(noon), newLedger())
		if _, err := b.Reserve(t.Context(), person("ada"), tt.terms, model.Used{Input: 1}); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.As(err).Safe, tt.says) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestDaily_RemembersBoundedly(t *testing.T) {
	b := NewBudget(usage.Budget{Most: 0}, nil, clockAt(noon), newLedger())
	for i := range maxSpenders + 100 {
		take(t, b, guest(fmt.Sprint(i)), 1)
	}
	if n := len(b.spent); n > maxSpenders+2 {
		t.Errorf("%d spenders", n)
	}
}

// Calls at the same time never use more than the budget, nor their share of it, and all of it if they are small.
func TestDaily_IsNeverOverspent(t *testing.T) {
	for _, unit := range []string{"", "USD"} {
		l := newLedger()
		b := NewBudget(usage.Budget{Most: 10_000, Currency: unit}, pricesOf(t, `{}`), clockAt(noon), l)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				by := person(fmt.Sprint(i))
				if i%2 == 0 {
					by = guest(fmt.Sprint(i))
				}
				for range 200 {
					most := 1 + rand.IntN(7)
					settle, err := reserve(t.Context(), b, by, most)
					if err == nil {
						settle(1 + rand.IntN(most))
					}
				}
			})
		}
		wg.Wait()
		var all, guests int64
		for who, n := range l.days["2026-11-20"] {
			if all += n; strings.HasPrefix(who, guestKey) {
				guests += n
			}
			if strings.HasPrefix(who, guestKey) && n > 200 || n > 2500 {
				t.Errorf("%s spent %d", who, n)
			}
		}
		if all > 10_000 || all < 10_000-7 || guests > 1000 || guests < 1000-7 {
			t.Errorf("%d spent, %d by guests", all, guests)
		}
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
	w.onPortal(NewBudget(usage.Budget{Most: 100_000}, nil, clockAt(noon), l))
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
	w.onPortal(NewBudget(usage.Budget{Most: 100}, nil, clockAt(noon), newLedger()))
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
	w.onPortal(NewBudget(usage.Budget{Most: 1 << 30}, nil, clockAt(noon), l))
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
