package client_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// request is one from a to b, signed as change has it.
type request struct {
	*http.Request
	params httpsig.Params
	key    ed25519.PrivateKey
	body   string
}

var serial atomic.Int64

func nonce() string {
	sum := sha256.Sum256(fmt.Append(nil, serial.Add(1)))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func newRequest(t *testing.T, a, b *site, body string) *request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.origin+"/peering/v1/echo?x=1", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(guard.NetworkField, a.self.Network())
	r.Header.Set("Content-Digest", httpsig.DigestOf(sha256.Sum256([]byte(body))))
	id, key, _, err := a.self.Key(clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Now()
	return &request{r, httpsig.Params{Components: httpsig.Components("@method", "@authority", "@path", "@query", "agentsite-network", "content-digest"),
		Created: now, Expires: now.Add(time.Minute), KeyID: string(a.self.ID()) + "/" + string(id), Nonce: nonce(), Tag: guard.SignatureTag}, key, body}
}

func (r *request) sign(t *testing.T) {
	t.Helper()
	if err := httpsig.Sign(r.Request, "sig1", r.params, r.key); err != nil {
		t.Fatal(err)
	}
}

// send returns status and reason of the answer.
func send(t *testing.T, n *wires, r *http.Request) (int, string) {
	t.Helper()
	resp, err := n.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Error struct{ Kind, Reason, Message string }
	}
	body := readAll(t, resp.Body)
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatal(body, err)
	}
	if resp.StatusCode != http.StatusOK && (e.Error.Message == "" || e.Error.Kind == "") {
		t.Errorf("the refusal says nothing: %s", body)
	}
	return resp.StatusCode, e.Error.Reason
}

func without(list []httpsig.Component, name string) []httpsig.Component {
	var out []httpsig.Component
	for _, c := range list {
		if c.Name != name {
			out = append(out, c)
		}
	}
	return out
}

