package agenttest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"syscall"
	"testing"

	"agentsite/internal/egress"
)

// Network is a network in memory; only its Dial reaches the servers on it. Its connections are
// net.Pipe, so under testing/synctest every wait is virtual and passes at once. A nil Network stands
// for the loopback interface. It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex // guards listeners
	listeners map[string]*listener
}

// NewNetwork returns a network without servers.
func NewNetwork() *Network { return &Network{listeners: make(map[string]*listener)} }

// Transport returns the product's HTTP client for outgoing requests, with its timeouts, on this
// network.
func (n *Network) Transport(t testing.TB) http.RoundTripper {
	c := egress.New(egress.Config{
		AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		PerHost:   64,
		Dial:      n.Dial,
	})
	t.Cleanup(c.CloseIdle)
	return c.RoundTripper()
}

// Dial connects to a server by its address, host:port. It returns ECONNREFUSED if there is none.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	select {
	case l.incoming <- far:
		return near, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Serve starts a server for h on the network. The caller must close it.
func (n *Network) Serve(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	if n != nil {
		s.Listener.Close()
		s.Listener = n.listen()
	}
	s.Start()
	return s
}

func (n *Network) listen() net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{
		at:       &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 20_000 + len(n.listeners)},
		incoming: make(chan net.Conn),
		closed:   make(chan struct{}),
	}
	n.listeners[l.at.String()] = l
	return l
}

// listener is a net.Listener on a Network.
type listener struct {
	at       *net.TCPAddr
	incoming chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.at }
