package federation_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/adjust"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
)

const day = 24 * time.Hour

// place is what outlives a start.
type place struct {
	dir     string
	keys    *ident.Keys
	cards   federationtest.Cards
	replica *federationtest.Replica
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{dir: t.TempDir(), replica: new(federationtest.Replica)}
	var err error
	if p.keys, err = ident.CreateKeys(p.dir); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) start(t *testing.T, change func(*federation.SelfConfig)) *federation.Self {
	t.Helper()
	s, err := p.open(t, change)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (p *place) open(t *testing.T, change func(*federation.SelfConfig)) (*federation.Self, error) {
	t.Helper()
	gate, err := record.NewGate(recordtest.Network, p.replica)
	if err != nil {
		t.Fatal(err)
	}
	op, err := ident.OpenOperational(p.dir, p.keys.Public(), clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	cfg := federation.SelfConfig{Network: recordtest.Network, Origin: "https://one.example", Name: "One", Root: p.keys.Portal, Public: p.keys.Public(),
		Keys: op, Cards: &p.cards, Gate: gate, Replica: p.replica, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	return federation.NewSelf(t.Context(), cfg)
}

func TestSelf_SignsACardOnceAndKeepsIt(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.start(t, nil)
	c := s.Content()
	if c == nil || c.Portal != s.ID() || s.ID() != record.PortalOf(record.Public(p.keys.Public())) || len(c.Keys) != 1 || c.Origin != "https://one.example" || c.Name != "One" || c.Policy != "open" || c.Tier != record.TierReplica {
		t.Fatalf("%+v", c)
	}
	if held, _ := p.replica.Card(t.Context(), s.ID()); string(held) != string(s.Card()) {
		t.Error("the card is not where others' are")
	}
	id, key, until, err := s.Key(clock.Now())
	if err != nil || id != c.Keys[0].ID || record.PublicOf(key) != c.Keys[0].Pub || until.UnixMilli() != c.Keys[0].Until {
		t.Error(id, until, err)
	}
	if again := p.start(t, nil); string(again.Card()) != string(s.Card()) {
		t.Error("a start signed a new card")
	}
}

func TestSelf_MovesAndStaysWhoItIs(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.start(t, nil)
	at := func(origin string) *record.Card {
		return p.start(t, func(c *federation.SelfConfig) { c.Origin = origin }).Content()
	}
	second := at("https://two.example")
	if second.Portal != first.ID() || second.Version().Compare(first.Content().Version()) <= 0 || !slices.Equal(second.PrevOrigins, []string{"https://one.example"}) {
		t.Errorf("%+v", second)
	}
	if third := at("https://one.example"); !slices.Equal(third.PrevOrigins, []string{"https://two.example"}) {
		t.Errorf("it moved back: %v", third.PrevOrigins)
	}
	for i := range 12 {
		at("https://" + strings.Repeat("x", i+1) + ".example")
	}
	if last := at("https://last.example"); len(last.PrevOrigins) != 8 || last.PrevOrigins[0] != "https://xxxxxxxxxxxx.example" {
		t.Errorf("%v", last.PrevOrigins)
	}
	for _, origin := range []string{"", "http://one.example", "https://one.example/", "ftp://one.example"} {
		if _, err := p.open(t, func(c *federation.SelfConfig) { c.Origin = origin }); err == nil {
			t.Errorf("%q is where a portal is", origin)
		}
	}
}

func TestSelf_CardHoldsWhateverItIsCalled(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "one.example", "\n\t ": "one.example", "a\nb\u202ec": "a bc", strings.Repeat("é", 60): strings.Repeat("é", 40), "x\xff": "x\uFFFD", "  Ada's  portal ": "Ada's portal"} {
		p := newPlace(t)
		s := p.start(t, func(c *federation.SelfConfig) { c.Name = name })
		if got := s.Content().Name; got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
		if p.start(t, func(c *federation.SelfConfig) { c.Name = name }); string(p.start(t, func(c *federation.SelfConfig) { c.Name = name }).Card()) != string(s.Card()) {
			t.Errorf("%q makes a new card each time", name)
		}
	}
}

// A name that operators gave while the portal runs stands on the next card.
func TestSelf_SignsTheNameInEffect(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	before := p.start(t, nil).Content()
	s := p.start(t, func(c *federation.SelfConfig) {
		c.Live = adjust.NewSnapshot(adjust.Values{adjust.Name: "Agora Nova"})
	})
	if got := s.Content(); got.Name != "Agora Nova" || got.Version().Compare(before.Version()) <= 0 {
		t.Errorf("%q in version %v after %v", got.Name, got.Version(), before.Version())
	}
	if got := p.start(t, nil).Content(); got.Name != before.Name {
		t.Errorf("without it the name is %q, not %q", got.Name, before.Name)
	}
}

func TestSelf_RenewsInTime(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	synctest.Test(t, func(t *testing.T) {
		s := p.start(t, nil)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		first, changed := s.Content(), s.Changed()
		time.Sleep(29 * day)
		if s.Content() != first {
			t.Error("the card was renewed too soon")
		}
		time.Sleep(2 * day)
		select {
		case <-changed:
		default:
			t.Error("nobody was told of a new card")
		}
		for range 200 {
			time.Sleep(day)
			now := clock.Now()
			c := s.Content()
			if c.Expires-now.UnixMilli() < (59 * day).Milliseconds() {
				t.Fatalf("the card holds until %v", clock.FromMilli(c.Expires))
			}
			_, _, until, err := s.Key(now)
			if err != nil || until.Sub(now) < 37*day {
				t.Fatalf("the key holds until %v: %v", until, err)
			}
		}
		if s.Content().Epoch != first.Epoch {
			t.Error("a new epoch was begun")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestSelf_NewKeyMakesANewCard(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var keys *ident.Operational
	s := p.start(t, func(c *federation.SelfConfig) { keys = c.Keys })
	old := s.Content().Keys[0]
	if _, err := keys.Rotate(clock.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context()); err != nil || len(s.Content().Keys) != 2 {
		t.Fatal(s.Content().Keys, err)
	}
	if err := keys.Revoke(clock.Now(), old.Pub[:]); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context()); err != nil || len(s.Content().Keys) != 1 || s.Content().Keys[0].ID == old.ID {
		t.Fatal(s.Content().Keys, err)
	}
	if id, _, _, err := s.Key(clock.Now()); err != nil || id == old.ID {
		t.Error(id, err)
	}
}

func TestSelf_RootKeyMayBeAway(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	root := p.keys.Portal
	away := func(c *federation.SelfConfig) { c.Root = nil }
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		if s := p.start(t, away); s.Card() != nil || !strings.Contains(s.Standing().Due, "no card") {
			t.Errorf("%+v", s.Standing())
		} else if _, _, _, err := s.Key(clock.Now()); err == nil {
			t.Error("something signs without a card")
		}
		first := p.start(t, nil).Card()
		s := p.start(t, away)
		if string(s.Card()) != string(first) || s.Standing().Due != "" || !s.Standing().Away {
			t.Errorf("%+v", s.Standing())
		}
		time.Sleep(31 * day)
		if err := s.Renew(ctx); err != nil || string(s.Card()) != string(first) || !strings.Contains(s.Standing().Due, "holds until 2000-") {
			t.Errorf("%v %+v", err, s.Standing())
		}
		if _, _, _, err := s.Key(clock.Now()); err != nil {
			t.Error("the last card does not hold", err)
		}
		draft, err := s.Draft(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stranger, err := record.Sign(recordtest.Network, draft, recordtest.Key("x"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Take(ctx, stranger.Wire); err == nil || string(s.Card()) != string(first) {
			t.Error("a card was taken that another root key signed", err)
		}
		r, err := record.Sign(recordtest.Network, draft, root)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Take(ctx, r.Wire); err != nil || string(s.Card()) != string(r.Wire) || s.Standing().Due != "" {
			t.Errorf("%v %+v", err, s.Standing())
		}
		if err := s.Take(ctx, r.Wire); err == nil {
			t.Error("the same card was taken twice")
		}
		if err := s.Take(ctx, first); err == nil {
			t.Error("an old card was taken")
		}
		time.Sleep(91 * day)
		if _, _, _, err := s.Key(clock.Now()); err == nil {
			t.Error("something signs after the end of the card")
		}
	})
}

// A database that comes from a backup does not know what was signed since.
func TestSelf_UsesNoVersionTwice(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rename := func(name string) func(*federation.SelfConfig) {
		return func(c *federation.SelfConfig) { c.Name = name }
	}
	synctest.Test(t, func(t *testing.T) {
		p.start(t, nil)
		time.Sleep(time.Hour)
		backup := federationtest.Cards{}
		v, wire, _ := p.cards.LastCard(t.Context(), recordtest.Network)
		backup.KeepCard(t.Context(), recordtest.Network, v, wire)
		newest := p.start(t, rename("B")).Content()
		time.Sleep(time.Hour)
		cards, replica := &backup, new(federationtest.Replica)
		c := p.start(t, func(c *federation.SelfConfig) {
			c.Name, c.Cards, c.Replica = "C", cards, replica
			c.Gate, _ = record.NewGate(recordtest.Network, replica)
		}).Content()
		if c.Version().Compare(newest.Version()) <= 0 {
			t.Errorf("%v was signed after %v", c.Version(), newest.Version())
		}
		// The replica knows better than the database.
		again := p.start(t, func(c *federation.SelfConfig) { c.Name, c.Cards = "B", new(federationtest.Cards) }).Content()
		if again.Version() != newest.Version() {
			t.Errorf("%v, want %v", again.Version(), newest.Version())
		}
	})
}

// A backup runs elsewhere beside the portal: its card is newer. The next card of
// the portal is newer again, and is not signed before its operator wants it.
func TestSelf_NoticesACopyOfItself(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var keys *ident.Operational
		start := func() *federation.Self {
			return p.start(t, func(c *federation.SelfConfig) {
				keys, c.Log = c.Keys, slog.New(slog.NewTextHandler(&log, nil))
			})
		}
		s := start()
		own := s.Content()
		s.Saw(s.Card())
		s.Saw([]byte("nonsense"))
		s.Saw(newPlace(t).start(t, nil).Card()) // another portal's
		if e, ok := s.Elsewhere(); ok || s.Standing().Elsewhere != nil {
			t.Errorf("it saw %v", e)
		}
		time.Sleep(time.Hour)
		backup, replica := federationtest.Cards{}, new(federationtest.Replica)
		v, wire, _ := p.cards.LastCard(t.Context(), recordtest.Network)
		backup.KeepCard(t.Context(), recordtest.Network, v, wire)
		copied := p.start(t, func(c *federation.SelfConfig) {
			c.Origin, c.Cards, c.Replica = "https://copy.example", &backup, replica
			c.Gate, _ = record.NewGate(recordtest.Network, replica)
		})
		forged := slices.Clone(copied.Card())
		forged[len(forged)/2] ^= 1
		s.Saw(forged)
		if _, ok := s.Elsewhere(); ok {
			t.Error("it believes a card that it did not sign")
		}
		for range 3 {
			s.Saw(copied.Card())
		}
		if e, ok := s.Elsewhere(); !ok || e.Origin != "https://copy.example" || e.Since.UnixMilli() != copied.Content().Issued || s.Standing().Elsewhere == nil {
			t.Errorf("%v %v", e, ok)
		}
		if n := strings.Count(log.String(), "somewhere else"); n != 1 {
			t.Errorf("the log says it %d times", n)
		}
		if err := s.Renew(t.Context()); err != nil || s.Content() != own {
			t.Error("it signed a card by itself", err)
		}
		if _, err := keys.Rotate(clock.Now()); err != nil {
			t.Fatal(err)
		}
		if err := s.Renew(t.Context()); err != nil || s.Content().Version().Compare(copied.Content().Version()) <= 0 {
			t.Error(s.Content().Version(), err)
		}
		if _, ok := s.Elsewhere(); ok || s.Standing().Elsewhere != nil {
			t.Error("its card is the newest, and it still sees a copy")
		}
	})
}

func TestSelf_AnotherNetworkIsAnotherCount(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	one := p.start(t, nil)
	p.replica = new(federationtest.Replica)
	two := p.start(t, func(c *federation.SelfConfig) {
		c.Network = "elsewhere"
		c.Gate, _ = record.NewGate("elsewhere", p.replica)
	})
	if two.ID() != one.ID() || string(two.Card()) == string(one.Card()) || two.Network() != "elsewhere" {
		t.Error("a card of another network is used")
	}
}
