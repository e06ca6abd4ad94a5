package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/peer"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/limit"
	"agentsite/internal/testing/recordtest"
)

// TestGuard_ReadsNothingOfWhoMayNotAsk: the body is read when all else holds.
func TestGuard_ReadsNothingOfWhoMayNotAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
		if _, err := a.client.Handshake(t.Context(), b.origin, ""); err != nil {
			t.Fatal(err)
		}
		few := federation.Decision{In: true, State: federation.Active, PerSecond: 1}
		for _, c := range []struct {
			name   string
			change func(r *request) // before it is signed
			after  func(r *request)
			reason federation.Reason // none: it is read
		}{
			{name: "an honest one"},
			{"by another key", func(r *request) { r.key = recordtest.Key("x") }, nil, federation.ReasonSignature},
			{"of another path", nil, func(r *request) { r.URL.Path = "/peering/v1/lines" }, federation.ReasonSignature},
			{"without its digest", func(r *request) { r.params.Components = without(r.params.Components, "content-digest") }, nil, federation.ReasonUnsigned},
			{"with another digest", nil, func(r *request) { r.Header.Set("Content-Digest", httpsig.DigestOf([32]byte{})) }, federation.ReasonSignature},
			{"too old", func(r *request) { r.params.Created = clock.Now().Add(-time.Hour) }, nil, federation.ReasonClock},
			{"denied", nil, func(*request) { b.registry.Say(a.self.ID(), federation.Decision{State: federation.Denied}) }, federation.ReasonDenied},
			{"over its share", nil, func(r *request) {
				b.registry.Say(a.self.ID(), few)
				for range 4 {
					again := newRequest(t, a, b, "body")
					again.sign(t)
					verify(t, b, again, nil)
				}
			}, federation.ReasonLimit},
		} {
			b.registry.Say(a.self.ID(), federation.Decision{In: true, State: federation.Active, PerSecond: 1000})
			r := newRequest(t, a, b, "body")
			if c.change != nil {
				c.change(r)
			}
			r.sign(t)
			if c.after != nil {
				c.after(r)
			}
			read := false
			err := verify(t, b, r, &read)
			if c.reason == "" && (err != nil || !read) {
				t.Errorf("%s: %v, read %v", c.name, err, read)
			}
			if c.reason != "" && (err == nil || federation.RefusalOf(err).Reason != c.reason || read) {
				t.Errorf("%s: %v, read %v", c.name, err, read)
			}
			if c.reason == "" { // the very same again
				read = false
				if err := verify(t, b, r, &read); err == nil || federation.RefusalOf(err).Reason != federation.ReasonReplayed || read {
					t.Errorf("again: %v, read %v", err, read)
				}
			}
		}
	})
}

// verify has a request verified and notes whether its body was read.
func verify(t *testing.T, b *site, r *request, read *bool) error {
	t.Helper()
	in := httptest.NewRequestWithContext(t.Context(), r.Method, r.URL.RequestURI(), strings.NewReader(r.body))
	in.Host, in.Header = r.URL.Host, r.Header
	_, _, done, err := b.guard.Verify(in, "192.0.2.9", func(guard.Asker) ([]byte, error) {
		if read != nil {
			*read = true
		}
		return []byte(r.body), nil
	})
	if err == nil {
		done()
	}
	return err
}

// TestGuard_ForgedSignaturesCostTheirAddress: they count for more than others,
// and take nothing of the portal in whose name they are.
func TestGuard_ForgedSignaturesCostTheirAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
		if _, err := a.client.Handshake(t.Context(), b.origin, ""); err != nil {
			t.Fatal(err)
		}
		b.registry.Say(a.self.ID(), federation.Decision{In: true, State: federation.Active, PerSecond: 1})
		shed := 0
		for range 100 {
			if b.guard.Arrive("192.0.2.9") != nil {
				shed++
				continue
			}
			r := newRequest(t, a, b, "body")
			r.key = recordtest.Key("x")
			r.sign(t)
			if err := verify(t, b, r, nil); federation.RefusalOf(err).Reason != federation.ReasonSignature {
				t.Fatal(err)
			}
		}
		if shed < 80 {
			t.Errorf("of a hundred forged requests %d were not looked at", shed)
		}
		r := newRequest(t, a, b, "body")
		r.sign(t)
		if err := verify(t, b, r, nil); err != nil {
			t.Error("the portal pays for what others forge:", err)
		}
	})
}

