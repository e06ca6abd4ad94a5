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
	// askEvery is the interval of status requests to a portal from which nothing else was received. With
	// many portals it grows by askShare for each, so that there are at most two requests a second. A
	// portal that a gossip member sees alive is asked less often (memberShare for each portal, at most
	// memberMost): each member checks the others in turn, one in five seconds, and a portal that it
	// misses is asked at once. memberShare is longer than such a turn, so that both rarely ask.
	askEvery    = 10 * time.Second
	askShare    = 500 * time.Millisecond
	memberShare = 12 * time.Second
	memberMost  = 30 * time.Minute
	// watchEvery and watchShare replace askEvery and askShare while a page shows the network.
	watchEvery = 3 * time.Second
	watchShare = 150 * time.Millisecond
	watchFor   = 15 * time.Second
	// After maxEager failures in a row a portal is asked every maxBackOff.
	maxEager   = 30
	maxBackOff = 5 * time.Minute
	// firstBackOff is the wait after failure silentAfter+1 of an address that another portal reported. The
	// wait doubles with each further failure, up to maxBackOff.
	firstBackOff = 20 * time.Second
	maxStatus    = 16 << 10
)

// Watch notes that a page shows the network: for watchFor, portals are asked more often.
func (p *Peers) Watch() {
	now := time.Now()
	p.mu.Lock()
	p.watched = now.Add(watchFor)
	p.mu.Unlock()
	p.wakeRun()
}

// asks are the running status requests, at most asksAtOnce.
type asks struct {
	p     *Peers
	wg    sync.WaitGroup
	slots chan struct{}
}

func newAsks(p *Peers) *asks { return &asks{p: p, slots: make(chan struct{}, asksAtOnce)} }

func (a *asks) waitAll() { a.wg.Wait() }

// startDue starts status requests to the portals that are due, as long as there are free slots.
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

// askInterval returns the interval of status requests to the portal of e. The caller holds mu.
func (p *Peers) askInterval(e *entry) time.Duration {
	if p.cfg.Gossip != nil && e.ID != "" && e.Failures == 0 {
		if g := p.cfg.Gossip(); g != nil && g.Alive(e.ID) {
			return max(p.quietInterval(), min(time.Duration(len(p.entries))*memberShare, memberMost))
		}
	}
	return p.quietInterval()
}

// quietInterval returns the interval of status requests to portals that no gossip member sees. The caller holds mu.
func (p *Peers) quietInterval() time.Duration {
	return max(askEvery, time.Duration(len(p.entries))*askShare)
}

// worthAsking reports whether status requests are sent to the portal of e: if policy answers it or shows its
// records (also while it is refused for a time), it has a URL and accepts requests (its tier is not leaf). An
// address whose portal is not known yet is asked unless a rule denies it. The caller holds mu.
func (p *Peers) worthAsking(e *entry, now time.Time) bool {
	d := p.decideLocked(&e.Facts, "", now)
	if e.isAddress() { // The portal at an address is unknown until it answers, so only a deny rule can apply.
		return p.cfg.Greet != nil && d.State != Denied
	}
	return p.cfg.Caller != nil && e.Tier != record.TierLeaf && e.URL != "" && (d.In || d.Show)
}

// askPortal sends one status request, or a handshake to an address, and records the result. f is a copy
// of the facts of e, taken under mu.
func (p *Peers) askPortal(ctx context.Context, e *entry, f Facts) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var err error
	if f.isAddress() { // On success, Learned replaces this entry by one for the portal.
		_, err = p.cfg.Greet(ctx, f.URL)
	} else {
		err = p.askStatus(ctx, f)
	}
	if ctx.Err() != nil && context.Cause(ctx) == context.Canceled {
		err = nil // a shutdown of this portal is no failure of the other
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
		return // the entry was removed during the request
	}
	if e.recordFailure(err, now); e.Failures >= maxEager {
		e.next = now.Add(maxBackOff)
		// An address that only another portal reported may be made up, so the wait grows.
	} else if f.isAddress() && e.From != "" && e.Failures > silentAfter {
		e.next = now.Add(min(firstBackOff<<min(e.Failures-silentAfter-1, 10), maxBackOff))
	} else if e.Failures >= silentAfter {
		// Below silentAfter recordFailure has set an early retry, because the portal may just be restarting.
		e.next = now.Add(p.askInterval(e))
	}
	p.markDirty(e, now)
}

// askStatus requests the status of a portal and passes the result to Seen or returns the error.
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
