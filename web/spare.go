package web

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// This file extends a deadline of net/http. Browsers and HTTP libraries open spare connections
// before they need them. The server's header timeout begins when a connection opens, so the server
// closes a spare connection after readHeaderTimeout, perhaps just when a request is sent on it.
// That request is lost, and a library does not repeat a POST. Here a new connection may wait for
// its first request for idleTimeout, and the header timeout begins with its first byte.

// spareListener wraps each accepted connection in a spareConn.
type spareListener struct{ net.Listener }

// Accept implements net.Listener. The returned connection records the time of its opening.
func (l spareListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	boundUnsent(c)
	return &spareConn{Conn: c, opened: time.Now()}, nil
}

// spareConn is a connection that moves the read deadlines for its first request.
type spareConn struct {
	net.Conn
	opened time.Time

	mu     sync.Mutex // guards the fields below
	begun  bool
	waited time.Duration // time between the opening and the first byte
}

// Read implements net.Conn. The first byte starts the header timeout.
func (c *spareConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.beginRequest()
	}
	return n, err
}

// CloseWrite closes the sending direction. net/http looks for this method before it closes a
// connection with unread data, so that the client still receives the answer.
func (c *spareConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// SyscallConn implements syscall.Conn, so that sockets can write without blocking.
func (c *spareConn) SyscallConn() (syscall.RawConn, error) { return rawConn(c.Conn) }

func rawConn(c net.Conn) (syscall.RawConn, error) {
	if s, ok := c.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
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

// SetReadDeadline implements net.Conn. It replaces the deadlines that net/http counts from the
// opening of the connection and passes on all others.
func (c *spareConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch late := t.Sub(c.opened); {
	case t.IsZero() || late <= 0: // no deadline, or one that ends a read at once
	case !c.begun:
		t = c.opened.Add(idleTimeout)
	case (late - readTimeout).Abs() < time.Second: // readTimeout of the first request, counted from the opening
		t = t.Add(c.waited)
	}
	return c.Conn.SetReadDeadline(t)
}
