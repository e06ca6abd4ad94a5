package federation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// An operator pins an address where nobody answers yet. A card that names it
// does not get that word: anybody can write one.
func TestLearned_AddressesAreForWhoIsThere(t *testing.T) {
	w := newWorld(t, nil)
	w.set(func(p *federation.Policy) { p.Mode = federation.ModeAllowlist })
	for _, s := range []string{federation.Pin, federation.Deny} {
		w.peers.Heard("https://"+s+".example", "")
		if _, err := w.peers.SetRule(t.Context(), root, "https://"+s+".example", stand(s)); err != nil {
			t.Fatal(err)
		}
	}
	claims := portalAt("claims")
	card := claims.Card()
	card.Origin = "https://pin.example"
	w.peers.Learned(card, false)
	w.state(claims, federation.Pending, "waits for an operator")
	if got, _ := w.peers.Portal(t.Context(), string(claims.ID)); got.Rule != (federation.Rule{}) {
		t.Errorf("it took the rule of an address where it was not seen: %+v", got.Rule)
	}
	real := portalAt("real")
	card = real.Card()
	card.Origin = "https://pin.example"
	w.peers.Learned(card, true)
	if got, _ := w.peers.Portal(t.Context(), string(real.ID)); got.Rule.Stand != federation.Pin {
		t.Errorf("who answers at the address got %+v", got.Rule)
	}
	if _, ok := w.peers.Portal(t.Context(), "https://pin.example"); ok {
		t.Error("the address is still looked up")
	}
	// What keeps an address out keeps out whoever names it, and the next one.
	for _, name := range []string{"one", "two"} {
		p := portalAt(name)
		card = p.Card()
		card.Origin = "https://deny.example"
		w.peers.Learned(card, name == "two")
		w.state(p, federation.Denied, "shut it out")
	}
}

// A domain changes hands: what is said of it goes to who is there now.
func TestLearned_WhoIsSeenAtAnOriginIsItsOnly(t *testing.T) {
	w := newWorld(t, nil)
	w.set(func(p *federation.Policy) {
		p.Mode, p.AllowDomains = federation.ModeAllowlist, []string{"shop.example"}
	})
	before, after := portalAt("before"), portalAt("after")
	for _, p := range []interface{ Card() *record.Card }{before, after} {
		card := p.Card()
		card.Origin = "https://shop.example"
		w.peers.Learned(card, true)
	}
	old, _ := w.peers.Portal(t.Context(), string(before.ID))
	now, _ := w.peers.Portal(t.Context(), string(after.ID))
	if !old.Proved.IsZero() || old.State != federation.Pending || now.Proved.IsZero() || now.State == federation.Pending {
		t.Errorf("before %v %s, after %v %s", old.Proved, old.State, now.Proved, now.State)
	}
}

func TestDecide_AProofOfADomainGetsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.set(func(p *federation.Policy) {
			p.Mode, p.AllowDomains = federation.ModeAllowlist, []string{"ally.example"}
		})
		ally := w.learn("ally")
		if got, _ := w.peers.Portal(t.Context(), string(ally.ID)); !w.decide(ally).In || !got.Proven(time.Now()) {
			t.Fatalf("not let in: %+v", got)
		}
		// It is asked every 24 hours, and one question may go unanswered.
		time.Sleep(50*time.Hour - time.Second)
		if got, _ := w.peers.Portal(t.Context(), string(ally.ID)); !w.decide(ally).In || !got.Proven(time.Now()) {
			t.Errorf("after a day that was missed: %+v", got)
		}
		time.Sleep(time.Second)
		if got, _ := w.peers.Portal(t.Context(), string(ally.ID)); w.decide(ally).In || got.State != federation.Pending || got.Proven(time.Now()) {
			t.Errorf("after 50 hours without an answer at its domain: %+v", got)
		}
		w.peers.Learned(ally.Card(), true)
		if !w.decide(ally).In {
			t.Error("it does not get in again")
		}
	})
}

