package egress

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// forms are ways to write loopback, private and metadata hosts, and ways to
// smuggle one past a parser.
var forms = []string{
	"127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.255.255.254", "0", "0.0.0.0", "00", "0x0",
	"2130706433", "017700000001", "0x7f000001", "0x7F.0.0.1", "0x7f.1", "0177.0.0.1", "0177.0.0.01",
	"127.0x0.0.1", "127.0.0.0x1", "127.000.000.001", "127.0.0.1.0", "127.0.0", "4294967295", "-1", "1e3.1",
	"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "169.254.0.1",
	"2852039166", "0xA9FEA9FE", "0251.0376.0251.0376", "100.64.0.1", "100.100.100.200", "168.63.129.16",
	"192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
	"255.255.255.255", "0.1.2.3",
	"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:a9fe:a9fe]",
	"[0:0:0:0:0:ffff:7f00:1]", "[::127.0.0.1]", "[::7f00:1]", "[::ffff:0:127.0.0.1]",
	"[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]",
	"[2001:0:7f00:1::]", "[2001:db8::1]", "[fc00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fe80::1%25lo]", "[fe80::1%25eth0]",
	"[::1%25lo]", "[fec0::1]", "[ff02::1]", "[100::1]", "[5f00::1]", "[3fff::1]", "[127.0.0.1]", "[::1", "::1",
	"localhost", "LOCALHOST", "localhost.", "foo.localhost", "ip6-localhost", "localhost.localdomain",
	"①②⑦.⓪.⓪.①", "127。0。0。1", "１２７.0.0.1", "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "127.0.0.1%00.example.com",
	"user@127.0.0.1", "example.com@127.0.0.1", "example.com:80@127.0.0.1", "127.0.0.1#@example.com", "127.0.0.1?@example.com",
	"example.com\\@127.0.0.1", "example.com ", " 127.0.0.1", "127.0.0.1\t", "127.0.0.1\n", "127.0.0.1/@example.com",
	"rebound.example", "metadata.google.internal", "127.0.0.1.nip.example", "xn--127-0-0-1.example", "_dns.example",
}

func TestClient_NeverConnectsToPrivateForms(t *testing.T) {
	v4 := listen(t, "127.0.0.1:0", nil)
	v6 := listen(t, "[::1]:"+v4.port(), nil)
	// The resolver is the worst one there is: every name leads here.
	c := client(t, Config{Resolver: &fakeDNS{answers: [][]netip.Addr{addrs("127.0.0.1", "::1")}}})
	if len(forms) < 60 {
		t.Fatalf("only %d forms", len(forms))
	}
	for _, scheme := range []string{"http", "https"} {
		for _, f := range forms {
			url := scheme + "://" + f + ":" + v4.port() + "/"
			if resp, err := get(t, c, url); err == nil {
				resp.Body.Close()
				t.Errorf("%s answered", url)
			} else if r := Reason(err); r == "" {
				t.Errorf("%s: no reason for %v", url, err)
			}
			// The same by hand, past the URL parser.
			host := strings.Trim(f, "[]")
			if conn, err := c.dialPlain(t.Context(), "tcp", net.JoinHostPort(host, v4.port())); err == nil {
				conn.Close()
				t.Errorf("dialled %q", f)
			}
		}
	}
	if n := len(v4.seen) + len(v6.seen); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
}

func TestClient_SystemResolverRefusesLocalhost(t *testing.T) {
	v4 := listen(t, "127.0.0.1:0", nil)
	c := client(t, Config{})
	_, err := get(t, c, "http://localhost:"+v4.port()+"/")
	if CodeOf(err) != Private && CodeOf(err) != NoSuchHost {
		t.Errorf("localhost: %v", err)
	}
	if len(v4.seen) != 0 {
		t.Error("connected")
	}
}

