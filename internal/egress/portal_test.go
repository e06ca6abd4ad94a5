package egress

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
)

// What only clients of other portals use: HTTP/2, encoded answers, networks
// that are shut out.

// tlsServer is a server that takes HTTP/2 or 1.1 and counts its connections.
func tlsServer(t *testing.T, h http.HandlerFunc) (url string, pool *x509.CertPool, conns *atomic.Int32) {
	t.Helper()
	conns = new(atomic.Int32)
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	pool = x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s.URL, pool, conns
}

func TestDo_HTTP2WhereItIsAskedFor(t *testing.T) {
	const atOnce = 4
	arrived, goOn := make(chan string, atOnce), make(chan struct{})
	url, pool, conns := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			arrived <- r.Proto
			select {
			case <-goOn:
			case <-r.Context().Done():
			}
		}
		io.WriteString(w, r.Proto)
	})
	for want, on := range map[string]bool{"HTTP/2.0": true, "HTTP/1.1": false} {
		c := client(t, Config{AllowCIDR: loopback(t), RootCAs: pool, HTTP2: on})
		resp, err := get(t, c, url)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(b) != want {
			t.Errorf("%q %v, want %s", b, err, want)
		}
	}
	// Many at once are on one connection, and who gives up takes nobody along.
	c := client(t, Config{AllowCIDR: loopback(t), RootCAs: pool, HTTP2: true})
	if resp, err := get(t, c, url); err != nil {
		t.Fatal(err)
	} else {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	before := conns.Load()
	quit, giveUp := context.WithCancel(t.Context())
	failed, done := make(chan error, 1), make(chan error, atOnce)
	ask := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/wait", nil)
		if err != nil {
			return err
		}
		resp, err := c.Do(ctx, r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return err
	}
	go func() { failed <- ask(quit) }()
	for range atOnce - 1 {
		go func() { done <- ask(t.Context()) }()
	}
	for range atOnce {
		<-arrived
	}
	giveUp()
	if err := <-failed; CodeOf(err) != Canceled {
		t.Error("who gave up:", err)
	}
	close(goOn)
	for range atOnce - 1 {
		if err := <-done; err != nil {
			t.Error("of the others:", err)
		}
	}
	if n := conns.Load() - before; n != 0 {
		t.Errorf("%d more connections", n)
	}
}

func TestDo_EncodedAsAsked(t *testing.T) {
	encoding := ""
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", encoding)
		z := gzip.NewWriter(w)
		io.WriteString(z, "text")
		z.Close()
	})
	for _, c := range []struct {
		takes       bool
		asks, comes string
		code        Code
	}{
		{true, "gzip", "gzip", ""},
		{true, "br, gzip", "GZIP", ""},
		{true, "gzip", "br", Encoded},
		{true, "", "gzip", Encoded},
		{false, "gzip", "gzip", Encoded},
	} {
		encoding = c.comes
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.asks != "" {
			r.Header.Set("Accept-Encoding", c.asks)
		}
		resp, err := client(t, Config{AllowCIDR: loopback(t), Encoded: c.takes}).Do(t.Context(), r)
		if CodeOf(err) != c.code {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil {
			continue
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || len(b) < 2 || b[0] != 0x1f { // as it came
			t.Errorf("%+v: %q %v", c, b, err)
		}
	}
	// The bound is on what travels.
	encoding = "gzip"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	if resp, err := client(t, Config{AllowCIDR: loopback(t), Encoded: true, MaxBody: 5}).Do(t.Context(), r); CodeOf(err) != TooLarge {
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if CodeOf(err) != TooLarge {
			t.Error("a long one:", err)
		}
	}
}

func TestDo_DialsNoNetworkThatIsShutOut(t *testing.T) {
	near := listen(t, "127.0.0.1:0", nil)
	var seen []netip.Addr
	c := client(t, Config{AllowCIDR: loopback(t), Resolver: &fakeDNS{answers: [][]netip.Addr{addrs("::ffff:127.0.0.1")}}, Deny: func(a netip.Addr) string {
		if seen = append(seen, a); a.IsLoopback() && a.Is4() {
			return "That network is shut out here."
		}
		return ""
	}})
	for _, host := range []string{"127.0.0.1", "some.example"} {
		_, err := get(t, c, "http://"+host+":"+near.port())
		if CodeOf(err) != Denied || Reason(err) == "" {
			t.Errorf("%s: %v", host, err)
		}
	}
	if len(near.seen) > 0 || len(seen) < 2 {
		t.Error("it was connected to", len(near.seen), "times, and asked about", seen)
	}
}
