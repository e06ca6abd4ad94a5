package egress

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeDNS answers every name with the lists in turn; the last one stays.
type fakeDNS struct {
	answers [][]netip.Addr
	asked   int
}

func (f *fakeDNS) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	a := f.answers[min(f.asked, len(f.answers)-1)]
	f.asked++
	return a, nil
}

func addrs(list ...string) []netip.Addr {
	out := make([]netip.Addr, len(list))
	for i, s := range list {
		out[i] = netip.MustParseAddr(s)
	}
	return out
}

func loopback(t *testing.T) []netip.Prefix {
	t.Helper()
	return parsePrefixes("127.0.0.0/8", "::1/128")
}

// client returns a Client that is closed with the test.
func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c := New(cfg)
	t.Cleanup(c.CloseIdle)
	return c
}

func get(t *testing.T, c *Client, url string) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return c.Do(ctx, req)
}

// pipes is a listener in memory, for tests under testing/synctest. Its server
// is reached at any address.
type pipes struct {
	net.Listener
	incoming chan net.Conn
	closed   chan struct{}
}

func serveInMemory(t *testing.T, h http.HandlerFunc) *pipes {
	p := &pipes{incoming: make(chan net.Conn), closed: make(chan struct{})}
	var running sync.WaitGroup
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		h(w, r)
	})}
	running.Go(func() { s.Serve(p) })
	// Closing a server does not wait for its handlers; a bubble must.
	t.Cleanup(func() { s.Close(); running.Wait() })
	return p
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.incoming <- far
	return near, nil
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.incoming:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error { close(p.closed); return nil }

// wire is a listener that counts who connects and hands connections to serve.
type wire struct {
	net.Listener
	seen chan struct{}
}

func listen(t *testing.T, addr string, serve func(net.Conn)) *wire {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("no %s here: %v", addr, err)
	}
	w := &wire{Listener: ln, seen: make(chan struct{}, 1<<16)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			w.seen <- struct{}{}
			if serve != nil {
				serve(conn)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return w
}

func (w *wire) port() string {
	_, p, _ := net.SplitHostPort(w.Addr().String())
	return p
}
