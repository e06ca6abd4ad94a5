package web

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ConnectionLimits bound the open connections of a server.
type ConnectionLimits struct {
	// All bounds those of all clients. When it is reached, the connection that has been idle longest is
	// closed for a new one. Without an idle one, only requests of operators are answered on new
	// connections, of which there may be maxReserved more; these are closed last.
	All int
	// PerAddress bounds those of one IPv4 address or IPv6 /64, unless Exempt contains it. The addresses of
	// one IPv4 /24 or IPv6 /48, which one holder usually has, may have a quarter of All together.
	PerAddress int
	Exempt     []netip.Prefix
}

// ConnectionCount is the number of a server's open connections. The zero value is ready for use, by one
// server. It is safe for concurrent use.
type ConnectionCount struct{ open atomic.Int64 }

// Open returns the number.
func (c *ConnectionCount) Open() int64 { return c.open.Load() }

// Operators recognizes requests of operators, which are answered when all connections are in use.
type Operators interface {
	IsOperator(r *http.Request) bool
}

const (
	// maxReserved is how many connections may wait to show that their request is of an operator. Beyond it,
	// the one that has been silent longest is closed for the next.
	maxReserved = 32
	// retrySeconds is the advice to refused clients. Requests end in less time.
	retrySeconds = "10"
	// fullEvery is the shortest interval of log entries about full limits.
	fullEvery = time.Minute
)

// connections counts the open connections of a server and knows which are idle.
type connections struct {
	limits ConnectionLimits
	count  *ConnectionCount
	log    *slog.Logger

	mu        sync.Mutex // guards the fields below, and those of countedConn except Conn and address
	open      int
	byAddress map[netip.Prefix]int // without exempt addresses; at most open keys
	byNetwork map[netip.Prefix]int // likewise, by networkOf
	idle      *list.List           // of *countedConn, the longest idle first
	logged    time.Time            // of the last entry about full limits
}

func newConnections(l ConnectionLimits, count *ConnectionCount, log *slog.Logger) *connections {
	return &connections{limits: l, count: count, log: log, byAddress: make(map[netip.Prefix]int),
		byNetwork: make(map[netip.Prefix]int), idle: list.New()}
}

