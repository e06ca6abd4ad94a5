package federation_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
)

// memory is a federation.PeerStore.
type memory struct {
	mu      sync.Mutex
	peers   map[string]federation.Facts
	changes []federation.Change
	policy  *federation.Policy
	decided []federation.Decided
	broken  error
	saves   int // of portals
}

func (m *memory) Peers(context.Context) (out []federation.Facts, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.peers {
		out = append(out, f)
	}
	return out, m.broken
}

func (m *memory) SavePeers(_ context.Context, save []federation.Facts, forget []string, changes []federation.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	for _, key := range forget {
		delete(m.peers, key)
	}
	for _, f := range save {
		m.put(f)
		m.saves++
	}
	m.changes = append(m.changes, changes...)
	return nil
}

func (m *memory) put(f federation.Facts) {
	if m.peers == nil {
		m.peers = make(map[string]federation.Facts)
	}
	m.peers[f.Key()] = f
}

func (m *memory) PeerChanges(_ context.Context, key string, limit int) (out []federation.Change, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range slices.Backward(m.changes) {
		if c.Key == key && len(out) < limit {
			out = append(out, c)
		}
	}
	return out, nil
}

func (m *memory) PeerPolicy(context.Context) (federation.Policy, bool, error) {
	if m.policy == nil {
		return federation.Policy{}, false, nil
	}
	return *m.policy, true, nil
}

func (m *memory) DecidePeers(_ context.Context, d federation.Decided) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	delete(m.peers, d.Forget)
	if d.Save != nil {
		m.put(*d.Save)
	}
	if d.Policy != nil {
		m.policy = d.Policy
	}
	m.decided = append(m.decided, d)
	return nil
}

func (m *memory) Decisions(context.Context, int64, int) ([]federation.Entry, error) { return nil, nil }

// me is a federation.Signer.
type me struct{ *recordtest.Portal }

func (s me) ID() record.PortalID { return s.Portal.ID }
func (s me) Network() string     { return recordtest.Network }
func (s me) Origin() string      { return "https://" + s.Name + ".example" }
func (s me) Card() []byte        { return nil }
func (s me) Key(now time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return record.KeyIDOf(record.PublicOf(s.Op)), s.Op, now.Add(time.Hour), nil
}

var (
	root  = ident.Actor{Kind: ident.Operator, ID: "op", Name: "ada"}
	stand = func(s string) federation.RuleChange { return federation.RuleChange{Stand: &s} }
)

// world is a service with a replica and a store, in memory.
type world struct {
	t       *testing.T
	peers   *federation.Peers
	store   *memory
	replica *federationtest.Replica
	told    []string
	mu      sync.Mutex
}

func newWorld(t *testing.T, change func(*federation.PeersConfig)) *world {
	t.Helper()
	w := &world{t: t, store: new(memory), replica: new(federationtest.Replica)}
	w.open(change)
	return w
}

func (w *world) open(change func(*federation.PeersConfig)) {
	w.t.Helper()
	gate, err := record.NewGate(recordtest.Network, w.replica)
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := federation.PeersConfig{Signer: me{portalAt("home")}, Replica: w.replica, Gate: gate, Name: "Home",
		Tell: func(_ context.Context, n federation.Notice) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, n.Text)
		}}
	if change != nil {
		change(&cfg)
	}
	if w.peers, err = federation.NewPeers(w.t.Context(), w.store, cfg); err != nil {
		w.t.Fatal(err)
	}
}

// runs runs the registry until stop is called, or else to the end of the test.
func (w *world) runs() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.peers.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// portalAt returns a portal that signs now.
func portalAt(name string) *recordtest.Portal {
	p := recordtest.NewPortal(name)
	p.Now = time.Now().UnixMilli()
	p.Epoch = p.Now - recordtest.Hour
	return p
}

// learn makes a portal known that has just answered.
func (w *world) learn(name string) *recordtest.Portal {
	p := portalAt(name)
	w.peers.Learned(p.Card(), true)
	w.peers.Seen(p.ID, 20*time.Millisecond)
	return p
}

func (w *world) state(p *recordtest.Portal, want federation.State, says string) {
	w.t.Helper()
	got, ok := w.peers.Portal(w.t.Context(), string(p.ID))
	if !ok || got.State != want || !strings.Contains(got.Reason, says) || says == "" && got.Reason != "" {
		w.t.Errorf("%s is %q (%s), want %q (%s)", p.Name, got.State, got.Reason, want, says)
	}
}

