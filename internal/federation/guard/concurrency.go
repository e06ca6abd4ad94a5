package guard

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	maxAtOnce    = 64  // concurrent requests of one portal
	maxAllAtOnce = 512 // concurrent requests of all portals
	// keptAtOnce of them are kept for portals that have no request under way: a few portals, which may all
	// be of one domain, would else keep out the others.
	keptAtOnce = maxAllAtOnce / 4
	// tenth divides the limits of portals whose domain is not proved. All of them together also share
	// this fraction of the concurrent requests, because such portals cost nothing to create.
	tenth = 10
	// maxWaiting is how many signatures may wait to be verified, at 54 µs each.
	maxWaiting = 512
)

// checks limits how many signatures are verified at once, to half of the processors. Those of unproved
// portals are verified one at a time, so that a proved portal waits for at most one of them.
type checks struct {
	slots     chan struct{}
	strangers chan struct{}
	waiting   atomic.Int32
	strange   atomic.Int32 // unproved ones among those waiting
}

func newChecks() *checks {
	return &checks{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), strangers: make(chan struct{}, 1)}
}

// enter waits for a free slot; done releases it. A Refusal if too many wait already.
func (c *checks) enter(ctx context.Context, unproved bool) (done func(), err error) {
	crowd, most := &c.waiting, int32(maxWaiting)
	if unproved {
		crowd, most = &c.strange, maxWaiting/tenth
	}
	defer crowd.Add(-1)
	if crowd.Add(1) > most {
		return nil, federation.RefuseFor(federation.ReasonBusy, time.Second,
			"More signatures are to be verified here than can be. Ask again later.")
	}
	if unproved {
		select {
		case c.strangers <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	select {
	case c.slots <- struct{}{}:
		return func() { c.leave(unproved) }, nil
	case <-ctx.Done():
		if unproved {
			<-c.strangers
		}
		return nil, context.Cause(ctx)
	}
}

func (c *checks) leave(unproved bool) {
	<-c.slots
	if unproved {
		<-c.strangers
	}
}

// places counts the concurrent requests.
type places struct {
	mu       sync.Mutex // guards the fields below
	busy     map[record.PortalID]int
	all      int
	unproved int // requests of unproved portals, included in all
}

func newPlaces() *places { return &places{busy: make(map[record.PortalID]int)} }

func (p *places) countBusy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// enter takes a slot for a request of a portal; done releases it and may be called several times. A
// Refusal if the limits are reached.
func (p *places) enter(id record.PortalID, unproved bool) (done func(), err error) {
	most := maxAtOnce
	if unproved {
		most = maxAtOnce / tenth
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	room := maxAllAtOnce
	if p.busy[id] > 0 {
		room -= keptAtOnce
	}
	if p.all >= room || unproved && p.unproved >= maxAllAtOnce/tenth {
		return nil, federation.RefuseFor(federation.ReasonBusy, time.Second,
			"This portal works on as many requests as it can. Ask again later.")
	}
	if p.busy[id] >= most {
		return nil, federation.RefuseFor(federation.ReasonLimit, time.Second,
			"Your portal has %d requests under way here. Wait for their answers.", most)
	}
	p.busy[id]++
	p.all++
	if unproved {
		p.unproved++
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if unproved {
			p.unproved--
		}
		if p.busy[id]--; p.busy[id] == 0 {
			delete(p.busy, id)
		}
	}), nil
}
