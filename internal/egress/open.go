package egress

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"time"
)

// connSet holds the open connections of a Client with Deny or HTTP/2. It allows to close connections to
// an address that is denied later, and to bound the idle HTTP/2 connections, which net/http does not.
type connSet struct {
	mu    sync.Mutex // guards conns and the fields of each connection
	conns map[*tracked]netip.Addr
}

// tracked is a connection that is in its connSet until Close.
type tracked struct {
	net.Conn
	of *connSet
	// For HTTP/2 only: the number of requests on the connection, and the time since when it is idle.
	http2 bool
	busy  int
	since time.Time
}

// restBefore is the minimum idle time before a surplus connection is closed, because a request may just
// be about to use it.
const restBefore = time.Second

// speaksHTTP2 marks a connection as HTTP/2 after its TLS handshake, so that markBusy counts its
// requests.
func (o *connSet) speaksHTTP2(conn net.Conn) {
	if t, ok := conn.(*tracked); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		t.http2, t.since = true, time.Now()
	}
}

// markBusy records that a request uses a connection; it does nothing unless the connection is HTTP/2.
// most is the number of idle connections to keep. The caller must call idle when the request has ended.
func (o *connSet) markBusy(conn net.Conn, most int) (idle func()) {
	s, ok := conn.(*tls.Conn)
	if !ok {
		return func() {}
	}
	t, ok := s.NetConn().(*tracked)
	if !ok {
		return func() {}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !t.http2 {
		return func() {}
	}
	t.busy++
	return func() {
		if old := o.markIdle(t, most); old != nil {
			_ = old.Close()
		}
	}
}

// markIdle records the end of a request on t. If more than most connections are idle, it returns the
// longest idle one for the caller to close, else nil.
func (o *connSet) markIdle(t *tracked, most int) (old *tracked) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, idle := time.Now(), 0
	t.busy--
	t.since = now
	if len(o.conns) <= most {
		return nil
	}
	for t := range o.conns {
		if !t.http2 || t.busy > 0 {
			continue
		}
		if idle++; old == nil || t.since.Before(old.since) {
			old = t
		}
	}
	if idle <= most || now.Sub(old.since) < restBefore {
		return nil
	}
	return old
}

func (o *connSet) trackConn(conn net.Conn, a netip.Addr) net.Conn {
	t := &tracked{Conn: conn, of: o}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns == nil {
		o.conns = make(map[*tracked]netip.Addr)
	}
	o.conns[t] = a
	return t
}

// Close closes the connection and removes it from its set.
func (t *tracked) Close() error {
	t.of.mu.Lock()
	delete(t.of.conns, t)
	t.of.mu.Unlock()
	return t.Conn.Close()
}

// CloseDenied closes the connections to addresses that Config.Deny refuses by now, including the
// requests on them. It is called when the rules change.
func (c *Client) CloseDenied() {
	if c.cfg.Deny == nil {
		return
	}
	c.open.mu.Lock()
	var out []*tracked
	for t, a := range c.open.conns {
		if c.cfg.Deny(a) != "" {
			out = append(out, t)
		}
	}
	c.open.mu.Unlock()
	for _, t := range out {
		_ = t.Close()
	}
}
