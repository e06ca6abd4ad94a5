package egress

import (
	"context"
	"sync"
	"time"
)

const (
	// After breakAfter consecutive failed connections the gate refuses requests to the host for restFor;
	// then it lets a single request try. HTTP error statuses do not count, because a host that answers
	// is reachable.
	breakAfter = 5
	restFor    = 30 * time.Second
	// maxWaiting is the maximum number of requests that wait for one host.
	maxWaiting = 256
	// maxHosts is the maximum number of hosts in memory, because outsiders can name any number of them.
	maxHosts = 4096
)

// gate limits the concurrent requests per host, and refuses requests to hosts to which connections fail.
type gate struct {
	perHost int

	mu    sync.Mutex // guards hosts and the fields of each host
	hosts map[string]*host
}

type host struct {
	slots     chan struct{}
	users     int    // requests in flight and waiting
	failures  int    // consecutive failed connections
	cause     string // of the latest of them, in plain text
	restUntil time.Time
	probing   bool // true while one request tries a host that was refused before
}

func newGate(perHost int) *gate {
	return &gate{perHost: perHost, hosts: make(map[string]*host)}
}

// ticket is one request's slot at a host. The holder must call freeSlot exactly once.
type ticket struct {
	g     *gate
	key   string
	h     *host
	probe bool
}

// enterHost waits for a free slot at the host. It fails with Resting while the host is refused, with
// Busy if too many requests wait, or if ctx ends.
func (g *gate) enterHost(ctx context.Context, key string) (*ticket, error) {
	t, err := g.admitRequest(key)
	if err != nil {
		return nil, err
	}
	select {
	case t.h.slots <- struct{}{}:
		return t, nil
	default:
	}
	select {
	case t.h.slots <- struct{}{}:
		return t, nil
	case <-ctx.Done():
		t.removeUser()
		return nil, newError(Canceled, key, ctx.Err(), "gave up waiting for a free connection")
	}
}

func (g *gate) admitRequest(key string) (*ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.hosts[key]
	if h == nil {
		if len(g.hosts) >= maxHosts && !g.pruneHosts() {
			return nil, newError(Busy, key, nil, "too many different hosts are being called; try again later")
		}
		h = &host{slots: make(chan struct{}, g.perHost)}
		g.hosts[key] = h
	}
	t := &ticket{g: g, key: key, h: h}
	if h.failures >= breakAfter {
		if wait := time.Until(h.restUntil); wait > 0 || h.probing {
			return nil, newError(Resting, key, nil, "%s; after %d failed connections it is tried again in %s", h.cause,
				h.failures, max(wait, time.Second).Round(time.Second))
		}
		h.probing, t.probe = true, true
	}
	if h.users >= g.perHost+maxWaiting {
		return nil, newError(Busy, key, nil, "too many requests are waiting for this host")
	}
	h.users++
	return t, nil
}

// pruneHosts removes hosts without requests, except those that are refused. It reports whether there is
// room for another host. The caller must hold mu.
func (g *gate) pruneHosts() bool {
	now := time.Now()
	for k, h := range g.hosts {
		if h.users == 0 && !now.Before(h.restUntil) {
			delete(g.hosts, k)
		}
	}
	return len(g.hosts) < maxHosts
}

// markConnected records a successful connection, which ends a series of failures.
func (t *ticket) markConnected() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.h.failures, t.h.restUntil = 0, time.Time{}
}

// markFailed records a failed connection and, after breakAfter in a row, starts the pause. The error of each request
// that is refused in the pause begins with cause, the plain text of the latest failure.
func (t *ticket) markFailed(cause string) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.h.failures++
	t.h.cause = cause
	if t.h.failures >= breakAfter {
		t.h.restUntil = time.Now().Add(restFor)
	}
}

// freeSlot frees the slot for the next waiting request.
func (t *ticket) freeSlot() {
	<-t.h.slots
	t.removeUser()
}

func (t *ticket) removeUser() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.h.users--
	if t.probe {
		t.h.probing = false
	}
	if t.h.users == 0 && t.h.failures == 0 {
		delete(t.g.hosts, t.key)
	}
}
