package egress

import (
	"context"
	"sync"
	"time"
)

const (
	// breakAfter consecutive failed connections make the gate refuse a host for restFor; then a single
	// request tries again. HTTP statuses never count, because a host that answers is reachable.
	breakAfter = 5
	restFor    = 30 * time.Second
	// maxWaiting bounds the requests that queue for one host.
	maxWaiting = 256
	// maxHosts bounds the stored hosts, because outsiders can name any number of them.
	maxHosts = 4096
)

// gate limits the concurrent requests per host and pauses hosts that cannot be connected to.
type gate struct {
	perHost int

	mu    sync.Mutex // guards hosts and the hosts' fields
	hosts map[string]*host
}

type host struct {
	slots     chan struct{}
	users     int // in flight and waiting
	failures  int // consecutive
	restUntil time.Time
	probing   bool // one request is trying a host that was paused
}

func newGate(perHost int) *gate {
	return &gate{perHost: perHost, hosts: make(map[string]*host)}
}

// ticket is one request's slot at a host. freeSlot is called exactly once.
type ticket struct {
	g     *gate
	key   string
	h     *host
	probe bool
}

// enterHost waits for a free slot at the host. It fails when the host is paused, when too many requests
// wait already, or when ctx ends.
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
			return nil, newError(Resting, key, nil, "the last %d connections failed; it is tried again in %s",
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

// pruneHosts removes unused hosts that are not paused. It reports whether there is room. The caller
// holds mu.
func (g *gate) pruneHosts() bool {
	now := time.Now()
	for k, h := range g.hosts {
		if h.users == 0 && !now.Before(h.restUntil) {
			delete(g.hosts, k)
		}
	}
	return len(g.hosts) < maxHosts
}

// markConnected records that the host took a connection.
func (t *ticket) markConnected() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.h.failures, t.h.restUntil = 0, time.Time{}
}

// markFailed records that no connection was made.
func (t *ticket) markFailed() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	t.h.failures++
	if t.h.failures >= breakAfter {
		t.h.restUntil = time.Now().Add(restFor)
	}
}

// freeSlot releases the slot.
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