func (w *world) set(change func(*federation.Policy)) {
	w.t.Helper()
	pol, err := w.peers.Policy(w.t.Context(), root)
	if err == nil {
		change(&pol)
		_, err = w.peers.SetPolicy(w.t.Context(), root, pol, "")
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) rule(p *recordtest.Portal, c federation.RuleChange) {
	w.t.Helper()
	if _, err := w.peers.SetRule(w.t.Context(), root, string(p.ID), c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) decide(p *recordtest.Portal) federation.Decision {
	return w.peers.Decide(w.t.Context(), p.ID, "https://"+p.Name+".example")
}

func TestPeers_StatesFollowFromFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.learn("one")
		w.state(p, federation.Active, "")
		w.peers.Failed(p.ID, errors.New("connection\nrefused"))
		w.state(p, federation.Active, "") // one may be a lost packet
		w.peers.Failed(p.ID, errors.New("connection\nrefused"))
		w.state(p, federation.Silent, "does not answer: connection refused")
		time.Sleep(time.Second)
		w.peers.Seen(p.ID, 0)
		w.state(p, federation.Silent, "asks here, but does not answer")
		w.peers.Seen(p.ID, 40*time.Millisecond)
		w.state(p, federation.Active, "")
		now := time.Now()
		w.peers.Synced(p.ID, federation.HeadRow{Portal: p.ID, Version: record.Version{Epoch: 1, Seq: 2}, Issued: now.UnixMilli(), Expires: now.Add(time.Hour).UnixMilli(), Count: 7}, 5, true, now.Add(-3*time.Second))
		got, _ := w.peers.Portal(t.Context(), "one.example")
		if got.Agents != 5 || got.Listed != 7 || !got.Truncated || got.Lag != 3*time.Second || got.RTT != 22500*time.Microsecond {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Hour)
		w.state(p, federation.Stale, "ended at")
		if d := w.decide(p); !d.In || !d.Show {
			t.Errorf("a stale portal is decided as %+v", d)
		}
	})
}

func TestPeers_RefusesWhoForges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.learn("one")
		for range 100 {
			w.peers.Fault(p.ID, string(record.Stale)) // may happen to anybody
		}
		w.peers.Fault(p.ID, string(record.BadSignature))
		time.Sleep(6 * time.Minute)
		w.peers.Fault(p.ID, string(record.BadSignature))
		time.Sleep(6 * time.Minute)
		w.peers.Fault(p.ID, string(record.BadSignature)) // the first is too old to count
		if d := w.decide(p); !d.In {
			t.Fatalf("refused for two in ten minutes: %+v", d)
		}
		w.peers.Fault(p.ID, string(record.NotConsistent))
		w.state(p, federation.Denied, "forged (inconsistent) 3 times")
		if d := w.decide(p); d.In || d.Take || d.Call || !d.Show {
			t.Errorf("a forger is decided as %+v", d)
		}
		got, _ := w.peers.Portal(t.Context(), string(p.ID))
		if got.Faults["stale"] != 100 || got.Faults["signature"] != 3 {
			t.Errorf("faults %v", got.Faults)
		}
		time.Sleep(time.Hour)
		if d := w.decide(p); !d.In {
			t.Errorf("still refused after an hour: %+v", d)
		}
		for i := range 1000 {
			w.peers.Fault(p.ID, fmt.Sprint("made up ", i))
		}
		if got, _ = w.peers.Portal(t.Context(), string(p.ID)); len(got.Faults) > 33 {
			t.Errorf("%d kinds of faults are kept", len(got.Faults))
		}
	})
}

func TestDecide_Policy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.learn("one")
		stranger := recordtest.NewPortal("stranger")
		check := func(what string, p *recordtest.Portal, want federation.Decision, says string) {
			t.Helper()
			d := w.decide(p)
			if d.In != want.In || d.Show != want.Show || d.Take != want.Take || d.Call != want.Call || d.Out != want.Out || d.Keep != want.Keep || d.State != want.State || !strings.Contains(d.Reason, says) {
				t.Errorf("%s: %+v", what, d)
			}
		}
		all := federation.Decision{In: true, Show: true, Take: true, Call: true, Out: true, State: federation.Active}
		denied, pending := federation.Decision{State: federation.Denied}, federation.Decision{State: federation.Pending}
		check("open", p, all, "")
		check("open to strangers", stranger, all, "")
		w.set(func(p *federation.Policy) { p.Mode = federation.ModeAllowlist })
		check("allowlist", p, pending, "an operator")
		w.rule(p, stand(federation.Allow))
		check("allowed", p, all, "")
		w.set(func(p *federation.Policy) { p.Mode = federation.ModeClosed })
		check("closed", p, denied, "deals with no others")
		w.set(func(p *federation.Policy) { p.Mode = federation.ModeOpen; p.Service = federation.ServiceReadOnly })
		check("read-only", p, federation.Decision{In: true, Show: true, State: federation.Active}, "read-only")
		w.set(func(p *federation.Policy) { p.Service = federation.ServiceOff })
		check("maintenance", p, federation.Decision{State: federation.Denied, Keep: true}, "being worked on")
		w.set(func(p *federation.Policy) {
			p.Service, p.DenyDomains, p.AllowDomains = federation.ServiceOn, []string{"Example."}, []string{"stranger.example"}
		})
		check("allowed by a rule in a denied domain", p, all, "")
		check("a longer domain counts", stranger, all, "")
		w.rule(p, stand(""))
		check("denied domain", p, denied, "Portals of example")
		if d := w.peers.Decide(t.Context(), "", "https://deep.in.example:8443"); d.In || d.State != federation.Denied {
			t.Errorf("below a denied domain: %+v", d)
		}
		if d := w.peers.Decide(t.Context(), "", "https://notexample.org"); !d.In {
			t.Errorf("another domain: %+v", d)
		}
		w.set(func(p *federation.Policy) { p.DenyDomains = nil })
		w.rule(p, stand(federation.Deny))
		check("denied", p, denied, "An operator")
		if _, err := w.peers.SetPolicy(t.Context(), root, federation.Policy{Mode: "odd", DenyDomains: []string{"a b"}}, ""); fault.As(err).Fields["mode"] == "" || fault.As(err).Fields["deny_domains"] == "" {
			t.Errorf("a bad policy: %v", err)
		}
	})
}