// countedConn is a connection that is counted until it is closed.
type countedConn struct {
	net.Conn
	table   *connections
	address netip.Prefix // the zero value for an exempt address

	reserved bool          // accepted beyond ConnectionLimits.All
	element  *list.Element // in connections.idle; nil while the connection is busy
	gone     bool          // no longer counted
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.table.mu.Lock()
	c.table.remove(c)
	c.table.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite closes the sending direction, see spareConn.
func (c *countedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// SyscallConn implements syscall.Conn, see spareConn.
func (c *countedConn) SyscallConn() (syscall.RawConn, error) { return rawConn(c.Conn) }

// admit counts a new connection. It returns false if the connection must be refused.
func (t *connections) admit(c net.Conn) (*countedConn, bool) {
	cc := &countedConn{Conn: c, table: t, address: t.limitedAddress(c.RemoteAddr())}
	limited := cc.address.IsValid()
	t.mu.Lock()
	if limited && t.byAddress[cc.address] >= t.limits.PerAddress {
		t.logFull("connections_per_address", t.limits.PerAddress, cc.address)
		t.mu.Unlock()
		return nil, false
	}
	if most := max(t.limits.PerAddress, t.limits.All/4); limited && t.byNetwork[networkOf(cc.address)] >= most {
		t.logFull("connections of a network", most, networkOf(cc.address))
		t.mu.Unlock()
		return nil, false
	}
	var longestIdle *countedConn
	if t.open >= t.limits.All {
		t.logFull("connections", t.limits.All, cc.address)
		if e := t.idle.Front(); e != nil {
			longestIdle = e.Value.(*countedConn)
		}
		free := t.open < t.limits.All+maxReserved
		if longestIdle != nil && longestIdle.reserved && free {
			// It may be an operator's whose request is still on its way.
			longestIdle = nil
		}
		switch {
		case longestIdle != nil:
			t.remove(longestIdle)
		case !free:
			t.mu.Unlock()
			return nil, false
		}
	}
	cc.reserved = t.open >= t.limits.All
	t.open++
	t.count.open.Store(int64(t.open))
	if limited {
		t.byAddress[cc.address]++
		t.byNetwork[networkOf(cc.address)]++
	}
	t.mu.Unlock()
	if longestIdle != nil {
		longestIdle.Conn.Close()
	}
	return cc, true
}

// remove ends the count of a connection; further calls do nothing. The caller holds mu.
func (t *connections) remove(c *countedConn) {
	if c.gone {
		return
	}
	c.gone = true
	t.setBusy(c)
	t.open--
	t.count.open.Store(int64(t.open))
	if !c.address.IsValid() {
		return
	}
	subtractOne(t.byAddress, c.address)
	subtractOne(t.byNetwork, networkOf(c.address))
}

func subtractOne(counts map[netip.Prefix]int, key netip.Prefix) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// networkOf returns the IPv4 /24 or IPv6 /48 of a limited address.
func networkOf(address netip.Prefix) netip.Prefix {
	bits := 48
	if address.Addr().Is4() {
		bits = 24
	}
	p, _ := address.Addr().Prefix(bits) // an error is impossible: the bits fit the address
	return p
}

// setBusy takes a connection from the list of idle ones. The caller holds mu.
func (t *connections) setBusy(c *countedConn) {
	if c.element != nil {
		t.idle.Remove(c.element)
		c.element = nil
	}
}

// logFull logs that a limit is reached, at most once in fullEvery. The caller holds mu.
func (t *connections) logFull(limit string, most int, address netip.Prefix) {
	if now := time.Now(); now.Sub(t.logged) >= fullEvery {
		t.logged = now
		t.log.Warn("a limit of connections is reached; new ones replace idle ones or are refused", "limit", limit,
			"value", most, "address", address)
	}
}

// limitedAddress returns the network under which a client is counted, or the zero value if it is exempt.
func (t *connections) limitedAddress(remote net.Addr) netip.Prefix {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	a := tcp.AddrPort().Addr().Unmap().WithZone("")
	if slices.ContainsFunc(t.limits.Exempt, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return netip.Prefix{}
	}
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // an invalid address gives the zero value
	return p
}

// noteState is the http.Server's ConnState: a connection without a request is idle. A connection on which
// a request is being received is idle until its header is complete.
func (t *connections) noteState(c net.Conn, state http.ConnState) {
	cc, ok := countedOf(c)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setBusy(cc)
	if (state == http.StateNew || state == http.StateIdle) && !cc.gone {
		cc.element = t.idle.PushBack(cc)
	}
}

func countedOf(c net.Conn) (*countedConn, bool) {
	spare, ok := c.(*spareConn)
	if !ok {
		return nil, false
	}
	cc, ok := spare.Conn.(*countedConn)
	return cc, ok
}

// connectionKey is the context key of a bool that is true for reserved connections.
type connectionKey struct{}

// addConnection is the http.Server's ConnContext.
func addConnection(ctx context.Context, c net.Conn) context.Context {
	if cc, ok := countedOf(c); ok && cc.reserved {
		return context.WithValue(ctx, connectionKey{}, true)
	}
	return ctx
}

// refuseReserved answers the requests on reserved connections with status 503 while there is no room for
// them, except those of operators.
func (t *connections) refuseReserved(operators Operators, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, reserved := r.Context().Value(connectionKey{}).(bool); reserved && t.isFull() &&
			(operators == nil || !operators.IsOperator(r)) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", retrySeconds)
			writePlain(w, http.StatusServiceUnavailable,
				"All connections of this portal are in use. Try again in a moment.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isFull reports whether more connections have requests or sockets than the limit. Idle ones do not count,
// because new connections replace them.
func (t *connections) isFull() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open-t.idle.Len() > t.limits.All
}

const refusal = "Too many connections are open here or from your address. Close some, or try again in a moment.\n"

// refusalAnswer is written to a refused connection before any request is read.
var refusalAnswer = fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: %s\r\n"+
	"Cache-Control: no-store\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s",
	retrySeconds, len(refusal), refusal)

// refuseConn answers a connection without reading from it. The answer fits into the empty send buffer, so
// the deadline is met by every client.
func refuseConn(c net.Conn) {
	_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = c.Write(refusalAnswer) // the connection is closed whether the client gets the answer or not
}
