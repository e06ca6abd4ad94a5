package usage_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/usage"
)

// book is a CeilingStore in memory, which counts the cost of calls.
type book struct {
	mu    sync.Mutex // guards all
	list  []usage.Ceiling
	spent map[int64]map[string]usage.Amount // by day and agent, "" for the calls that the owner pays
	err   error
}

func (b *book) CeilingsOf(_ context.Context, ownerID string) (out []usage.Ceiling, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.list {
		if c.OwnerID == ownerID {
			out = append(out, c)
		}
	}
	return out, b.err
}

func (b *book) PutCeiling(_ context.Context, c usage.Ceiling) error {
	b.list = append(b.list, c)
	return b.err
}

func (b *book) SpentOn(_ context.Context, day int64, _, agentID string) (usage.Amount, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent[day][agentID], b.err
}

// count records a call, as usage.Service does.
func (b *book) count(c usage.Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	day := usage.DayOf(clock.Now())
	if b.spent == nil {
		b.spent = make(map[int64]map[string]usage.Amount)
	}
	if b.spent[day] == nil {
		b.spent[day] = make(map[string]usage.Amount)
	}
	add := func(key string) {
		a := b.spent[day][key]
		a.Tokens += c.Input + c.Output
		b.spent[day][key] = a
	}
	add(c.AgentID)
	if !c.Portal {
		add("")
	}
}

func noPrices(t *testing.T) *usage.Prices {
	return usage.NewPrices(filepath.Join(t.TempDir(), "none"), clock.Now, slog.New(slog.DiscardHandler))
}

func call(agent string, portal bool, tokens int64) usage.Call {
	return usage.Call{AgentID: agent, OwnerID: "ada", Model: "m", Portal: portal, Input: tokens, Price: usage.Price{Input: 1000}}
}

func TestCeilings_RefuseWhatWouldExceedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{list: []usage.Ceiling{{OwnerID: "ada", Tokens: 100}, {OwnerID: "ada", AgentID: "a1", Tokens: 60},
			{OwnerID: "ada", AgentID: "a2", Cost: 50_000}}}
		g := usage.NewCeilings(b, nil, noPrices(t))
		var wait time.Duration
		take := func(c usage.Call) (func(), bool) {
			t.Helper()
			settle, err := g.Reserve(t.Context(), c)
			if err != nil && !fault.Is(err, fault.RateLimited) {
				t.Fatal(err)
			}
			if err != nil {
				wait = fault.As(err).RetryAfter
			}
			return settle, err == nil
		}
		for _, tt := range []struct {
			what string
			call usage.Call
			ok   bool
		}{
			{"beyond the agent's", call("a1", false, 61), false},
			{"within both", call("a1", false, 60), true},
			{"beyond all together", call("a3", false, 41), false},
			{"the rest of all", call("a3", false, 40), true},
			{"the portal pays", call("a3", true, 1000), true},
			{"the portal pays, but the agent has a ceiling", call("a1", true, 1), false},
			{"beyond the agent's money", call("a2", true, 51), false},
			{"within the agent's money", call("a2", true, 50), true},
			{"another owner", usage.Call{AgentID: "b1", OwnerID: "ben", Input: 1 << 40}, true},
		} {
			settle, ok := take(tt.call)
			if ok != tt.ok {
				t.Errorf("%s: allowed %v", tt.what, ok)
			}
			if ok { // It counts as spent.
				b.count(tt.call)
				settle()
			}
		}
		if wait <= 0 || wait > 24*time.Hour {
			t.Errorf("opens again after %s", wait)
		}
		time.Sleep(wait)
		if _, ok := take(call("a1", false, 60)); !ok {
			t.Error("it did not open on the next day")
		}
		b.err = errors.New("disk")
		if _, err := g.Reserve(t.Context(), call("a1", false, 1)); err == nil {
			t.Error("a store that fails lets calls pass")
		}
	})
}

// Calls at the same time never use more than the ceiling, and all of it if they are small.
func TestCeilings_HoldForCallsAtTheSameTime(t *testing.T) {
	const most = 10_000
	b := &book{list: []usage.Ceiling{{OwnerID: "ada", Tokens: most}}}
	g := usage.NewCeilings(b, nil, noPrices(t))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				c := call("a1", false, 1+rand.Int64N(50))
				settle, err := g.Reserve(t.Context(), c)
				if err != nil {
					continue
				}
				c.Input -= rand.Int64N(c.Input) // It used less than the most.
				b.count(c)
				settle()
			}
		})
	}
	wg.Wait()
	spent, _ := b.SpentOn(t.Context(), usage.DayOf(clock.Now()), "ada", "")
	if spent.Tokens > most || spent.Tokens < most-50 {
		t.Errorf("%d tokens", spent.Tokens)
	}
	if settle, err := g.Reserve(t.Context(), call("a1", false, most-spent.Tokens)); err != nil {
		t.Errorf("something is still set aside: %v", err)
	} else {
		settle()
	}
}

func TestCeilings_AreTheOwners(t *testing.T) {
	g := usage.NewCeilings(&book{}, owning{}, noPrices(t))
	ada := ident.Actor{Kind: ident.Person, ID: "ada"}
	narrow := ident.Actor{Kind: ident.Person, ID: "ada", Narrowed: true}
	for _, tt := range []struct {
		by    ident.Actor
		agent string
		most  usage.Amount
		kind  fault.Kind
	}{{ident.Actor{}, "", usage.Amount{}, fault.Unauthenticated}, {narrow, "", usage.Amount{}, fault.Forbidden},
		{ada, "bens", usage.Amount{Tokens: 1}, fault.Forbidden}, {ada, "", usage.Amount{Tokens: -1}, fault.Invalid},
		{ada, "", usage.Amount{Cost: 1e16}, fault.Invalid}} {
		if err := g.Put(t.Context(), tt.by, tt.agent, tt.most); !fault.Is(err, tt.kind) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if err := g.Put(t.Context(), ada, "adas", usage.Amount{Tokens: 5}); err != nil {
		t.Fatal(err)
	}
	if list, err := g.List(t.Context(), ada); err != nil || len(list) != 1 || list[0].AgentID != "id of adas" {
		t.Errorf("%+v %v", list, err)
	}
}

// owning knows one agent of ada's.
type owning struct{}

func (owning) OwnedAgent(_ context.Context, _ ident.Actor, name string) (string, error) {
	if name != "adas" {
		return "", fault.New(fault.Forbidden, "Not yours.")
	}
	return "id of " + name, nil
}