func TestClient_ResolvedAddressesAreChecked(t *testing.T) {
	v4 := listen(t, "127.0.0.1:0", nil)
	v6 := listen(t, "[::1]:"+v4.port(), nil)
	for name, answer := range map[string][]netip.Addr{
		"loopback":   addrs("127.0.0.1"),
		"mapped":     addrs("::ffff:127.0.0.1"),
		"nat64":      addrs("64:ff9b::7f00:1"),
		"nat64local": addrs("64:ff9b:1::7f00:1"),
		"6to4":       addrs("2002:7f00:1::"),
		"teredo":     addrs("2001:0:4136:e378:8000:63bf:3fff:fdd2"),
		"zero":       addrs("0.0.0.0", "::"),
		"sitelocal":  addrs("fec0::1"),
		"metadata":   addrs("169.254.169.254", "fd00:ec2::254"),
		"many":       addrs("10.0.0.1", "127.0.0.1", "192.168.1.1", "::1", "fe80::1", "100.64.0.1", "127.0.0.2"),
	} {
		c := client(t, Config{Resolver: &fakeDNS{answers: [][]netip.Addr{answer}}})
		_, err := get(t, c, "http://agent.example:"+v4.port()+"/")
		if CodeOf(err) != Private || Reason(err) != "refused to connect to a private address" {
			t.Errorf("%s: %v (%q)", name, err, Reason(err))
		}
	}
	if n := len(v4.seen) + len(v6.seen); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
}

func TestClient_MixedAnswersDialOnlyThePermitted(t *testing.T) {
	hello := func(conn net.Conn) {
		http.ReadRequest(newReader(conn))
		conn.Write([]byte("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"))
	}
	good := listen(t, "127.0.0.2:0", hello)
	bad := listen(t, "127.0.0.1:"+good.port(), hello)
	c := client(t, Config{
		AllowCIDR: parsePrefixes("127.0.0.2/32"),
		Resolver:  &fakeDNS{answers: [][]netip.Addr{addrs("127.0.0.1", "127.0.0.2"), addrs("127.0.0.1")}},
	})
	resp, err := get(t, c, "http://agent.example:"+good.port()+"/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	// Rebinding: the second lookup brings only the forbidden address.
	if _, err := get(t, c, "http://agent.example:"+good.port()+"/"); CodeOf(err) != Private {
		t.Errorf("after rebinding: %v", err)
	}
	if len(good.seen) != 1 || len(bad.seen) != 0 {
		t.Errorf("good %d, bad %d connections", len(good.seen), len(bad.seen))
	}
}

func TestClient_ControlChecksWhatIsDialled(t *testing.T) {
	c := client(t, Config{})
	for _, a := range []string{"127.0.0.1:80", "[::1]:80", "[fe80::1%lo]:80", "[::ffff:10.0.0.1]:80", "nonsense"} {
		if c.checkControl("tcp", a, nil) == nil {
			t.Errorf("%s passed", a)
		}
	}
	if err := c.checkControl("tcp", "8.8.8.8:443", nil); err != nil {
		t.Errorf("8.8.8.8: %v", err)
	}
}

func TestPolicy_AllowOpensExactlyThat(t *testing.T) {
	p := newPolicy(parsePrefixes("10.1.0.0/16", "::1/128", "::ffff:192.168.7.0/120", "2002::/16", "64:ff9b::/96", "fd00::/8"))
	for addr, want := range map[string]bool{
		"10.1.2.3": true, "10.2.0.1": false, "::1": true, "127.0.0.1": false, "::ffff:10.1.2.3": true,
		"192.168.7.9": true, "192.168.8.9": false, "2002:a01:203::": false, "64:ff9b::a01:203": false,
		"fd12::1": true, "fc12::1": false, "fe80::1": false, "fd12::1%eth0": false,
		"8.8.8.8": true, "2606:4700::1111": true, "2001:4860:4860::8888": true, "168.63.129.16": false,
	} {
		if got := p.allowsAddr(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: permitted %v", addr, got)
		}
	}
	if p.allowsAddr(netip.Addr{}) {
		t.Error("the zero address is permitted")
	}
}
