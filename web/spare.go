package web

import (
	"net"
	"sync"
	"time"
)

// Browsers and HTTP libraries open connections ahead of need. The server's time for a header begins
// when a connection opens, so that it would close those after readHeaderTimeout, at times just when one
// is used: the sent request is then lost, and a library does not repeat a POST on a new connection.
// Here a connection may wait for its first request as long as for any other, and the time for the
// header begins with its first byte.

// spareListener wraps the connections that it accepts.
type spareListener struct{ net.Listener }

// Accept implements net.Listener.
func (l spareListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &spareConn{Conn: c, opened: time.Now()}, nil
}

// spareConn moves the read deadlines of a connection's first request.
type spareConn struct {
	net.Conn
	opened time.Time

	mu     sync.Mutex // guards the rest
	begun  bool
	waited time.Duration // for the first byte
}

// Read implements net.Conn.
func (c *spareConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.beginRequest()
	}
	return n, err
}

// CloseWrite ends the sending direction, as net/http does before it closes a connection with unread
// data.
func (c *spareConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

func (c *spareConn) beginRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		return
	}
	c.begun, c.waited = true, time.Since(c.opened)
	c.Conn.SetReadDeadline(time.Now().Add(readHeaderTimeout))
}

// SetReadDeadline implements net.Conn.
func (c *spareConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch late := t.Sub(c.opened); {
	case t.IsZero() || late <= 0: // none, or at once
	case !c.begun:
		t = c.opened.Add(idleTimeout)
	case (late - readTimeout).Abs() < time.Second: // the first request's whole, counted from the opening
		t = t.Add(c.waited)
	}
	return c.Conn.SetReadDeadline(t)
}
