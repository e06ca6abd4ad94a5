package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// What an origin answers is looked at before anything of it is kept.
func TestClient_KeepsNoCardOfAnother(t *testing.T) {
	t.Parallel()
	var n wires
	a, b, c := newSite(t, &n, "a.example"), newSite(t, &n, "b.example"), newSite(t, &n, "c.example")
	ctx := t.Context()
	held := func(s *site) bool {
		wire, err := a.replica.Card(ctx, s.self.ID())
		if err != nil {
			t.Fatal(err)
		}
		return wire != nil
	}
	n.set("evil.example", n.hosts["c.example"]) // it serves the card of c, as if it were its own
	if err := a.client.Prove(ctx, "https://evil.example", b.self.ID()); !errors.Is(err, guard.ErrImpostor) || held(c) {
		t.Errorf("%v; the card of another is kept: %v", err, held(c))
	}
	if _, err := a.client.Handshake(ctx, "https://evil.example", ""); err == nil || held(c) {
		t.Errorf("%v; a card of elsewhere is kept: %v", err, held(c))
	}
	// Who is shut out does not get in by another address, nor is it told anything.
	a.registry.Say(c.self.ID(), federation.Decision{State: federation.Denied, Reason: "No."})
	if _, err := a.client.Handshake(ctx, c.origin, ""); err == nil || federation.RefusalOf(err).Reason != federation.ReasonDenied || held(c) {
		t.Errorf("%v; the card of a denied portal is kept: %v", err, held(c))
	}
	if n.asked("POST https://c.example/peering/v1/hello") != 0 {
		t.Error("it was greeted")
	}
	a.registry.Say(c.self.ID(), federation.Decision{State: federation.Active, In: true, Show: true})
	if _, err := a.client.Handshake(ctx, c.origin, ""); err != nil || !held(c) {
		t.Error(err)
	}
}

// Rules about addresses hold for the whole address, limits count networks.
func TestGuard_RulesAreAboutWholeAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		b := newSite(t, &n, "b.example")
		b.registry.SayAddr(netip.MustParseAddr("2001:db8::7"), "This address is shut out here.")
		ask := func(addr string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/peering/v1/status", nil)
			r.RemoteAddr = "[" + addr + "]:1234"
			w := httptest.NewRecorder()
			n.hosts["b.example"].ServeHTTP(w, r)
			return w.Code
		}
		if got := ask("2001:db8::7"); got != http.StatusForbidden {
			t.Errorf("the address that is shut out: %d", got)
		}
		refused := 0
		for i := range 300 {
			if ask(fmt.Sprintf("2001:db8::%x", 0x100+i)) == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused != 100 {
			t.Errorf("%d of 300 of one network were refused", refused)
		}
	})
}

// Signatures are remembered for all portals together, so one that asks too
// often has none of those remembered that were refused for it.
func TestGuard_RemembersNothingOfWhoAsksTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
		if _, err := a.client.Handshake(t.Context(), b.origin, ""); err != nil {
			t.Fatal(err)
		}
		b.registry.Say(a.self.ID(), federation.Decision{State: federation.Active, In: true, PerSecond: 1})
		for range 10 {
			r := newRequest(t, a, b, "{}")
			r.sign(t)
			again := copyOf(r)
			status, reason := send(t, &n, r.Request)
			if status == http.StatusOK {
				continue
			}
			if reason != string(federation.ReasonLimit) {
				t.Fatal(status, reason)
			}
			time.Sleep(2 * time.Second)
			if status, reason := send(t, &n, again); status != http.StatusOK {
				t.Error(status, reason)
			}
			return
		}
		t.Error("it never asked too often")
	})
}

// Who was proved to lie is out from that moment, whatever the registry knows.
func TestGuard_ALieCountsAtOnce(t *testing.T) {
	t.Parallel()
	var n wires
	a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
	if status, body, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); err != nil || status != http.StatusOK {
		t.Fatal(status, body, err)
	}
	_, key, _, err := a.self.Key(clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Now().UnixMilli()
	for i := range int64(2) {
		h := &record.Head{Header: record.Header{Portal: a.self.ID(), Epoch: now, Seq: 7, Issued: now, Expires: now + recordtest.Hour + i}, Root: new(record.Tree).Root(), LogStart: 1}
		r, err := record.Sign(recordtest.Network, h, key)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.gate.Admit(t.Context(), r.Wire, clock.Now()); (err != nil) != (i == 1) {
			t.Fatal(err)
		}
	}
	if status, body, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); err != nil || status != http.StatusForbidden || !strings.Contains(body, `"quarantined"`) {
		t.Error(status, body, err)
	}
}
