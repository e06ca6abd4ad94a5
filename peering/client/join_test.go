package client_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"agentsite/internal/egress"
	"agentsite/internal/federation"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/weborigin"
	"agentsite/peering/client"
)

// serveSite serves a portal at its own address on loopback.
func serveSite(t *testing.T) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var n wires
	s := newSite(t, &n, l.Addr().String())
	server := &http.Server{Handler: n.hosts[l.Addr().String()]}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return s
}

func TestJoin_FindsAPortalByAnySpellingOfItsHost(t *testing.T) {
	t.Parallel()
	a, b := serveSite(t), serveSite(t)
	c := realClient(a)
	host := federation.HostOf(b.origin)
	_, port, _ := net.SplitHostPort(host)
	for _, spelling := range []string{host, b.origin, "localhost:" + port} {
		id, err := c.Join(t.Context(), weborigin.PortalOrigins(spelling))
		if err != nil || id != b.self.ID() {
			t.Errorf("%s: %s %v", spelling, id, err)
		}
		if list := a.registry.Portals(t.Context()); len(list) != 1 || list[0].URL != b.origin {
			t.Errorf("%s: %+v", spelling, list)
		}
	}
}

func TestJoin_NamesTheCause(t *testing.T) {
	t.Parallel()
	a := serveSite(t)
	c := realClient(a)
	host := strings.TrimPrefix(a.origin, "http://")
	_, port, _ := net.SplitHostPort(host)
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<p>Hello")) }))
	t.Cleanup(page.Close)
	asked := 0
	selfSigned := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(selfSigned.Close)
	selfSigned.Config.ErrorLog = nil
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	for _, tt := range []struct{ text, want string }{
		{strings.TrimPrefix(web.URL, "http://"), "answers, but is not a portal"},
		{page.URL, "answers, but is not a portal"},
		{strings.TrimPrefix(selfSigned.URL, "https://"), "certificate is signed by an unknown authority"},
		{closed, "connection refused"},
		{"http://" + closed, "connection refused"},
		{"nowhere.invalid", "No host named nowhere.invalid was found"},
		{"10.0.0.1:81", "is a private address"},
		{"localhost:" + port, "is this portal itself"},
	} {
		_, err := c.Join(t.Context(), weborigin.PortalOrigins(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.text, err)
		}
	}
	if list := a.registry.Portals(t.Context()); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if asked != 0 {
		t.Error("a host with a wrong certificate got a request")
	}
}

// realClient returns a client of the portal that uses real connections.
func realClient(s *site) *client.Client {
	out := egress.New(egress.Config{AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("::1/128")}})
	s.registry = new(federationtest.Registry)
	return client.New(client.Config{Self: s.self, Gate: s.gate, Replica: s.replica, Registry: s.registry,
		RoundTripper: out.RoundTripper(), Stream: out.RoundTripper(), Log: discard})
}
