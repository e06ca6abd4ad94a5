package usage_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
	"agentsite/internal/usage"
)

// priced returns a service with the prices in text, and their file.
func priced(t testing.TB, store usage.Store, text string) (*usage.Service, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), usage.PricesFile)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return usage.NewService(store, usage.NewPrices(path, time.Now, slog.New(slog.DiscardHandler)), slog.New(slog.DiscardHandler)), path
}

const prices = `{"currency": "EUR", "models": {"small": {"input": 0.15, "output": 0.6}, "large": {"input": 3, "output": 15}}}`

// Whatever is counted, every report adds up to it exactly, by each key.
func TestService_AddsUpExactly(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	agents := []string{storetest.Agent(t, db, "one", ada).ID, storetest.Agent(t, db, "two", bob).ID, ident.NewID()}
	s, _ := priced(t, db.Usages, prices)
	as := func(id string) ident.Actor { return ident.Actor{Kind: ident.Person, ID: id} }
	boss := ident.Actor{Kind: ident.Operator, ID: ada.ID}
	want := map[string]usage.Sum{} // by scope and account
	add := func(key string, c usage.Call) {
		w := want[key]
		w.Calls++
		if c.Estimated {
			w.Estimated++
		}
		w.Input += c.Input
		w.Output += c.Output
		switch cost := map[string]int64{"small": (c.Input*15 + c.Output*60), "large": 300*c.Input + 1500*c.Output}[c.Model]; {
		case c.Purpose == usage.Talk:
			w.TalkCost += (cost + 50) / 100
		default:
			w.WorkCost += (cost + 50) / 100
		}
		want[key] = w
	}
	rapid.Check(t, func(r *rapid.T) {
		for range rapid.IntRange(1, 5).Draw(r, "calls") {
			c := usage.Call{AgentID: rapid.SampledFrom(agents).Draw(r, "agent"), CallerKind: "guest", Model: rapid.SampledFrom([]string{"small", "large", "other"}).Draw(r, "model"),
				Purpose: rapid.SampledFrom([]usage.Purpose{usage.Work, usage.Talk}).Draw(r, "purpose"), Portal: rapid.Bool().Draw(r, "portal"),
				Input: rapid.Int64Range(0, 100_000).Draw(r, "input"), Output: rapid.Int64Range(0, 10_000).Draw(r, "output"), Estimated: rapid.Bool().Draw(r, "estimated")}
			if who := rapid.SampledFrom([]string{"", ada.ID, bob.ID}).Draw(r, "caller"); who != "" {
				c.CallerKind, c.CallerID = "person", who
				add("me "+who, c)
			}
			if owner := map[string]string{agents[0]: ada.ID, agents[1]: bob.ID}[c.AgentID]; owner != "" {
				add("agents "+owner, c)
			}
			add("portal "+ada.ID, c)
			s.Count(t.Context(), c)
		}
	})
	for _, by := range []usage.By{usage.ByDay, usage.ByAgent, usage.ByOwner, usage.ByModel, usage.ByPerson} {
		for key, sum := range want {
			of, who, _ := strings.Cut(key, " ")
			actor := as(who)
			if of == "portal" {
				actor = boss
			}
			r, err := s.Report(t.Context(), actor, usage.Query{Of: usage.Scope(of), By: by})
			if err != nil || r.Total != sum || r.Currency != "EUR" {
				t.Errorf("%s by %s: %+v, want %+v; %v", of, by, r.Total, sum, err)
			}
			for _, row := range r.Rows {
				if of == "agents" && by == usage.ByPerson && row.Key != "guest" && row.Key != "person" {
					t.Errorf("an owner sees a caller: %q", row.Key)
				}
			}
		}
	}
}