func TestDecide_ByNetworkAndKey(t *testing.T) {
	w := newWorld(t, nil)
	nets, err := federation.ParseNets([]string{"192.0.2.0/24", "2001:db8::/32", "198.51.100.7"})
	if err != nil {
		t.Fatal(err)
	}
	w.set(func(p *federation.Policy) {
		p.DenyNets, p.AllowNets, p.DenyKeys = nets, []netip.Prefix{netip.MustParsePrefix("192.0.2.9/32")}, []record.KeyID{"jehvdhec4ex4eykj"}
	})
	for addr, in := range map[string]bool{"192.0.2.1": false, "::ffff:192.0.2.1": false, "192.0.2.9": true, "192.0.3.1": true, "198.51.100.7": false, "2001:db8::1": false, "2001:db9::1": true} {
		if got := w.peers.DecideAddr(netip.MustParseAddr(addr)); (got == "") != in {
			t.Errorf("%s: %q", addr, got)
		}
	}
	if w.peers.DecideKey("jehvdhec4ex4eykj") == "" || w.peers.DecideKey("aaaaaaaaaaaaaaaa") != "" {
		t.Error("keys are not told apart")
	}
	if _, err := federation.ParseNets([]string{"10.0.0.0/99"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad network: %v", err)
	}
}

// Two of three pinned portals must vouch; who is not pinned counts for nothing.
func TestDecide_Vouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		a, b, c, p := w.learn("a"), w.learn("b"), w.learn("c"), w.learn("p")
		w.rule(a, stand(federation.Pin))
		w.rule(b, stand(federation.Pin))
		w.set(func(p *federation.Policy) { p.Mode = federation.ModeVouched })
		gate, _ := record.NewGate(recordtest.Network, w.replica)
		say := func(by *recordtest.Portal, verdict string) {
			t.Helper()
			for _, r := range []*record.Record{by.Sign(t, by.Card()), by.Sign(t, &record.Attest{Header: by.Header(recordtest.Day), Subject: p.ID, Verdict: verdict})} {
				if _, _, err := gate.Admit(t.Context(), r.Wire, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.runs()
		say(a, record.Vouch)
		say(c, record.Vouch)
		time.Sleep(time.Minute)
		w.state(p, federation.Pending, "1 portal does, 2 are needed")
		say(b, record.Vouch)
		time.Sleep(time.Minute)
		w.state(p, federation.Active, "")
		b.Now = time.Now().UnixMilli()
		say(b, record.Warn) // changes its mind
		time.Sleep(time.Minute)
		w.state(p, federation.Pending, "1 portal does")
		w.rule(c, stand(federation.Pin))
		w.state(p, federation.Active, "")
		time.Sleep(25 * time.Hour)
		w.state(p, federation.Pending, "0 portals do")
	})
}

func TestPeers_QuarantineEndsOnlyWithItsProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.learn("liar")
		gate, _ := record.NewGate(recordtest.Network, w.replica)
		w.runs()
		card := p.Sign(t, p.Card())
		h1 := p.Head(new(record.Tree))
		h2 := *h1
		h2.Expires -= 1000
		gate.Admit(t.Context(), card.Wire, time.Now())
		gate.Admit(t.Context(), p.Sign(t, h1).Wire, time.Now())
		if _, _, err := gate.Admit(t.Context(), p.Sign(t, &h2).Wire, time.Now()); record.ReasonOf(err) != record.Equivocation {
			t.Fatal(err)
		}
		w.peers.Fault(p.ID, string(record.Equivocation))
		synctest.Wait()
		time.Sleep(2 * time.Second)
		w.state(p, federation.Quarantined, "two different statements")
		if d := w.decide(p); d.In || d.Show || d.Take || d.Call || d.Out || d.State != federation.Quarantined {
			t.Errorf("%+v", d)
		}
		w.rule(p, stand(federation.Allow)) // is not enough
		w.state(p, federation.Quarantined, "two different statements")
		w.mu.Lock()
		if len(w.told) != 1 || !strings.Contains(w.told[0], "proved to lie") {
			t.Errorf("operators were told %q", w.told)
		}
		w.mu.Unlock()
		proof, err := w.peers.Proof(t.Context(), root, "liar.example")
		if err != nil || proof.A == proof.B || !strings.Contains(proof.A+proof.B, fmt.Sprint(`"exp": `, h2.Expires)) || !strings.Contains(proof.A, fmt.Sprint(`"seq": `, h2.Seq)) {
			t.Fatalf("%+v %v", proof, err)
		}
		if _, err := w.peers.Release(t.Context(), root, "liar.example", "unseen", "a mistake"); !fault.Is(err, fault.Conflict) {
			t.Errorf("released unseen: %v", err)
		}
		if _, err := w.peers.Release(t.Context(), root, "liar.example", proof.Mark, "a mistake"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // and it stays released
		w.state(p, federation.Active, "")
		if d := w.store.decided[len(w.store.decided)-1]; d.Act != "peer.release" || !strings.Contains(d.Why, proof.Mark) {
			t.Errorf("the log has %+v", d)
		}
	})
}