// TestDoor_ATenthForWhoIsNotProved has limits of routes.
func TestDoor_ATenthForWhoIsNotProved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		b := newSite(t, &n, "b.example")
		door := peer.New(peer.Config{Self: b.self, Guard: b.guard, Replica: b.replica, Log: slog.New(slog.DiscardHandler)})
		hold, started := make(chan struct{}), make(chan struct{}, 100)
		door.Handle(http.MethodGet, "/often", echo, peer.Limits{Every: time.Minute, Burst: 20})
		door.Handle(http.MethodGet, "/long", func(context.Context, guard.Asker, *http.Request, []byte) (any, error) {
			started <- struct{}{}
			<-hold
			return nil, nil
		}, peer.Limits{AtOnce: 20})
		r := chi.NewRouter()
		r.Use(middleware.ClientIPFromRemoteAddr)
		door.Routes(r)
		n.set("b.example", r)
		for host, want := range map[string]int{"proved.example": 20, "not.example": 2} {
			a := newSite(t, &n, host)
			if _, err := a.client.Handshake(t.Context(), b.origin, ""); err != nil {
				t.Fatal(err)
			}
			b.registry.Say(a.self.ID(), federation.Decision{In: true, State: federation.Active, PerSecond: 1000, Unproved: want == 2})
			for i := range want + 1 {
				if status, body, err := a.do(t, b, http.MethodGet, "/peering/v1/often", ""); err != nil || (status == http.StatusOK) != (i < want) {
					t.Errorf("%s, request %d: %d %s %v", host, i, status, body, err)
				}
			}
			done := make(chan int)
			for range want {
				go func() {
					status, _, _ := a.do(t, b, http.MethodGet, "/peering/v1/long", "")
					done <- status
				}()
				<-started
			}
			if status, body, err := a.do(t, b, http.MethodGet, "/peering/v1/long", ""); err != nil || status != http.StatusTooManyRequests {
				t.Errorf("%s, one more at once: %d %s %v", host, status, body, err)
			}
			for range want {
				hold <- struct{}{}
			}
			for range want {
				if status := <-done; status != http.StatusOK {
					t.Errorf("%s: %d", host, status)
				}
			}
		}
	})
}

// TestGuard_StrikesWhoGoesOn: refusals that could have been foreseen, not others.
func TestGuard_StrikesWhoGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		b := newSite(t, &n, "b.example")
		shun := limit.NewPenaltyBox()
		g, err := guard.New(t.Context(), guard.Config{Self: b.self, Gate: b.gate, Registry: b.registry, Nonces: b.nonces, Prover: b.client, Shun: shun, Started: clock.Now(), Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			g.Strike("192.0.2.1", federation.ReasonLimit)
			g.Strike("192.0.2.2", federation.ReasonUnknown)
			g.Strike("192.0.2.2", federation.ReasonClock)
			g.Strike("192.0.2.2", federation.ReasonBusy)
		}
		if !shun.Contains(netip.MustParseAddr("192.0.2.1")) || shun.Contains(netip.MustParseAddr("192.0.2.2")) {
			t.Error("the wrong ones are shunned")
		}
	})
}

// TestGuard_TakesWhatAnotherImplementationSigned has the vectors of
// ident/httpsig.
func TestGuard_TakesWhatAnotherImplementationSigned(t *testing.T) {
	b, err := os.ReadFile("../../internal/ident/httpsig/testdata/peer.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name, Method, URL, Body string
		Headers                 http.Header
		Input                   string `json:"signature_input"`
		Signature               string
	}
	if err := errors.Join(json.Unmarshal(b, &list)); err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var n wires
		to := newSite(t, &n, "b.example")
		p := recordtest.NewPortal("vectors")
		p.Now = clock.Now().UnixMilli()
		p.Epoch = p.Now - recordtest.Hour
		if _, _, err := to.gate.Admit(t.Context(), p.Sign(t, p.Card()).Wire, clock.Now()); err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			u, err := url.Parse(v.URL)
			if err != nil {
				t.Fatal(err)
			}
			ask := func(body string) error {
				r := httptest.NewRequestWithContext(t.Context(), v.Method, u.RequestURI(), strings.NewReader(body))
				r.Header = v.Headers.Clone()
				r.Header.Set("Signature-Input", v.Input)
				r.Header.Set("Signature", v.Signature)
				_, _, done, err := to.guard.Verify(r, "192.0.2.9", func(guard.Asker) ([]byte, error) { return []byte(body), nil })
				if err == nil {
					done()
				}
				return err
			}
			if err := ask(v.Body + " "); err == nil {
				t.Errorf("%s: another body is taken", v.Name)
			}
			if err := ask(v.Body); err != nil {
				t.Errorf("%s: %v", v.Name, err)
			}
		}
	})
}
