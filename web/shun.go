package web

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// PenaltyBox lists addresses that have their connections closed before any byte is read;
// limit.PenaltyBox implements it.
type PenaltyBox interface{ Contains(netip.Addr) bool }

const (
	// holdFor is the time that a refused connection stays open. It slows down a flood, because the
	// sender must wait or open more connections.
	holdFor = time.Second
	maxHeld = 512
	// heldShare of ConnectionLimits.All may be held too, because a held connection has a descriptor.
	heldShare = 8
)

// limitListener refuses connections of addresses in the penalty box and those beyond the limits. It holds
// them open for holdFor and then closes them. It reads nothing from them and needs no goroutine for them.
type limitListener struct {
	net.Listener
	shun  PenaltyBox
	table *connections

	mu   sync.Mutex // guards held
	held map[net.Conn]*time.Timer
}

func newLimitListener(l net.Listener, shun PenaltyBox, table *connections) *limitListener {
	return &limitListener{Listener: l, shun: shun, table: table, held: make(map[net.Conn]*time.Timer)}
}

// Accept implements net.Listener. The returned connection is counted until it is closed.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if a, ok := c.RemoteAddr().(*net.TCPAddr); ok && l.shun.Contains(a.AddrPort().Addr()) {
			l.holdConn(c)
			continue
		}
		if counted, ok := l.table.admit(c); ok {
			return counted, nil
		}
		refuseConn(c)
		l.holdConn(c)
	}
}

func (l *limitListener) holdConn(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // discard unsent data on close, so that the kernel keeps no state
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil || len(l.held) >= min(maxHeld, l.table.limits.All/heldShare) {
		c.Close()
		return
	}
	l.held[c] = time.AfterFunc(holdFor, func() {
		l.mu.Lock()
		delete(l.held, c)
		l.mu.Unlock()
		c.Close()
	})
}

// Close implements net.Listener. It also closes the connections that are being held.
func (l *limitListener) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, t := range l.held {
		t.Stop()
		c.Close()
	}
	l.held = nil
	return err
}

// cutPenalized refuses requests on open connections of addresses that came into the penalty box
// after Accept, and closes these connections.
func cutPenalized(shun PenaltyBox, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && shun.Contains(a.Addr()) {
			h := w.Header()
			h.Set("Connection", "close")
			h.Set("Retry-After", "10")
			writePlain(w, http.StatusTooManyRequests,
				"Too many requests of your address were refused. Wait a while.")
			return
		}
		next.ServeHTTP(w, r)
	})
}
