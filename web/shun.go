package web

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Shun says which addresses are sent away before anything is read of them.
type Shun interface{ Has(netip.Addr) bool }

const (
	// holdFor is how long a connection of a shunned address is left waiting:
	// whoever floods waits for it, or opens more.
	holdFor = time.Second
	maxHeld = 512
)

// shunListener leaves connections of shunned addresses waiting, and then closes
// them. Nothing is read of them, and no goroutine waits for them.
type shunListener struct {
	net.Listener
	shun Shun

	mu   sync.Mutex // guards held
	held map[net.Conn]*time.Timer
}

func newShunListener(l net.Listener, shun Shun) *shunListener {
	return &shunListener{Listener: l, shun: shun, held: make(map[net.Conn]*time.Timer)}
}

// Accept implements net.Listener.
func (l *shunListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if a, ok := c.RemoteAddr().(*net.TCPAddr); !ok || !l.shun.Has(a.AddrPort().Addr()) {
			return c, nil
		}
		l.hold(c)
	}
}

func (l *shunListener) hold(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0) // nothing is left of it when it is closed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil || len(l.held) >= maxHeld {
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

// Close implements net.Listener; it closes what is held, too.
func (l *shunListener) Close() error {
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

// cut ends connections of addresses that are shunned since they were accepted.
func cut(shun Shun, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && shun.Has(a.Addr()) {
			h := w.Header()
			h.Set("Connection", "close")
			h.Set("Retry-After", "10")
			plain(w, http.StatusTooManyRequests, "Too many requests of your address had to be refused. Wait a while.")
			return
		}
		next.ServeHTTP(w, r)
	})
}
