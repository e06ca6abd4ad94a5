package request

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

func TestConnections_BoundEachOwnerApart(t *testing.T) {
	t.Parallel()
	person := func(id, addr string) ident.Actor { return ident.Actor{Kind: ident.Person, ID: id, Addr: addr} }
	guest := func(id, addr string) ident.Actor { return ident.Actor{Kind: ident.Guest, ID: id, Addr: addr} }
	limits := ConnectionLimits{All: 40, PerAddress: 5, Sockets: 3, Streams: 2,
		Exempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	for _, c := range []struct {
		name   string
		open   []ident.Actor // sockets that are open
		actor  ident.Actor   // of one more socket
		kind   fault.Kind    // "" if it is admitted
		saying string
	}{
		{"below the limit", []ident.Actor{person("ada", "192.0.2.1"), person("ada", "192.0.2.1")}, person("ada", "192.0.2.1"), "", ""},
		{"an account from several addresses", []ident.Actor{person("ada", "192.0.2.1"), person("ada", "192.0.2.2"),
			person("ada", "192.0.2.3")}, person("ada", "192.0.2.4"), fault.RateLimited, "Your account has 3 sockets open already"},
		{"an account on loopback", repeat(person("ada", "127.0.0.1"), 3), person("ada", "127.0.0.1"), fault.RateLimited, "Your account has 3"},
		{"another account", repeat(person("ada", "192.0.2.1"), 3), person("bob", "192.0.2.1"), "", ""},
		{"guests of one address", []ident.Actor{guest("a", "192.0.2.1"), guest("b", "192.0.2.1"), guest("c", "192.0.2.1")},
			guest("d", "192.0.2.1"), fault.RateLimited, "Visitors at your address"},
		{"a guest elsewhere", repeat(guest("a", "192.0.2.1"), 3), guest("a", "192.0.2.2"), "", ""},
		{"many accounts of one address", append(repeat(person("ada", "192.0.2.1"), 3), repeat(person("bob", "192.0.2.1"), 2)...),
			person("eve", "192.0.2.1"), fault.RateLimited, "at your address"},
		{"many accounts on loopback", append(repeat(person("ada", "::/64"), 3), repeat(person("bob", "::/64"), 3)...),
			person("eve", "::/64"), "", ""},
		{"an operator at a full address", append(repeat(person("ada", "192.0.2.1"), 3), repeat(person("bob", "192.0.2.1"), 2)...),
			ident.Actor{Kind: ident.Operator, ID: "root", Addr: "192.0.2.1"}, "", ""},
		{"a full portal", many(40), person("ada", "192.0.2.1"), fault.Unavailable, "This portal has as many"},
		{"guests of many addresses", guests(20), guest("z", "203.0.113.9"), fault.Unavailable, "Visitors have as many"},
		{"an account while guests of many addresses flood", guests(20), person("ada", "192.0.2.1"), "", ""},
		{"an operator of a full portal", many(40), ident.Actor{Kind: ident.Operator, ID: "root", Addr: "192.0.2.1"}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			open := NewConnections(limits)
			var releases []func()
			for _, a := range c.open {
				release, err := open.OpenSocket(a)
				if err != nil {
					t.Fatal(err)
				}
				releases = append(releases, release)
			}
			release, err := open.OpenSocket(c.actor)
			switch {
			case c.kind == "" && err != nil, c.kind != "" && !fault.Is(err, c.kind):
				t.Fatalf("%v, want %q", err, c.kind)
			case err != nil:
				if f := fault.As(err); !strings.Contains(f.Safe, c.saying) || f.RetryAfter <= 0 {
					t.Errorf("%q, try again after %v", f.Safe, f.RetryAfter)
				}
			default:
				releases = append(releases, release)
			}
			for _, release := range releases {
				release()
			}
			if n := open.held.Open(allConnections); n != 0 {
				t.Errorf("%d are counted when all are closed", n)
			}
			if _, err := open.OpenSocket(c.actor); err != nil {
				t.Errorf("after all were closed: %v", err)
			}
		})
	}
}

// One account may not take the room of the others with sockets, streams and calls together.
func TestConnections_OneAccountHasAQuarter(t *testing.T) {
	t.Parallel()
	open := NewConnections(ConnectionLimits{All: 40, PerAddress: 40, Sockets: 6, Streams: 6})
	ada := ident.Actor{Kind: ident.Person, ID: "ada", Addr: "192.0.2.1"}
	n := 0
	for _, more := range []func(ident.Actor) (func(), error){open.OpenSocket, open.OpenStream, open.beginCall} {
		for range 6 {
			if _, err := more(ada); err == nil {
				n++
			} else if !fault.Is(err, fault.RateLimited) {
				t.Fatal(err)
			}
		}
	}
	if n != 10 {
		t.Errorf("one account has %d of 40", n)
	}
	if _, err := open.beginCall(ident.Actor{Kind: ident.Person, ID: "bob", Addr: "192.0.2.1"}); err != nil {
		t.Errorf("another account: %v", err)
	}
}

func repeat(a ident.Actor, n int) (out []ident.Actor) {
	for range n {
		out = append(out, a)
	}
	return out
}

// many returns n accounts, each with an address of its own.
func many(n int) (out []ident.Actor) {
	for i := range n {
		name := string('a' + rune(i))
		out = append(out, ident.Actor{Kind: ident.Person, ID: name, Addr: netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}).String()})
	}
	return out
}

// guests returns n guests of different networks.
func guests(n int) (list []ident.Actor) {
	for i := range n {
		list = append(list, ident.Actor{Kind: ident.Guest, ID: fmt.Sprint("guest", i), Addr: fmt.Sprintf("10.%d.0.1", i)})
	}
	return list
}