// TestGuard_Refuses has each reason of docs/design/peering.md that a request can
// be refused for before its handler is asked.
func TestGuard_Refuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name   string
			change func(r *request, a, b *site) // before it is signed
			after  func(r *request, a, b *site)
			status int
			reason string
		}{
			{name: "as it should be", status: 200},
			{"no signature", nil, func(r *request, a, b *site) { r.Header.Del("Signature") }, 401, "unsigned"},
			{"no network", nil, func(r *request, a, b *site) { r.Header.Del(guard.NetworkField) }, 401, "unsigned"},
			{"another tag", func(r *request, a, b *site) { r.params.Tag = "web-bot-auth" }, nil, 401, "unsigned"},
			{"no tag", func(r *request, a, b *site) { r.params.Tag = "" }, nil, 401, "unsigned"},
			{"no nonce", func(r *request, a, b *site) { r.params.Nonce = "" }, nil, 401, "unsigned"},
			{"short nonce", func(r *request, a, b *site) { r.params.Nonce = strings.Repeat("a", 21) }, nil, 401, "unsigned"},
			{"long nonce", func(r *request, a, b *site) { r.params.Nonce = strings.Repeat("a", 44) }, nil, 401, "unsigned"},
			{"odd nonce", func(r *request, a, b *site) { r.params.Nonce = strings.Repeat("+", 22) }, nil, 401, "unsigned"},
			{"no end", func(r *request, a, b *site) { r.params.Expires = time.Time{} }, nil, 401, "unsigned"},
			{"late end", func(r *request, a, b *site) { r.params.Expires = r.params.Created.Add(61 * time.Second) }, nil, 401, "unsigned"},
			{"keyid without a slash", func(r *request, a, b *site) { r.params.KeyID = "x" }, nil, 401, "unsigned"},
			{"query left out", func(r *request, a, b *site) { r.params.Components = without(r.params.Components, "@query") }, nil, 401, "unsigned"},
			{"method left out", func(r *request, a, b *site) { r.params.Components = without(r.params.Components, "@method") }, nil, 401, "unsigned"},
			{"path left out", func(r *request, a, b *site) { r.params.Components = without(r.params.Components, "@path") }, nil, 401, "unsigned"},
			{"authority left out", func(r *request, a, b *site) { r.params.Components = without(r.params.Components, "@authority") }, nil, 401, "unsigned"},
			{"network left out", func(r *request, a, b *site) { r.params.Components = without(r.params.Components, "agentsite-network") }, nil, 401, "unsigned"},
			{"digest left out", func(r *request, a, b *site) { r.params.Components = without(r.params.Components, "content-digest") }, nil, 401, "unsigned"},
			{"for added", nil, func(r *request, a, b *site) { r.Header.Set(guard.ForField, "kind=person") }, 401, "unsigned"},
			{"hops added", nil, func(r *request, a, b *site) { r.Header.Set(guard.HopsField, "x") }, 401, "unsigned"},
			{"budget added", nil, func(r *request, a, b *site) { r.Header.Set(guard.BudgetField, "x") }, 401, "unsigned"},
			{"authorization added", nil, func(r *request, a, b *site) { r.Header.Set("Authorization", "Bearer x") }, 401, "unsigned"},
			{"a stranger", func(r *request, a, b *site) {
				r.params.KeyID = string(recordtest.NewPortal("x").ID) + "/" + strings.Split(r.params.KeyID, "/")[1]
			}, nil, 401, "unknown_portal"},
			{"a key that is not listed", func(r *request, a, b *site) {
				r.key = recordtest.Key("x")
				r.params.KeyID = string(a.self.ID()) + "/" + string(record.KeyIDOf(record.PublicOf(r.key)))
			}, nil, 401, "unknown_portal"},
			{"the root key", func(r *request, a, b *site) {
				r.key = a.keys.Portal
				r.params.KeyID = string(a.self.ID()) + "/" + string(record.KeyIDOf(record.PublicOf(r.key)))
			}, nil, 401, "unknown_portal"},
			{"another key's signature", func(r *request, a, b *site) { r.key = recordtest.Key("x") }, nil, 401, "signature"},
			{"another method", nil, func(r *request, a, b *site) { r.Method = http.MethodPut }, 401, "signature"},
			{"another path", nil, func(r *request, a, b *site) { r.URL.Path = "/peering/v1/lines"; r.Method = http.MethodGet }, 401, "signature"},
			{"another query", nil, func(r *request, a, b *site) { r.URL.RawQuery = "x=2" }, 401, "signature"},
			{"another body", nil, func(r *request, a, b *site) {
				other, _ := http.NewRequest(http.MethodPost, b.origin, strings.NewReader("another"))
				r.Body = other.Body
			}, 401, "signature"},
			{"signed for another portal", func(r *request, a, b *site) { r.Host = "c.example" }, func(r *request, a, b *site) { r.Host = "" }, 401, "signature"},
			{"old", func(r *request, a, b *site) {
				r.params.Created, r.params.Expires = clock.Now().Add(-122*time.Second), clock.Now().Add(-62*time.Second)
			}, nil, 401, "clock"},
			{"old, as clocks differ", func(r *request, a, b *site) {
				r.params.Created, r.params.Expires = clock.Now().Add(-115*time.Second), clock.Now().Add(-55*time.Second)
			}, nil, 200, ""},
			{"of the future", func(r *request, a, b *site) {
				r.params.Created, r.params.Expires = clock.Now().Add(62*time.Second), clock.Now().Add(120*time.Second)
			}, nil, 401, "clock"},
			{"of the future, as clocks differ", func(r *request, a, b *site) {
				r.params.Created, r.params.Expires = clock.Now().Add(55*time.Second), clock.Now().Add(110*time.Second)
			}, nil, 200, ""},
			{"another network", func(r *request, a, b *site) { r.Header.Set(guard.NetworkField, "elsewhere") }, nil, 403, "network"},
			{"denied", nil, func(r *request, a, b *site) {
				b.registry.Say(a.self.ID(), federation.Decision{State: federation.Denied})
			}, 403, "denied"},
			{"pending", nil, func(r *request, a, b *site) {
				b.registry.Say(a.self.ID(), federation.Decision{State: federation.Pending, Reason: "Wait."})
			}, 403, "pending"},
			{"quarantined", nil, func(r *request, a, b *site) {
				b.registry.Say(a.self.ID(), federation.Decision{State: federation.Quarantined})
			}, 403, "quarantined"},
			{"a denied key", nil, func(r *request, a, b *site) { b.registry.SayKey(a.self.Content().Keys[0].ID, "No.") }, 403, "denied"},
			{"a denied address", nil, func(r *request, a, b *site) { b.registry.SayAddr(netip.MustParseAddr("192.0.2.1"), "No.") }, 403, "denied"},
			{"too long", nil, func(r *request, a, b *site) {
				other, _ := http.NewRequest(http.MethodPost, b.origin, strings.NewReader(strings.Repeat("x", 256<<10+1)))
				r.Body = other.Body
			}, 413, "size"},
			{"no route", func(r *request, a, b *site) { r.URL.Path = "/peering/v1/nothing" }, nil, 404, "absent"},
		} {
			var n wires
			a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
			if _, err := a.client.Handshake(t.Context(), b.origin, ""); err != nil {
				t.Fatal(err)
			}
			r := newRequest(t, a, b, `{"a":1}`)
			if c.change != nil {
				c.change(r, a, b)
			}
			r.sign(t)
			if c.after != nil {
				c.after(r, a, b)
			}
			if status, reason := send(t, &n, r.Request); status != c.status || reason != c.reason {
				t.Errorf("%s: %d %s, want %d %s", c.name, status, reason, c.status, c.reason)
			}
		}
	})
}

