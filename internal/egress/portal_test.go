package egress

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
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
	// Who comes back goes on with the session of TLS it had.
	resumed := client(t, Config{AllowCIDR: loopback(t), RootCAs: pool, HTTP2: true})
	for _, want := range []bool{false, true} {
		resp, err := get(t, resumed, url)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body) // the ticket comes with the first of it
		resp.Body.Close()
		if resp.TLS == nil || resp.TLS.DidResume != want {
			t.Errorf("the session was resumed: %t, want %t", !want, want)
		}
		resumed.CloseIdle()
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

func TestDo_AgreesOnKeysByWhatIsSaid(t *testing.T) {
	url, pool, _ := tlsServer(t, func(http.ResponseWriter, *http.Request) {})
	for public, want := range map[bool]tls.CurveID{false: tls.X25519MLKEM768, true: tls.X25519} {
		resp, err := get(t, client(t, Config{AllowCIDR: loopback(t), RootCAs: pool, HTTP2: true, Public: public}), url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.TLS == nil || resp.TLS.CurveID != want {
			t.Errorf("public %t: keys by %v, want %v", public, resp.TLS.CurveID, want)
		}
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

// TestDo_KeepsFewIdleHTTP2 is of connections to many hosts: those that were not
// used for longest are closed, those in use never.
func TestDo_KeepsFewIdleHTTP2(t *testing.T) {
	const most = 2
	c := client(t, Config{AllowCIDR: loopback(t), HTTP2: true, MaxIdle: most})
	c.cfg.RootCAs = x509.NewCertPool()
	closed := make(chan int, 16)
	urls := make([]string, 5)
	hold, held := make(chan struct{}), make(chan struct{})
	for i := range urls {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hold" {
				close(held)
				<-hold
			}
		}))
		s.EnableHTTP2 = true
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				closed <- i
			}
		}
		s.StartTLS()
		t.Cleanup(s.Close)
		c.cfg.RootCAs.AddCert(s.Certificate())
		urls[i] = s.URL
	}
	ask := func(url string) {
		t.Helper()
		resp, err := get(t, c, url)
		if err != nil {
			t.Error(err)
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	// used says how long ago connections were last used, by the clock that counts
	// here, in their order.
	used := func(ago time.Duration) {
		c.open.mu.Lock()
		defer c.open.mu.Unlock()
		for o := range c.open.conns {
			o.since = o.since.Add(-ago)
		}
	}
	age := func() { used(2 * restBefore) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		ask(urls[0] + "/hold")
	}()
	<-held
	age()
	for i := 1; i <= most; i++ {
		ask(urls[i])
		age()
	}
	select {
	case i := <-closed:
		t.Fatalf("%d was closed although there are no more than may be", i)
	default:
	}
	ask(urls[3])
	if i := <-closed; i != 1 {
		t.Errorf("%d was closed, want the one that was idle for longest", i)
	}
	// Those that were just used are kept for a moment.
	used(-time.Hour)
	ask(urls[4])
	c.open.mu.Lock()
	if n := len(c.open.conns); n != 2+most {
		t.Errorf("%d connections are left, want the one in use and %d that were just used", n, 1+most)
	}
	c.open.mu.Unlock()
	close(hold)
	<-done
	c.open.mu.Lock()
	defer c.open.mu.Unlock()
	for o := range c.open.conns {
		if o.busy != 0 {
			t.Errorf("%d requests are counted on a connection that has none", o.busy)
		}
	}
}

// TestDo_FillsNoTablesWithHeaders is of signatures and dates, which never come
// again: neither side shall remember them.
func TestDo_FillsNoTablesWithHeaders(t *testing.T) {
	first, size := make(chan byte, 1), make(chan uint32, 1)
	s := httptest.NewUnstartedServer(nil)
	s.TLS = &tls.Config{NextProtos: []string{"h2"}}
	s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
		defer conn.Close()
		io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
		f := http2.NewFramer(conn, conn)
		f.WriteSettings()
		for {
			in, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch in := in.(type) {
			case *http2.SettingsFrame:
				if v, ok := in.Value(http2.SettingHeaderTableSize); ok {
					size <- v
				}
			case *http2.HeadersFrame:
				first <- in.HeaderBlockFragment()[0]
				return
			}
		}
	}}
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	c := client(t, Config{AllowCIDR: loopback(t), RootCAs: pool, HTTP2: true})
	if _, err := get(t, c, s.URL); err == nil {
		t.Error("answered by nobody")
	}
	if got := <-size; got > 1 {
		t.Errorf("the other side may fill a table of %d bytes here", got)
	}
	// RFC 7541, section 6.3: the size of the table is changed to 1 or 0.
	if got := <-first; got != 0x21 && got != 0x20 {
		t.Errorf("what is sent begins with %#x, not with the end of the table", got)
	}
}