func TestPeers_OnlyOperatorsDecide(t *testing.T) {
	w := newWorld(t, nil)
	w.learn("one")
	ctx := t.Context()
	for _, a := range []ident.Actor{{}, {Kind: ident.Guest}, {Kind: ident.Person, ID: "p"}, {Kind: ident.Portal}, {Kind: ident.Operator, ID: "o", Narrowed: true, Scopes: []ident.Scope{ident.AgentsWrite}}} {
		var errs []error
		add := func(err error) { errs = append(errs, err) }
		_, err := w.peers.List(ctx, a)
		add(err)
		_, err = w.peers.Get(ctx, a, "one.example")
		add(err)
		_, _, err = w.peers.Add(ctx, a, "https://b.example")
		add(err)
		_, err = w.peers.SetRule(ctx, a, "one.example", stand(federation.Deny))
		add(err)
		add(w.peers.Forget(ctx, a, "one.example", ""))
		_, err = w.peers.Release(ctx, a, "one.example", "", "")
		add(err)
		_, err = w.peers.Proof(ctx, a, "one.example")
		add(err)
		_, err = w.peers.Policy(ctx, a)
		add(err)
		_, err = w.peers.SetPolicy(ctx, a, federation.DefaultPolicy(), "")
		add(err)
		_, err = w.peers.Decisions(ctx, a, 0, 10)
		add(err)
		add(w.peers.Attest(ctx, a, "one.example", record.Vouch, ""))
		for i, err := range errs {
			if !fault.Is(err, fault.Forbidden) && !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("%s may do number %d: %v", a.Kind, i, err)
			}
		}
	}
	if len(w.store.decided) > 0 {
		t.Error("something was decided")
	}
}

func TestPeers_SurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.learn("one")
		w.peers.Heard("https://two.example", p.ID)
		note := "known for years"
		pin, most := federation.Pin, 12
		w.rule(p, federation.RuleChange{Stand: &pin, Note: &note, MaxAgents: &most})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.peers.Run(ctx); err != nil {
			t.Fatal(err)
		}
		was := w.peers.Portals(t.Context())
		w.open(nil)
		got := w.peers.Portals(t.Context())
		if len(got) != 2 || got[0].Rule.Note != note || got[0].RTT != was[0].RTT || got[1].URL != "https://two.example" || got[1].State != federation.Joining {
			t.Errorf("%+v", got)
		}
		if d := w.decide(p); d.MaxAgents != 12 {
			t.Errorf("quota %d", d.MaxAgents)
		}
		if _, err := w.peers.Profile(t.Context(), false, "two.example"); !fault.Is(err, fault.NotFound) {
			t.Errorf("everybody sees who has not joined: %v", err)
		}
		if err := w.peers.Forget(t.Context(), root, "one.example", "gone"); err != nil {
			t.Fatal(err)
		}
		w.open(nil)
		if _, ok := w.peers.Portal(t.Context(), string(p.ID)); ok {
			t.Error("what was forgotten came back")
		}
	})
}