// copyOf can be sent again.
func copyOf(r *request) *http.Request {
	out := r.Clone(r.Context())
	again, _ := http.NewRequest(http.MethodPost, r.URL.String(), strings.NewReader(r.body))
	out.Body = again.Body
	return out
}

func TestGuard_NoRequestCountsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
		ctx := t.Context()
		if _, err := a.client.Handshake(ctx, b.origin, ""); err != nil {
			t.Fatal(err)
		}
		past, ahead := newRequest(t, a, b, "{}"), newRequest(t, a, b, "{}")
		ahead.params.Created, ahead.params.Expires = clock.Now().Add(50*time.Second), clock.Now().Add(100*time.Second)
		for _, r := range []*request{past, ahead} {
			r.sign(t)
			if status, reason := send(t, &n, copyOf(r)); status != 200 {
				t.Fatal(status, reason)
			}
			if status, reason := send(t, &n, copyOf(r)); status != 401 || reason != "replayed" {
				t.Error(status, reason)
			}
			if status, _ := send(t, &n, func() *http.Request {
				again := newRequest(t, a, b, "{}")
				again.params.Nonce = r.params.Nonce
				again.sign(t)
				return again.Request
			}()); status != 401 {
				t.Error("a nonce was used for another request")
			}
		}
		// The portal dies, and starts again.
		time.Sleep(2 * time.Second)
		b.serve(t, &n)
		if status, reason := send(t, &n, copyOf(past)); status != 401 || reason != "clock" {
			t.Error(status, reason)
		}
		if status, reason := send(t, &n, copyOf(ahead)); status != 401 || reason != "replayed" {
			t.Error("a request whose clock was ahead was sent again after a start", status, reason)
		}
		if status, _, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); err != nil || status != 200 {
			t.Error("nobody is let in after a start", status, err)
		}
	})
}

// After an end in order nothing has to be refused: all nonces are on disk.
func TestGuard_RemembersOverAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
		if _, err := a.client.Handshake(t.Context(), b.origin, ""); err != nil {
			t.Fatal(err)
		}
		ended, fresh := newRequest(t, a, b, "{}"), newRequest(t, a, b, "{}")
		ended.sign(t)
		fresh.sign(t)
		if status, _ := send(t, &n, copyOf(ended)); status != 200 {
			t.Fatal(status)
		}
		end(t, b)
		b.serve(t, &n)
		if status, reason := send(t, &n, copyOf(ended)); status != 401 || reason != "replayed" {
			t.Error(status, reason)
		}
		if status, reason := send(t, &n, copyOf(fresh)); status != 200 {
			t.Error(status, reason)
		}
	})
}

func TestGuard_LimitsEachPortalForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		a, b, c := newSite(t, &n, "a.example"), newSite(t, &n, "b.example"), newSite(t, &n, "c.example")
		d := b.registry.Decide(t.Context(), a.self.ID(), "")
		d.PerSecond = 5
		b.registry.Say(a.self.ID(), d)
		let := 0
		for range 40 {
			if status, _, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); err != nil {
				t.Fatal(err)
			} else if status == 200 {
				let++
			} else if status != http.StatusTooManyRequests {
				t.Fatal(status)
			}
		}
		if let != 20 { // four seconds' worth at once
			t.Errorf("%d requests were answered", let)
		}
		if status, _, err := c.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); err != nil || status != 200 {
			t.Error("another portal is limited too", status, err)
		}
		time.Sleep(time.Second)
		if status, _, err := a.do(t, b, http.MethodGet, "/peering/v1/echo/x", ""); err != nil || status != 200 {
			t.Error(status, err)
		}
	})
}

func TestGuard_LimitsAddressesBeforeAnythingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		b := newSite(t, &n, "b.example")
		refused := 0
		for range 300 {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, b.origin+"/peering/v1/echo", strings.NewReader("{}"))
			if status, reason := send(t, &n, r); status == http.StatusTooManyRequests && reason == "limit" {
				refused++
			} else if status != 401 {
				t.Fatal(status, reason)
			}
		}
		if refused != 100 {
			t.Errorf("%d of 300 were refused", refused)
		}
	})
}

func TestHello_Refuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hello := func(a, b *site, card []byte) *request {
			body, _ := json.Marshal(map[string]json.RawMessage{"card": card})
			r := newRequest(t, a, b, string(body))
			r.URL.Path, r.URL.RawQuery = "/peering/v1/hello", ""
			return r
		}
		for _, c := range []struct {
			name   string
			make   func(a, b, c *site, n *wires) *request
			status int
			reason string
		}{
			{"as it should be", func(a, b, c *site, n *wires) *request { return hello(a, b, a.self.Card()) }, 200, ""},
			{"another's card", func(a, b, c *site, n *wires) *request { return hello(a, b, c.self.Card()) }, 400, "malformed"},
			{"its own card", func(a, b, c *site, n *wires) *request {
				r := hello(a, b, b.self.Card())
				return r
			}, 403, "denied"},
			{"no card", func(a, b, c *site, n *wires) *request { return hello(a, b, []byte("{}")) }, 400, "malformed"},
			{"a stolen key", func(a, b, c *site, n *wires) *request {
				r := hello(a, b, a.self.Card())
				_, r.key, _, _ = c.self.Key(clock.Now())
				return r
			}, 401, "signature"},
			{"a key that the card does not list", func(a, b, c *site, n *wires) *request {
				r := hello(a, b, a.self.Card())
				r.key = recordtest.Key("x")
				r.params.KeyID = string(a.self.ID()) + "/" + string(record.KeyIDOf(record.PublicOf(r.key)))
				return r
			}, 401, "unknown_portal"},
			{"a card of another root key", func(a, b, c *site, n *wires) *request {
				r, _ := record.Open(recordtest.Network, a.self.Card())
				forged, err := record.Sign(recordtest.Network, r.Body, recordtest.Key("x"))
				if err != nil {
					t.Fatal(err)
				}
				return hello(a, b, forged.Wire)
			}, 401, "signature"},
			{"an origin where another is", func(a, b, c *site, n *wires) *request {
				n.set("a.example", n.hosts["c.example"])
				return hello(a, b, a.self.Card())
			}, 403, "denied"},
			{"an origin that is down", func(a, b, c *site, n *wires) *request {
				n.set("a.example", nil)
				return hello(a, b, a.self.Card())
			}, 200, ""},
			{"pending", func(a, b, c *site, n *wires) *request {
				b.registry.Say(a.self.ID(), federation.Decision{State: federation.Pending})
				return hello(a, b, a.self.Card())
			}, 200, ""},
			{"denied", func(a, b, c *site, n *wires) *request {
				b.registry.Say(a.self.ID(), federation.Decision{State: federation.Denied})
				return hello(a, b, a.self.Card())
			}, 403, "denied"},
		} {
			var n wires
			a, b, other := newSite(t, &n, "a.example"), newSite(t, &n, "b.example"), newSite(t, &n, "c.example")
			r := c.make(a, b, other, &n)
			r.sign(t)
			if status, reason := send(t, &n, r.Request); status != c.status || reason != c.reason {
				t.Errorf("%s: %d %s, want %d %s", c.name, status, reason, c.status, c.reason)
			}
			held, _ := b.replica.Card(t.Context(), a.self.ID())
			if (held != nil) != (c.status == 200) {
				t.Errorf("%s: the card is held: %v", c.name, held != nil)
			}
		}
	})
}

// A portal that is down says hello; from then on it may ask, but is not proved.
func TestHello_WithoutAnAnswerProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		a, b := newSite(t, &n, "a.example"), newSite(t, &n, "b.example")
		n.set("a.example", nil)
		w, err := a.client.Handshake(t.Context(), b.origin, "")
		if err != nil || w.State != federation.Active {
			t.Fatal(w, err)
		}
		if list := b.registry.Portals(t.Context()); len(list) != 1 || !list[0].Proved.IsZero() {
			t.Errorf("%+v", list)
		}
	})
}