func TestService_RefusesTheUsageOfOthers(t *testing.T) {
	t.Parallel()
	s, _ := priced(t, storetest.New(t).Usages, prices)
	ada := ident.Actor{Kind: ident.Person, ID: ident.NewID()}
	day := func(s string) time.Time { d, _ := time.Parse(time.DateOnly, s); return d }
	for name, c := range map[string]struct {
		actor ident.Actor
		q     usage.Query
		kind  fault.Kind
	}{
		"a guest":               {ident.Actor{Kind: ident.Guest, ID: "g"}, usage.Query{Of: usage.OfMe, By: usage.ByDay}, fault.Unauthenticated},
		"all, by a person":      {ada, usage.Query{Of: usage.OfPortal, By: usage.ByDay}, fault.Forbidden},
		"all, by a narrow one":  {ident.Actor{Kind: ident.Operator, ID: "o", Narrowed: true, Scopes: []ident.Scope{ident.AccountAll}}, usage.Query{Of: usage.OfPortal, By: usage.ByDay}, fault.Forbidden},
		"a token for chats":     {ident.Actor{Kind: ident.Person, ID: "o", Narrowed: true, Scopes: []ident.Scope{ident.ChatRead}}, usage.Query{Of: usage.OfMe, By: usage.ByDay}, fault.Forbidden},
		"an unknown key":        {ada, usage.Query{Of: usage.OfMe, By: "hour"}, fault.Invalid},
		"an unknown scope":      {ada, usage.Query{Of: "them", By: usage.ByDay}, fault.Invalid},
		"an end before a start": {ada, usage.Query{Of: usage.OfMe, By: usage.ByDay, From: day("2026-02-01"), To: day("2026-01-01")}, fault.Invalid},
		"too many days":         {ada, usage.Query{Of: usage.OfMe, By: usage.ByDay, From: day("2020-02-01"), To: day("2026-01-01")}, fault.Invalid},
	} {
		if _, err := s.Report(t.Context(), c.actor, c.q); !fault.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// failing is a store that fails as long as err is set.
type failing struct {
	usage.Store
	err error
}

func (f *failing) AddUsage(ctx context.Context, list []usage.Entry) error {
	if f.err != nil {
		return f.err
	}
	return f.Store.AddUsage(ctx, list)
}

func TestService_CountsAgainWhatWasNotStored(t *testing.T) {
	t.Parallel()
	f := &failing{Store: storetest.New(t).Usages, err: errors.New("down")}
	s, _ := priced(t, f, prices)
	ctx, cancel := context.WithCancel(t.Context())
	c := usage.Call{CallerKind: "person", CallerID: "p1", Model: "small", Purpose: usage.Work, Input: 10, Output: 1}
	s.Count(ctx, c)
	s.Count(ctx, c)
	f.err = nil
	cancel() // a call of a task that was stopped counts too
	s.Count(ctx, c)
	r, err := s.Report(t.Context(), ident.Actor{Kind: ident.Person, ID: "p1"}, usage.Query{Of: usage.OfMe, By: usage.ByModel})
	if err != nil || r.Total.Calls != 3 || r.Total.Input != 30 || len(r.Rows) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestPrices_FollowTheirFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), usage.PricesFile)
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	var log strings.Builder
	p := usage.NewPrices(path, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	write := func(text string) {
		t.Helper()
		now = now.Add(time.Minute)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, now, now)); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.Cost("small", usage.Price{}, 1000, 1000); got != 0 || p.Currency() != "" {
		t.Errorf("without a file: %d", got)
	}
	write(prices)
	if got := p.Cost("small", usage.Price{}, 1000, 1000); got != 750 || p.Currency() != "EUR" || p.Cost("none", usage.Price{}, 1000, 1000) != 0 {
		t.Errorf("%d %s", got, p.Currency())
	}
	if got := p.Cost("small", usage.Price{Output: 2}, 1000, 1000); got != 2000 {
		t.Errorf("the model's own price: %d", got)
	}
	for _, bad := range []string{`{"models": {"small": {"input": -1}}}`, `{"models": []}`, `{"models": {"small": {"input": 1e6}}}`, `nonsense`} {
		log.Reset()
		write(bad)
		if got := p.Cost("small", usage.Price{}, 1000, 1000); got != 750 || !strings.Contains(log.String(), path) {
			t.Errorf("%s: %d, logged %q", bad, got, log.String())
		}
	}
	write(`{"currency": "USD", "models": {"small": {"input": 1, "output": 2}}}`)
	if got := p.Cost("small", usage.Price{}, 1000, 1000); got != 3000 || p.Currency() != "USD" {
		t.Errorf("%d %s", got, p.Currency())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if now = now.Add(time.Minute); p.Cost("small", usage.Price{}, 1000, 1000) != 0 {
		t.Error("prices of a file that is gone")
	}
}
