package egress

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"time"
)

// connSet holds the open connections of a Client with Deny or HTTP/2. It has two uses: a connection to
// an address that is denied later must be closed, and net/http keeps any number of idle connections of
// HTTP/2 because its bound is for HTTP/1.1 alone.
type connSet struct {
	mu    sync.Mutex // guards conns and their fields
	conns map[*tracked]netip.Addr
}

// tracked is a connection that stays in the set until it is closed.
type tracked struct {
	net.Conn
	of *connSet
	// For HTTP/2: the number of requests on it, and the time since when there are none.
	http2 bool
	busy  int
	since time.Time
}

// restBefore is the minimum idle time before a connection is closed because there are too many. The
// longest idle one is closed, and after this time no request is about to use it.
const restBefore = time.Second

// speaksHTTP2 marks a TLS connection as HTTP/2.
func (o *connSet) speaksHTTP2(conn net.Conn) {
	if t, ok := conn.(*tracked); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		t.http2, t.since = true, time.Now()
	}
}

// markBusy records that a request uses a connection, of HTTP/2 or not. The caller calls idle when the
// request has ended.
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

// markIdle records that a request on a connection ended. It returns the connection that is idle for
// longest if there are too many.
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

// Close implements net.Conn.
func (t *tracked) Close() error {
	t.of.mu.Lock()
	delete(t.of.conns, t)
	t.of.mu.Unlock()
	return t.Conn.Close()
}

// CloseDenied closes the connections to addresses that Config.Deny has denied since, with the requests
// on them.
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
