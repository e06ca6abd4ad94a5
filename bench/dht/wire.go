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

// asIf adds the address of the sender to a request, as a proxy would. All nodes
// are on one machine, and the portal limits requests by address.
type asIf struct {
	http.RoundTripper
	addr string
}

func (a asIf) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("X-Forwarded-For", a.addr)
	return a.RoundTripper.RoundTrip(r)
}

// near resolves the names of the portals.
type near struct{}

func (near) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if !strings.HasSuffix(host, ".example") {
		return nil, fmt.Errorf("%s is no host of this bench", host)
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
}

type nothing struct{}

func (nothing) Write(b []byte) (int, error) { return len(b), nil }

// muteListener accepts connections. Once its node is mute, bytes written to them
// are dropped, those of handshakes too.
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
