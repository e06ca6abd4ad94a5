package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
)

// asIf adds an X-Forwarded-For header with the portal's own address, as a proxy would. All nodes are on
// one machine, and a portal limits requests by client address.
type asIf struct {
	http.RoundTripper
	addr string
}

func (a asIf) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("X-Forwarded-For", a.addr)
	return a.RoundTripper.RoundTrip(r)
}

// near resolves the host names of the portals to loopback.
type near struct{}

func (near) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if !strings.HasSuffix(host, ".example") {
		return nil, fmt.Errorf("%s is no host of this bench", host)
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
}

type nothing struct{}

func (nothing) Write(b []byte) (int, error) { return len(b), nil }

// muteListener accepts connections. Once its node is mute, all bytes written to a connection are
// dropped, those of TLS handshakes too, as if the node had lost its network.
type muteListener struct {
	net.Listener
	mute *atomic.Bool
}

func (l muteListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return muteConn{c, l.mute}, nil
}

type muteConn struct {
	net.Conn
	mute *atomic.Bool
}

func (c muteConn) Write(b []byte) (int, error) {
	if c.mute.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}
