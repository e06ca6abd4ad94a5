package account

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/fault"
)

// hashesAtOnce is the number of concurrent hash computations, which bounds the memory and processor time
// of sign-ins.
const hashesAtOnce = 2

// fullWait is the advice to callers that a full queue refuses. The queue is checked within about that
// time.
const fullWait = 5 * time.Second

// client is the origin of a password check: a name, "" for none, and an address, "" for the command line.
type client struct{ name, addr string }

// pair is the key under which a sign-in of this name from this address is known.
func (c client) pair() string { return guessKey(c.name, c.addr) }

// keys are those under which failures are counted.
func (c client) keys() (address, prefix, name string) {
	return "a " + c.addr, "p " + networkOf(c.addr), "n " + c.name[:min(len(c.name), maxGuessKey)]
}

// gate lets hashesAtOnce hash computations run. The others wait in a bounded line: names and addresses
// with recent failures behind those without. Failures only order the line and refuse none. It is safe
// for concurrent use.
type gate struct {
	mu     sync.Mutex // guards the fields below
	free   int
	line   line
	failed *recent[failures] // by the keys of clients
	known  *recent[struct{ at time.Time }]
	// signIns counts the checks of known clients by pair, and the sign-ins of all names by name. They decay
	// like failures.
	signIns *recent[failures]
	pending map[string]int // checks that wait or run, by the keys of clients
}

func newGate(most int) *gate {
	return &gate{free: hashesAtOnce, line: line{most: most}, failed: newRecent[failures](),
		known: newRecent[struct{ at time.Time }](), signIns: newRecent[failures](), pending: make(map[string]int)}
}

// acquire waits until a computation for c may begin; the caller must call release with the same client.
// The errors are a RateLimited fault if too many wait, and that of ctx.
func (g *gate) acquire(ctx context.Context, c client) error {
	g.mu.Lock()
	now := time.Now()
	r := g.rankOf(c, now)
	if g.isKnown(c, now) {
		g.signIns.set(c.pair(), g.signIns.get(c.pair()).next(now))
	}
	g.count(c, 1)
	if g.free > 0 { // then no check waits
		g.free--
		g.mu.Unlock()
		return nil
	}
	t, refused := g.line.join(r)
	if refused != nil {
		refused.refused = true
		close(refused.ended)
	}
	g.mu.Unlock()
	select {
	case <-t.ended:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch waits := g.line.leave(t); {
	case waits: // ctx ended
		g.count(c, -1)
		return ctx.Err()
	case t.refused:
		g.count(c, -1)
		return fault.Limited(fullWait, "Many people sign in right now. Try again in a few seconds.")
	}
	return nil
}

// release ends a computation for c and begins the next one.
func (g *gate) release(c client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(c, -1)
	if t := g.line.next(); t != nil {
		close(t.ended)
		return
	}
	g.free++
}

// usualSignIns is the number of sign-ins of a name within about failureHalfLife that do not count: a person
// with several devices. Right passwords cost as much time as wrong ones, so that many of one account come
// after those of others.
const usualSignIns = 8

// rankOf counts the checks of a client that have no result yet as failures, so that many at once do not
// come before those of others. The failures of others do not count for a known client, only its own checks
// and the sign-ins of its name. The caller holds mu.
func (g *gate) rankOf(c client, now time.Time) rank {
	switch {
	case c.addr == "":
		return rank{}
	case g.isKnown(c, now):
		_, _, name := c.keys()
		return rank{address: levelOf(g.signIns.get(name).now(now) - usualSignIns),
			name: levelOf(g.signIns.get(c.pair()).now(now))}
	}
	level := func(key string) uint8 { return levelOf(g.failed.get(key).now(now) + float64(g.pending[key])) }
	address, prefix, name := c.keys()
	r := rank{address: level(address), prefix: level(prefix)}
	if c.name != "" {
		r.name = level(name)
	}
	return r
}

// count adds n to the pending checks of a client. The caller holds mu.
func (g *gate) count(c client, n int) {
	address, prefix, name := c.keys()
	for _, key := range []string{address, prefix, name} {
		if g.pending[key] += n; g.pending[key] == 0 {
			delete(g.pending, key)
		}
	}
}

// knownFor is how long an address counts as one from which a person signs in.
const knownFor = 30 * 24 * time.Hour

func (g *gate) isKnown(c client, now time.Time) bool {
	if c.name == "" || c.addr == "" {
		return false
	}
	at := g.known.get(c.pair()).at
	return !at.IsZero() && now.Sub(at) < knownFor
}

// knows reports whether the right password of a name came from this address within knownFor.
func (g *gate) knows(c client) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isKnown(c, time.Now())
}

// succeeded records that the right password of a name came from an address. The failures of both stay:
// else an attacker with an account would clear those of the own address.
func (g *gate) succeeded(c client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.known.set(c.pair(), struct{ at time.Time }{now})
	_, _, name := c.keys()
	g.signIns.set(name, g.signIns.get(name).next(now))
}

// Bounds of the notices about wrong passwords.
const (
	warnFrom  = 10 // failures of a name within about failureHalfLife
	warnEvery = 24 * time.Hour
)

// fail counts a computation without a sign-in: a wrong password, or a new account, which many
// computations from one address should not make either. warn is true if the person of the name should be
// warned now.
func (g *gate) fail(c client) (warn bool) {
	if c.addr == "" {
		return false
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	address, prefix, name := c.keys()
	keys := []string{address, prefix}
	if c.name != "" {
		keys = append(keys, name)
	}
	for _, key := range keys {
		f := g.failed.get(key)
		f = f.next(now)
		if key == name && f.count >= warnFrom-0.5 && (f.warned.IsZero() || now.Sub(f.warned) >= warnEvery) {
			f.warned, warn = now, true
		}
		g.failed.set(key, f)
	}
	return warn
}
