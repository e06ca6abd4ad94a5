package egress

import (
	"net"
	"net/netip"
	"sync"
)

// open are the connections there are, of a Client with Deny: what is denied
// later is not dialled again, and must not go on either.
type open struct {
	mu    sync.Mutex // guards conns
	conns map[*tracked]netip.Addr
}

// tracked is a connection that is among the open ones until it is closed.
type tracked struct {
	net.Conn
	of *open
}

func (o *open) track(conn net.Conn, a netip.Addr) net.Conn {
	t := &tracked{conn, o}
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
