package egress

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"time"
)

// open are the connections there are, of a Client with Deny or HTTP/2. What is
// denied later is not dialled again, and must not go on either; and net/http
// itself keeps any number of idle connections of HTTP/2, as what bounds them is
// for HTTP/1.1 alone.
type open struct {
	mu    sync.Mutex // guards conns, and what is in them
	conns map[*tracked]netip.Addr
}

// tracked is a connection that is among the open ones until it is closed.
type tracked struct {
	net.Conn
	of *open
	// Of one of HTTP/2: how many requests are on it, and since when none.
	http2 bool
	busy  int
	since time.Time
}

// restBefore is how long a connection has to be idle before it is closed because
// there are too many: nobody is about to send on it, as those go that are idle
// for longest.
const restBefore = time.Second

// speaksHTTP2 notes that a connection, over TLS, is of HTTP/2.
func (o *open) speaksHTTP2(conn net.Conn) {
	if t, ok := conn.(*tracked); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		t.http2, t.since = true, time.Now()
	}
}

// busy notes that a request is on a connection, of HTTP/2 or not. It returns
// what is to be called when that ended.
func (o *open) busy(conn net.Conn, most int) (idle func()) {
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
		if old := o.rest(t, most); old != nil {
			old.Close()
		}
	}
}

// rest notes that a request on a connection ended, and returns the one that is
// idle for longest if there are too many.
func (o *open) rest(t *tracked, most int) (old *tracked) {
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

func (o *open) track(conn net.Conn, a netip.Addr) net.Conn {
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

// CloseDenied closes the connections to addresses that Config.Deny is against by
// now, with the requests on them.
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
		t.Close()
	}
}
