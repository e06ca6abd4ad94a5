package replication

import (
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// distrustedFor is how long other sources are preferred to a portal that omitted a record.
const distrustedFor = time.Hour

// peers holds the state of exchanges with other portals: reachability, pauses and distrust. It is lost at a
// restart.
type peers struct {
	mu  sync.Mutex // guards all, and the fields of each peer
	all map[record.PortalID]*peer
}

// peer is the state of exchanges with one portal; peers.mu guards it.
type peer struct {
	met        bool // was seen reachable since the start
	diffed     time.Time
	down       bool
	rest       time.Time // no requests before then: it refused one by its rate limit
	distrusted time.Time // last choice as a source until then
}

func newPeers() *peers { return &peers{all: make(map[record.PortalID]*peer)} }

// findPeer returns the state of a portal and creates it if needed; never nil. When maxPortals are known the
// new state is not stored, so changes to it are lost. The caller holds mu.
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

// noteMet records that a portal is reachable, and returns whether it was seen reachable before.
func (p *peers) noteMet(id record.PortalID) (before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.findPeer(id)
	before, one.met = one.met, true
	return before
}

// noteDown records that a portal did not answer.
func (p *peers) noteDown(id record.PortalID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.findPeer(id).down = true
}

// isDown reports whether a portal did not answer the last request; false for an unknown one.
func (p *peers) isDown(id record.PortalID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.findPeer(id).down
}

// noteUp records that a portal answered, and returns whether it did not answer before.
func (p *peers) noteUp(id record.PortalID) (back bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.findPeer(id)
	back, one.down = one.down, false
	return back
}

// noteRest stops requests to a portal for the time d.
func (p *peers) noteRest(id record.PortalID, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.findPeer(id).rest = clock.Now().Add(d)
}

// isResting reports whether requests to a portal are stopped, see noteRest.
func (p *peers) isResting(id record.PortalID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return clock.Now().Before(p.findPeer(id).rest)
}

// distrustSource makes a portal the last choice as a source for distrustedFor.
func (p *peers) distrustSource(id record.PortalID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.findPeer(id).distrusted = clock.Now().Add(distrustedFor)
}

// rankSource returns the rank of a portal as a source: 0 if it answers, 1 if it is down or rate-limited, 2
// if it is distrusted.
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

// planDiff reserves the next comparison of heads with a portal and returns the wait until it. ok is false
// when one is planned already.
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