// A portal that is seen with each of its requests is not written for each.
func TestPeers_SavesWhoWasOnlySeenOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.learn("one")
		stop := w.runs()
		time.Sleep(2 * time.Minute)
		saved := func() (n int, f federation.Facts) {
			w.store.mu.Lock()
			defer w.store.mu.Unlock()
			return w.store.saves, w.store.peers[string(p.ID)]
		}
		before, _ := saved()
		for range 120 {
			w.peers.Seen(p.ID, time.Millisecond)
			time.Sleep(time.Second)
		}
		if n, _ := saved(); n-before < 1 || n-before > 2 {
			t.Errorf("it was saved %d times in two minutes", n-before)
		}
		w.peers.Failed(p.ID, errors.New("refused"))
		time.Sleep(6 * time.Second)
		if _, f := saved(); f.Failures != 1 {
			t.Errorf("what went wrong was not saved soon: %+v", f)
		}
		w.peers.Seen(p.ID, time.Millisecond)
		time.Sleep(6 * time.Second)
		if _, f := saved(); f.Failures != 0 {
			t.Errorf("that it is well again was not saved soon: %+v", f)
		}
		w.peers.Seen(p.ID, 0)
		now := time.Now()
		stop()
		if _, f := saved(); !f.Seen.Equal(now) {
			t.Errorf("at its end it was seen at %v, not %v", f.Seen, now)
		}
	})
}

// TestPeers_KeepsWhoRefusesThisPortal, in its words but without what steers
// a terminal, over a restart too.
func TestPeers_KeepsWhoRefusesThisPortal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.learn("one")
		stop := w.runs()
		w.peers.Barred(p.ID, federation.ReasonDenied, "Go\n\x1b[31maway. "+strings.Repeat("x", 1000))
		got, _ := w.peers.Portal(t.Context(), string(p.ID))
		if got.Bars != federation.ReasonDenied || !strings.HasPrefix(got.BarsWhy, "Go ") || strings.ContainsAny(got.BarsWhy, "\n\x1b") || len(got.BarsWhy) > 200 {
			t.Errorf("%q, %q", got.Bars, got.BarsWhy)
		}
		time.Sleep(6 * time.Second)
		w.store.mu.Lock()
		saved := w.store.peers[string(p.ID)]
		w.store.mu.Unlock()
		if saved.Bars != got.Bars || saved.BarsWhy != got.BarsWhy {
			t.Errorf("saved: %+v", saved)
		}
		w.peers.Barred(p.ID, "", "")
		if got, _ := w.peers.Portal(t.Context(), string(p.ID)); got.Bars != "" || got.BarsWhy != "" {
			t.Errorf("%q, %q", got.Bars, got.BarsWhy)
		}
		w.peers.Barred("nobody", federation.ReasonDenied, "x")
		stop()
	})
}

func TestPeers_DecisionsThatCannotBeStoredAreNotMade(t *testing.T) {
	w := newWorld(t, nil)
	p := w.learn("one")
	w.store.broken = errors.New("disk full")
	if _, err := w.peers.SetRule(t.Context(), root, string(p.ID), stand(federation.Deny)); err == nil {
		t.Fatal("decided")
	}
	if d := w.decide(p); !d.In {
		t.Error("it holds, but is nowhere written")
	}
}

func TestPeers_HearsNoMoreThanItMay(t *testing.T) {
	w := newWorld(t, nil)
	p := w.learn("one")
	for i := range 5000 {
		w.peers.Heard(fmt.Sprintf("https://p%d.example", i), p.ID)
	}
	w.peers.Heard("https://home.example", "")
	w.peers.Heard("not an origin", "")
	w.peers.Heard("https://x.example/path", "")
	if n := len(w.peers.Portals(t.Context())); n != 101 {
		t.Errorf("%d portals are known", n)
	}
	// A portal that answers takes the place of its address.
	q := w.learn("p1")
	if got, ok := w.peers.Portal(t.Context(), "p1.example"); !ok || got.ID != q.ID {
		t.Errorf("%+v", got)
	}
	if n := len(w.peers.Portals(t.Context())); n != 101 {
		t.Errorf("%d portals are known", n)
	}
}

func TestPeers_TellsOfWhatPinnedPortalsMustNotDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.learn("one")
		w.rule(p, stand(federation.Pin))
		w.runs()
		c := p.Card()
		c.Keys[0].ID = "aaaaaaaaaaaaaaaa"
		w.peers.Learned(c, true)
		c = p.Card()
		c.Origin, c.Keys[0].ID = "https://moved.example", "aaaaaaaaaaaaaaaa"
		w.peers.Learned(c, true)
		thief := portalAt("thief").Card()
		thief.Origin = "https://moved.example"
		w.peers.Learned(thief, true)
		var many []*recordtest.Portal
		for i := range 4 {
			many = append(many, w.learn(fmt.Sprint("m", i)))
		}
		for _, m := range append(many, p) {
			w.peers.Failed(m.ID, errors.New("no route"))
			w.peers.Failed(m.ID, errors.New("no route"))
		}
		time.Sleep(2 * time.Second)
		w.mu.Lock()
		all := strings.Join(w.told, "\n")
		w.mu.Unlock()
		for _, want := range []string{"All keys", "has moved to moved.example", "answers another portal", "stopped answering within ten minutes"} {
			if strings.Count(all, want) != 1 {
				t.Errorf("%q is not told once in:\n%s", want, all)
			}
		}
	})
}