// A key that is shut out is so for what it signed and may sign, not only for
// requests: its portal waits until its card is without it.
func TestDecide_KeysThatAreShutOutSpeakForNobody(t *testing.T) {
	w := newWorld(t, nil)
	p := w.learn("ally")
	w.rule(p, stand(federation.Pin))
	key := p.Card().Keys[0].ID
	w.set(func(pol *federation.Policy) { pol.DenyKeys = []record.KeyID{key} })
	if d := w.decide(p); d.In || d.Show || d.Take || d.Call || d.Out || d.State != federation.Pending {
		t.Errorf("its key is shut out: %+v", d)
	}
	card := p.Card()
	card.Keys[0].ID = "aaaaaaaaaaaaaaaa"
	w.peers.Learned(card, true)
	if d := w.decide(p); !d.In || !d.Show {
		t.Errorf("its card is without the key: %+v", d)
	}
}

// Everybody may see that a portal is silent, and operators why: errors name
// addresses that were looked up and say what the other side answered.
func TestProfile_WhyIsForOperators(t *testing.T) {
	w := newWorld(t, nil)
	p := w.learn("ally")
	w.rule(p, stand(federation.Deny))
	w.rule(p, stand(""))
	for range 3 {
		w.peers.Failed(p.ID, errors.New("dial tcp 10.1.2.3:443: \x1b]0;owned\x07 connection refused"))
	}
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.peers.Run(stop); err != nil { // which stores the changes
		t.Fatal(err)
	}
	for operator, want := range map[bool]bool{true: true, false: false} {
		f, err := w.peers.Profile(t.Context(), operator, string(p.ID))
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s %+v", f.Reason, f.Changes)
		if f.State != federation.Silent || strings.Contains(text, "10.1.2.3") != want || strings.Contains(text, "shut it out") != want || strings.ContainsAny(text, "\x1b\x07") {
			t.Errorf("operator %v: %q", operator, text)
		}
	}
	list := w.peers.Map(t.Context()).Portals
	if len(list) != 1 || list[0].Reason != "It does not answer." {
		t.Errorf("on the map: %+v", list)
	}
}

// An operator names a host and means who is there, not who says so.
func TestPeers_AHostMeansWhoIsThere(t *testing.T) {
	w := newWorld(t, nil)
	at := func(name string, proved bool) *recordtest.Portal {
		p := portalAt(name)
		card := p.Card()
		card.Origin = "https://shop.example"
		w.peers.Learned(card, proved)
		return p
	}
	one := at("one", false)
	pin := func() error {
		_, err := w.peers.SetRule(t.Context(), root, "shop.example", stand(federation.Pin))
		return err
	}
	if err := pin(); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), string(one.ID)) {
		t.Errorf("who only says to be there was pinned by the host: %v", err)
	}
	if err := w.peers.Attest(t.Context(), root, "shop.example", record.Vouch, ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("who only says to be there was vouched for by the host: %v", err)
	}
	// It does not keep others from looking who is there.
	w.peers.Heard("https://shop.example", "")
	if got, _ := w.peers.Portal(t.Context(), "shop.example"); got.ID != "" {
		t.Errorf("the host means %s, which was never seen there", got.ID)
	}
	if err := pin(); err != nil {
		t.Error(err)
	}
	two := at("two", true)
	if got, _ := w.peers.Portal(t.Context(), "shop.example"); got.ID != two.ID || got.Rule.Stand != federation.Pin {
		t.Errorf("the host means %s %+v, not who is there", got.ID, got.Rule)
	}
	if got, _ := w.peers.Portal(t.Context(), string(one.ID)); got.Rule.Stand != "" {
		t.Errorf("%+v", got.Rule)
	}
	if _, err := w.peers.SetRule(t.Context(), root, string(one.ID), stand(federation.Allow)); err != nil {
		t.Errorf("by its id it can be allowed: %v", err)
	}
}

// Forgetting a portal does not forgive it.
func TestForget_ALieIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		liar := w.learn("liar")
		one := liar.Head(new(record.Tree))
		other := *one
		other.Expires -= recordtest.Hour
		gate, err := record.NewGate(recordtest.Network, w.replica)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []record.Body{liar.Card(), one, &other} {
			if _, _, err := gate.Admit(t.Context(), liar.Sign(t, b).Wire, time.Now()); err != nil && record.ReasonOf(err) != record.Equivocation {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.peers.Run(ctx) }()
		time.Sleep(1500 * time.Millisecond) // all were looked through just now
		w.state(liar, federation.Quarantined, "two different statements")
		if err := w.peers.Forget(t.Context(), root, string(liar.ID), ""); err != nil {
			t.Fatal(err)
		}
		w.peers.Learned(liar.Card(), true)
		synctest.Wait()
		w.state(liar, federation.Quarantined, "two different statements")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
