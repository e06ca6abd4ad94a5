package replication

import (
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// distrustedFor is how long other sources are preferred to a portal that omitted a record.
const distrustedFor = time.Hour

// peers holds the facts about exchanges with other portals.
type peers struct {
	mu  sync.Mutex // guards all
	all map[record.PortalID]*peer
}

// peer holds the facts about exchanges with one portal.
type peer struct {
	met        bool // since the start
	diffed     time.Time
	down       bool
	rest       time.Time // no requests before then, because it refused one by its limit
	distrusted time.Time // other sources are preferred until then
}

func newPeers() *peers { return &peers{all: make(map[record.PortalID]*peer)} }

// findPeer returns the facts about a portal. When there are too many portals, changes to them are lost. The
// caller holds mu.
func (p *peers) findPeer(id record.PortalID) *peer {
	one := p.all[id]
	if one != nil {
		return one
	}
	if len(p.all) >= maxPortals {
		for other, o := range p.all {
			if !o.down && clock.Now().Sub(o.diffed) > time.Hour {
				delete(p.all, other)
			}
		}
	}
	one = new(peer)
	if len(p.all) < maxPortals {
		p.all[id] = one
	}
	return one
}

// noteMet notes that a portal is reachable, and reports whether it was met before.
func (p *peers) noteMet(id record.PortalID) (before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.findPeer(id)
	before, one.met = one.met, true
	return before
}

// noteDown notes that a portal did not answer.
func (p *peers) noteDown(id record.PortalID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.findPeer(id).down = true
}

// isDown reports whether a portal did not answer the last request.
func (p *peers) isDown(id record.PortalID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.findPeer(id).down
}

// noteUp notes that a portal answered, and reports whether it did not before.
func (p *peers) noteUp(id record.PortalID) (back bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.findPeer(id)
	back, one.down = one.down, false
	return back
}

// noteRest lets a portal have no requests for a while.
func (p *peers) noteRest(id record.PortalID, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.findPeer(id).rest = clock.Now().Add(d)
}

// isResting reports whether a portal has to have no requests now.
func (p *peers) isResting(id record.PortalID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return clock.Now().Before(p.findPeer(id).rest)
}

// distrustSource prefers other sources to a portal for a while.
func (p *peers) distrustSource(id record.PortalID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.findPeer(id).distrusted = clock.Now().Add(distrustedFor)
}

// rankSource returns the place of a portal among sources: 0 is the best.
func (p *peers) rankSource(id record.PortalID, now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.findPeer(id)
	switch {
	case now.Before(one.distrusted):
		return 2
	case one.down, now.Before(one.rest):
		return 1
	}
	return 0
}

// planDiff returns the wait until heads may be compared with a portal. It returns not ok when a comparison
// is planned already.
func (p *peers) planDiff(id record.PortalID, now time.Time) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.findPeer(id)
	at := one.diffed.Add(diffGap)
	if at.Before(now) {
		at = now
	}
	if at.Sub(now) > diffGap {
		return 0, false
	}
	one.diffed = at
	return at.Sub(now), true
}