// down is a federation.Caller of portals that may be down.
type down struct {
	mu    sync.Mutex
	down  bool
	asked int
	last  map[record.PortalID]int // whom, since it was made
}

func (d *down) set(v bool) { d.mu.Lock(); d.down = v; d.mu.Unlock() }

func (d *down) Do(_ context.Context, origin string, to record.PortalID, method, path string, _ []byte, _ int64) (*federation.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if d.last != nil {
		d.last[to]++
	}
	if d.down {
		return nil, errors.New("connection refused")
	}
	return &federation.Answer{Status: 200, Body: fmt.Appendf(nil, `{"version":"1.2","portal":%q}`, to), Took: 5 * time.Millisecond}, nil
}

// A portal that dies and comes back is seen to within seconds, and asking costs
// little when nobody looks.
func TestRun_SeesPortalsDieAndReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(down)
		w := newWorld(t, func(cfg *federation.PeersConfig) { cfg.Caller = c })
		p := w.learn("one")
		stop := w.runs()
		time.Sleep(10*time.Minute + time.Second/2)
		c.mu.Lock()
		if c.asked < 40 || c.asked > 61 {
			t.Errorf("asked %d times in 10 minutes", c.asked)
		}
		c.mu.Unlock()
		got, _ := w.peers.Portal(t.Context(), string(p.ID))
		if got.Version != "1.2" {
			t.Errorf("version %q", got.Version)
		}
		w.peers.Watch()
		c.set(true)
		time.Sleep(6 * time.Second)
		w.state(p, federation.Silent, "connection refused")
		changed := w.peers.Changed()
		c.set(false)
		w.peers.Watch()
		time.Sleep(6 * time.Second)
		w.state(p, federation.Active, "")
		select {
		case <-changed:
		default:
			t.Error("nobody was told")
		}
		stop()
		if h, _ := w.store.PeerChanges(t.Context(), string(p.ID), 9); len(h) != 4 || h[0].State != federation.Active || h[1].State != federation.Silent {
			t.Errorf("history %+v", h)
		}
	})
}

// gossiped is a federation.Gossip of which all others are members, or none is.
type gossiped struct{ alive atomic.Bool }

func (*gossiped) Standing() federation.GossipStanding { return federation.GossipStanding{} }
func (g *gossiped) Alive(record.PortalID) bool        { return g.alive.Load() }

// Portals that others would miss are asked seldom, the more so the more they
// are; those that are missed are asked as often as ever.
func TestRun_AsksMembersOfThePoolSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, g := new(down), new(gossiped)
		g.alive.Store(true)
		w := newWorld(t, func(cfg *federation.PeersConfig) {
			cfg.Caller, cfg.Gossip = c, func() federation.Gossip { return g }
		})
		for i := range 50 {
			w.learn(fmt.Sprint("p", i))
		}
		w.runs()
		asked := func(d time.Duration) int {
			c.mu.Lock()
			before := c.asked
			c.mu.Unlock()
			time.Sleep(d)
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.asked - before
		}
		// At once, and then after ten minutes.
		if n := asked(15 * time.Minute); n < 50 || n > 100 {
			t.Errorf("50 members were asked %d times in a quarter of an hour", n)
		}
		// One that others miss is asked, but not each time they say so.
		id := portalAt("p7").ID
		c.mu.Lock()
		c.last = make(map[record.PortalID]int)
		c.mu.Unlock()
		for range 20 {
			w.peers.Missed(id)
			time.Sleep(time.Second)
		}
		c.mu.Lock()
		if n := c.last[id]; n < 1 || n > 2 {
			t.Errorf("one that others missed for 20 seconds was asked %d times", n)
		}
		c.mu.Unlock()
		// While somebody looks, all are asked all the time.
		c.mu.Lock()
		before := c.asked
		c.mu.Unlock()
		for range 60 {
			w.peers.Watch()
			time.Sleep(time.Second)
		}
		c.mu.Lock()
		if n := c.asked - before; n < 300 {
			t.Errorf("50 portals that somebody looked at for a minute were asked %d times", n)
		}
		c.mu.Unlock()
		g.alive.Store(false)
		asked(5 * time.Minute) // the turn of each comes
		if n := asked(10 * time.Minute); n < 1000 {
			t.Errorf("50 that others miss were asked %d times in ten minutes", n)
		}
	})
}

