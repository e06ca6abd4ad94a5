package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"agentsite/internal/fault"
	"agentsite/internal/federation"
)

// hello has b's guard decide a handshake of a from an address.
func hello(t *testing.T, a, b *site, addr string) error {
	t.Helper()
	if err := b.guard.ArriveNew(addr); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]json.RawMessage{"card": a.self.Card()})
	if err != nil {
		t.Error(err)
		return err
	}
	r := newRequest(t, a, b, string(body))
	r.URL.Path, r.URL.RawQuery = "/peering/v1/hello", ""
	r.sign(t)
	in := httptest.NewRequestWithContext(t.Context(), r.Method, r.URL.RequestURI(), strings.NewReader(r.body))
	in.Host, in.Header = r.URL.Host, r.Header
	_, done, err := b.guard.Hello(in, body, a.self.Card(), addr)
	if err == nil {
		done()
	}
	return err
}

// Handshakes whose origins never answer, or cannot be reached, take nothing from a stranger of another
// network, nor from known portals.
func TestHello_FloodKeepsNobodyOut(t *testing.T) {
	for name, origin := range map[string]http.Handler{
		"silent origins":      http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		"unreachable origins": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n wires
				b := newSite(t, &n, "b.example")
				evil := make([]*site, 12) // each says hello from many addresses
				for i := range evil {
					evil[i] = newSite(t, &n, fmt.Sprintf("evil%d.example", i))
					b.registry.Say(evil[i].self.ID(), federation.Decision{In: true, State: federation.Active, PerSecond: 1, Unproved: true})
				}
				refused := make(chan error, 1000)
				flood := func(networks int) {
					for net := range networks {
						for i := range 20 {
							e := evil[(net+i)%len(evil)]
							n.set(e.origin[len("https://"):], origin)
							go func() { refused <- hello(t, e, b, fmt.Sprintf("192.0.%d.%d", net, i)) }()
						}
					}
					synctest.Wait()
				}
				flood(1)
				if len(refused) < 12 {
					t.Errorf("%d of 20 handshakes of one network were refused or are over", len(refused))
				}
				flood(20)

				stranger, known := newSite(t, &n, "stranger.example"), newSite(t, &n, "known.example")
				b.registry.Say(stranger.self.ID(), federation.Decision{In: true, State: federation.Active, PerSecond: 1, Unproved: true})
				if err := hello(t, stranger, b, "198.51.100.1"); err != nil {
					t.Errorf("a stranger of another network: %v", err)
				}
				n.set("known.example", nil) // not even its origin answers now
				b.registry.Say(known.self.ID(), federation.Decision{In: true, State: federation.Active, PerSecond: 100})
				if err := hello(t, known, b, "198.51.100.2"); err != nil {
					t.Errorf("a known portal: %v", err)
				}
				r := newRequest(t, known, b, "body")
				r.sign(t)
				if err := verify(t, b, r, nil); err != nil {
					t.Errorf("a request of a known portal: %v", err)
				}
				added := newSite(t, &n, "added.example")
				n.set("added.example", nil)
				b.registry.Say(added.self.ID(), federation.Decision{In: true, State: federation.Active, PerSecond: 1, Unproved: true, Follow: true})
				if err := hello(t, added, b, "198.51.100.3"); err != nil {
					t.Errorf("a portal that the operator added: %v", err)
				}
			})
		})
	}
}

// One address may say hello a few times, and others are not affected.
func TestHello_AddressesHaveBucketsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n wires
		b := newSite(t, &n, "b.example")
		count := func(addr func(i int) string) (admitted int) {
			for i := range 1000 {
				err := b.guard.ArriveNew(addr(i))
				if err == nil {
					admitted++
				} else if federation.RefusalOf(err).Reason != federation.ReasonLimit || fault.As(err).RetryAfter <= 0 {
					t.Fatal(err)
				}
			}
			return admitted
		}
		if got := count(func(int) string { return "192.0.2.1" }); got != 20 {
			t.Errorf("%d handshakes of one address", got)
		}
		if got := count(func(i int) string { return fmt.Sprintf("192.0.3.%d", i%256) }); got != 100 {
			t.Errorf("%d handshakes of one IPv4 /24", got)
		}
		if got := count(func(i int) string { return fmt.Sprintf("2001:db8:1:%x::/64", i) }); got != 100 {
			t.Errorf("%d handshakes of one IPv6 /48", got)
		}
		if err := b.guard.ArriveNew("2001:db8:2::/64"); err != nil {
			t.Error(err)
		}
	})
}
