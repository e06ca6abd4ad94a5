package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

const (
	asksAtOnce = 8
	askTimeout = 5 * time.Second
	// askEvery is how often a portal is asked how it is, when nothing else was
	// heard of it; askShare spreads that when there are many, so that there are
	// never more than two requests a second. Members of the pool that gossips look
	// at each other in turn, at one in five seconds, and one that does not answer is
	// missed and asked then: memberShare is longer than the longest turn, so that a
	// question beside it is rare, up to memberMost.
	askEvery    = 10 * time.Second
	askShare    = 500 * time.Millisecond
	memberShare = 12 * time.Second
	memberMost  = 30 * time.Minute
	// watchEvery and watchShare replace the two above while a page shows the network.
	watchEvery = 3 * time.Second
	watchShare = 150 * time.Millisecond
	watchFor   = 15 * time.Second
	// Portals with this many failures are asked less often.
	maxEager   = 30
	maxBackOff = 5 * time.Minute
	// firstBackOff doubles with each time.
	firstBackOff = 20 * time.Second
	maxStatus    = 16 << 10
)

// Watch notes that a page shows the network now.
func (p *Peers) Watch() {
	now := time.Now()
	p.mu.Lock()
	p.watched = now.Add(watchFor)
	p.mu.Unlock()
	p.wakeRun()
}

// asks are the questions under way.
type asks struct {
	p     *Peers
	wg    sync.WaitGroup
	slots chan struct{}
}

func newAsks(p *Peers) *asks { return &asks{p: p, slots: make(chan struct{}, asksAtOnce)} }

func (a *asks) waitAll() { a.wg.Wait() }

// startDue asks the portals that are due, as many as there are free slots.
func (a *asks) startDue(ctx context.Context) {
	p := a.p
	if p.cfg.Caller == nil && p.cfg.Greet == nil {
		return
	}
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	looked := time.Now().Before(p.watched)
	watch := max(watchEvery, time.Duration(len(p.entries))*watchShare)
	for _, e := range p.entries {
		due := !e.next.After(now) || looked && !e.isAddress() && now.Sub(e.asked) >= watch
		if e.asking || !due || !p.worthAsking(e, now) {
			continue
		}
		select {
		case a.slots <- struct{}{}:
		default:
			return
		}
		e.asking, e.asked = true, now
		f := e.Facts
		a.wg.Go(func() {
			defer func() { <-a.slots }()
			p.askPortal(ctx, e, f)
		})
	}
}

// askInterval is how often a portal is asked how it is. The caller holds mu.
func (p *Peers) askInterval(e *entry) time.Duration {
	if p.cfg.Gossip != nil && e.ID != "" && e.Failures == 0 {
		if g := p.cfg.Gossip(); g != nil && g.Alive(e.ID) {
			return max(p.quietInterval(), min(time.Duration(len(p.entries))*memberShare, memberMost))
		}
	}
	return p.quietInterval()
}

// quietInterval is the interval of asking portals that no gossip member reports on. The caller holds mu.
func (p *Peers) quietInterval() time.Duration {
	return max(askEvery, time.Duration(len(p.entries))*askShare)
}

// worthAsking reports whether a portal is asked at all. The caller holds mu.
func (p *Peers) worthAsking(e *entry, now time.Time) bool {
	d := p.decideLocked(&e.Facts, "", now)
	if e.isAddress() { // it is unknown which portal is there, so vouchers are unknown too
		return p.cfg.Greet != nil && d.State != Denied
	}
	return p.cfg.Caller != nil && e.Tier != record.TierLeaf && e.URL != "" && (d.In || d.Show)
}

// askPortal asks one portal and records the result.
func (p *Peers) askPortal(ctx context.Context, e *entry, f Facts) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var err error
	if f.isAddress() { // if the address answered, Learned has dropped this entry
		_, err = p.cfg.Greet(ctx, f.URL)
	} else {
		err = p.askStatus(ctx, f)
	}
	if ctx.Err() != nil && context.Cause(ctx) == context.Canceled {
		err = nil // this portal stops
	}
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	e.asking = false
	if err == nil {
		e.next = now.Add(p.askInterval(e))
		return
	}
	if p.entries[e.Key()] != e {
		return // forgotten meanwhile
	}
	if e.recordFailure(err, now); e.Failures >= maxEager {
		e.next = now.Add(maxBackOff)
		// only other portals claim that a portal is there
	} else if f.isAddress() && e.From != "" && e.Failures > silentAfter {
		e.next = now.Add(min(firstBackOff<<min(e.Failures-silentAfter-1, 10), maxBackOff))
	} else if e.Failures >= silentAfter { // it may only be starting again
		e.next = now.Add(p.askInterval(e))
	}
	p.markDirty(e, now)
}

// askStatus asks a portal how it is.
func (p *Peers) askStatus(ctx context.Context, f Facts) error {
	a, err := p.cfg.Caller.Do(ctx, f.URL, f.ID, http.MethodGet, "/peering/v1/status", nil, maxStatus)
	if err != nil {
		return err
	}
	var s struct {
		Version string          `json:"version"`
		Portal  record.PortalID `json:"portal"`
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("it answers with status %d", a.Status)
	}
	if err := json.Unmarshal(a.Body, &s); err != nil || s.Portal != f.ID {
		return fmt.Errorf("something else than this portal answers at %s", f.URL)
	}
	p.Seen(f.ID, max(a.Took, 1))
	p.changeFacts(f.ID, func(e *entry, _ time.Time) { e.Version = record.CutLine(s.Version, 80) })
	return nil
}