// An address that was heard of, or given to --join, is asked until somebody is
// there.
func TestRun_SaysHelloToAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		tries := 0
		w = newWorld(t, func(cfg *federation.PeersConfig) {
			cfg.Greet = func(context.Context, string) (record.PortalID, error) {
				if tries++; tries < 4 {
					return "", errors.New("connection refused")
				}
				return w.learn("one").ID, nil
			}
		})
		w.peers.Heard("https://one.example", "")
		w.runs()
		time.Sleep(time.Minute)
		if got, ok := w.peers.Portal(t.Context(), "one.example"); !ok || got.State != federation.Active || tries != 4 || len(w.peers.Portals(t.Context())) != 1 {
			t.Errorf("after %d tries: %+v", tries, got)
		}
	})
}

// That many go at once is told, however long ago each of them answered last.
func TestRun_TellsThatManyVanishedWhoAreAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, g := new(down), new(gossiped)
		g.alive.Store(true)
		w := newWorld(t, func(cfg *federation.PeersConfig) {
			cfg.Caller, cfg.Gossip = c, func() federation.Gossip { return g }
		})
		const many = 200 // each is asked every 20 minutes
		for i := range many {
			w.learn(fmt.Sprint("p", i))
		}
		w.runs()
		time.Sleep(19 * time.Minute)
		c.set(true)
		for i := range many {
			w.peers.Missed(portalAt(fmt.Sprint("p", i)).ID)
		}
		time.Sleep(5 * time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if all := strings.Join(w.told, "\n"); strings.Count(all, "stopped answering within ten minutes") != 1 {
			t.Errorf("told was %q", all)
		}
	})
}

// Who was convicted by what came from somebody else is quarantined without being
// told of.
func TestRun_FindsWhoWasConvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		gate, err := record.NewGate(recordtest.Network, w.replica)
		if err != nil {
			t.Fatal(err)
		}
		w.runs()
		liar, honest := w.learn("liar"), w.learn("honest")
		time.Sleep(15 * time.Second)
		w.state(liar, federation.Active, "")
		one := liar.Head(new(record.Tree))
		two := *one
		two.Expires -= 1000
		for _, b := range []record.Body{liar.Card(), one, &two} {
			gate.Admit(t.Context(), liar.Sign(t, b).Wire, time.Now())
		}
		time.Sleep(15 * time.Second)
		if d := w.decide(liar); d.State != federation.Quarantined {
			t.Errorf("the liar is %s", d.State)
		}
		if d := w.decide(honest); d.State != federation.Active {
			t.Errorf("the honest one is %s", d.State)
		}
	})
}

// An address that another portal named, and where nobody is, is asked less and
// less often, and not left alone at once.
func TestRun_AsksLessAndLessWhereOnlyOthersSayThatSomebodyIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Duration
		begun := time.Now()
		w := newWorld(t, func(cfg *federation.PeersConfig) {
			cfg.Greet = func(context.Context, string) (record.PortalID, error) {
				tries = append(tries, time.Since(begun))
				return "", errors.New("connection refused")
			}
		})
		other := w.learn("other")
		w.peers.Heard("https://one.example", other.ID)
		stop := w.runs()
		time.Sleep(2 * time.Hour)
		stop()
		if len(tries) < 20 || len(tries) > 35 {
			t.Fatalf("asked %d times in two hours: %v", len(tries), tries)
		}
		if after := tries[3] - tries[2]; after > 30*time.Second {
			t.Errorf("after three failures it was left alone for %v", after)
		}
		last := len(tries) - 1
		if after := tries[last] - tries[last-1]; after < 5*time.Minute {
			t.Errorf("after %d failures it was asked again after %v", last, after)
		}
	})
}

func TestAdd_JoinsAtOnceOrKeepsNothing(t *testing.T) {
	var w *world
	var tried []string
	w = newWorld(t, func(cfg *federation.PeersConfig) {
		cfg.Join = func(_ context.Context, origins []string) (record.PortalID, error) {
			switch tried = origins; origins[0] {
			case "https://one.example":
				return w.learn("one").ID, nil
			case "https://two.example": // answers, then refuses this portal
				w.learn("two")
			}
			return "", fault.New(fault.Unavailable, "Nothing listens there.")
		}
	})
	w.peers.Heard("https://one.example", "")
	for _, spelling := range []string{" One.example/ ", "https://one.example", "one.example:443"} {
		p, found, err := w.peers.Add(t.Context(), root, spelling)
		if err != nil || p.State != federation.Active || p.Name == "" || !strings.HasPrefix(found, "Found ") {
			t.Errorf("%q: %+v %q %v", spelling, p, found, err)
		}
		if all := w.peers.Portals(t.Context()); len(all) != 1 || all[0].ID != p.ID {
			t.Errorf("%q: %+v", spelling, all)
		}
	}
	for _, host := range []string{"two.example", "https://three.example"} {
		_, _, err := w.peers.Add(t.Context(), root, host)
		if fault.As(err).Fields["url"] != "Nothing listens there." {
			t.Errorf("%s: %v", host, err)
		}
		if all := w.peers.Portals(t.Context()); len(all) != 1 {
			t.Errorf("%s: %+v is kept", host, all)
		}
	}
	if _, _, err := w.peers.Add(t.Context(), root, "127.0.0.1:8081"); err == nil ||
		!slices.Equal(tried, []string{"https://127.0.0.1:8081", "http://127.0.0.1:8081"}) {
		t.Errorf("%v %v", tried, err)
	}
	for _, bad := range []string{"", "home.example", "https://home.example", "ftp://x.example", "https://x.example/path"} {
		if _, _, err := w.peers.Add(t.Context(), root, bad); fault.As(err).Fields["url"] == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAttest_IsSignedAndReplaced(t *testing.T) {
	w := newWorld(t, nil)
	home := portalAt("home")
	gate, _ := record.NewGate(recordtest.Network, w.replica)
	if _, _, err := gate.Admit(t.Context(), home.Sign(t, home.Card()).Wire, time.Now()); err != nil {
		t.Fatal(err)
	}
	p := w.learn("one")
	for i, verdict := range []string{record.Vouch, record.Block} {
		if err := w.peers.Attest(t.Context(), root, "one.example", verdict, "seen it"); err != nil {
			t.Fatal(err)
		}
		got, err := w.peers.Profile(t.Context(), false, "one.example")
		if err != nil || len(got.Words) != 1 || got.Words[0].By != home.ID || got.Words[0].Verdict != verdict || got.Words[0].Reason != "seen it" {
			t.Errorf("%d: %+v %v", i, got.Words, err)
		}
		if i == 0 && len(w.peers.Map(t.Context()).Links) != 1 {
			t.Error("who vouches is not linked")
		}
	}
	if list, _ := w.replica.Others(t.Context(), []record.Type{record.TypeAttest}, 0, 9); len(list) != 1 {
		t.Errorf("%d attestations are held of %s", len(list), p.ID)
	}
}

// Two operators speak of a portal in the same millisecond: this portal must not
// convict itself.
func TestAttest_AtOnceUsesNoVersionTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		home := portalAt("home")
		gate, _ := record.NewGate(recordtest.Network, w.replica)
		if _, _, err := gate.Admit(t.Context(), home.Sign(t, home.Card()).Wire, time.Now()); err != nil {
			t.Fatal(err)
		}
		w.learn("one")
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if err := w.peers.Attest(t.Context(), root, "one.example", record.Warn, fmt.Sprint("reason ", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if c, _ := w.replica.Quarantined(t.Context(), home.ID); c != nil {
			t.Errorf("it is quarantined by itself for version %d.%d", c.Epoch, c.Seq)
		}
	})
}

func TestFilter(t *testing.T) {
	w := newWorld(t, nil)
	if !w.peers.Exports(nil, nil) || w.peers.Exports([]string{"Local-Only"}, nil) {
		t.Error("by default all agents are published but those that are to stay")
	}
	w.set(func(p *federation.Policy) {
		p.Export = federation.Export{What: federation.ExportTagged, Tags: []string{"Shared"}, Languages: []string{"de"}}
		p.Import = federation.Import{Protocols: []string{"a2a"}, Except: []string{"gambling"}, Languages: []string{"en"}}
	})
	for _, tt := range []struct {
		tags, languages []string
		want            bool
	}{{nil, nil, false}, {[]string{"shared"}, nil, true}, {[]string{"SHARED"}, []string{"en", "de"}, true}, {[]string{"shared"}, []string{"en"}, false}} {
		if got := w.peers.Exports(tt.tags, tt.languages); got != tt.want {
			t.Errorf("%v %v: %v", tt.tags, tt.languages, got)
		}
	}
	a := recordtest.NewPortal("one").Agent("x")
	if !w.peers.Imports(a) {
		t.Error("an agent that fits is left out")
	}
	a.Caps = append(a.Caps, "gambling")
	if w.peers.Imports(a) {
		t.Error("one that is not wanted is shown")
	}
	w.set(func(p *federation.Policy) { p.Export.What = federation.ExportNone })
	if w.peers.Exports([]string{"shared"}, nil) {
		t.Error("none means none")
	}
}

// TestPeers_KnowWhoseRecordsAreHeld: a portal that was killed before it saved
// whom it met would otherwise not hear of them again, since it says that it has
// their heads.
func TestPeers_KnowWhoseRecordsAreHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	p := portalAt("one")
	gate, err := record.NewGate(recordtest.Network, w.replica)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []record.Body{p.Card(), p.Head(new(record.Tree))} {
		if _, _, err := gate.Admit(t.Context(), p.Sign(t, body).Wire, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	w.open(nil)
	got, ok := w.peers.Portal(t.Context(), string(p.ID))
	if !ok || got.URL != "https://one.example" || !got.Proved.IsZero() || got.HeadIssued.IsZero() {
		t.Errorf("after a restart it is known as %+v", got)
	}
}
