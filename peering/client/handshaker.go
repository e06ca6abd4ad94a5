package client

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// greetEvery is the interval at which portals due for a handshake or a new domain proof are searched
	// for.
	greetEvery = 15 * time.Second
	// greetAtOnce and greetMost bound that: a round is no burst.
	greetAtOnce = 8
	greetMost   = 64
	// proveAgain is less than the day after which a proof is old.
	proveAgain = 23 * time.Hour
	// greetWait is how long whoever did not answer is left alone, twice as long
	// each time.
	greetWait    = 30 * time.Second
	maxGreetWait = 2 * time.Hour
)

// Greet does a handshake with the portal at an origin and returns its id. It is
// federation.PeersConfig's Greet.
func (c *Client) Greet(ctx context.Context, origin string) (record.PortalID, error) {
	w, err := c.Handshake(ctx, origin, "")
	if err != nil {
		return "", err
	}
	return w.Card.Portal, nil
}

// Handshaker sees to it that portals know the card of this one, and that their
// domains are theirs. Create it with NewHandshaker, and Run it.
type Handshaker struct {
	client   *Client
	self     *federation.Self
	registry federation.Registry
	started  time.Time

	mu    sync.Mutex // guards waits
	waits map[record.PortalID]wait
}

// wait is how long a portal is left alone.
type wait struct {
	until time.Time
	last  time.Duration
}

// NewHandshaker returns a Handshaker of a portal with that start time: cards made after it are sent to
// all.
func NewHandshaker(c *Client, self *federation.Self, registry federation.Registry, started time.Time) *Handshaker {
	return &Handshaker{client: c, self: self, registry: registry, started: started,
		waits: make(map[record.PortalID]wait)}
}

// Run greets until ctx ends.
func (g *Handshaker) Run(ctx context.Context) error {
	tick := time.NewTicker(greetEvery)
	defer tick.Stop()
	for {
		g.Round(ctx)
		changed := g.self.Changed()
		select {
		case <-tick.C:
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Round does the handshakes that are due, and returns when all portals have answered.
func (g *Handshaker) Round(ctx context.Context) {
	card := g.self.Content()
	if card == nil {
		return
	}
	now := clock.Now()
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, greetAtOnce)
	n := 0
	known := make(map[record.PortalID]bool)
	for _, p := range g.registry.Portals(ctx) {
		known[p.ID] = true
		if p.ID == "" || p.ID == g.self.ID() || p.Tier == record.TierLeaf || n == greetMost || ctx.Err() != nil {
			continue
		}
		do := g.dueRequest(ctx, p, card, now)
		if do == nil || !g.turn(p.ID, now) {
			continue
		}
		n++
		slots <- struct{}{} // those before always end
		all.Go(func() {
			defer func() { <-slots }()
			g.rest(ctx, p.ID, do(ctx))
		})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.waits {
		if !known[id] {
			delete(g.waits, id)
		}
	}
}

// dueRequest returns the request that a portal needs, nil for none.
func (g *Handshaker) dueRequest(ctx context.Context, p federation.Peer, card *record.Card,
	now time.Time) func(context.Context) error {
	if d := g.registry.Decide(ctx, p.ID, p.URL); !d.In && !d.Show && d.State != federation.Pending {
		return nil
	}
	// A card from before the start was sent then, or is requested when it is needed.
	if fresh := card.Issued >= g.started.UnixMilli(); fresh && !g.client.KnowsCard(p.URL, card.Version()) {
		return func(ctx context.Context) error {
			_, err := g.client.Handshake(ctx, p.URL, p.ID)
			return err
		}
	}
	if now.Sub(p.Proved) >= proveAgain {
		return func(ctx context.Context) error { return g.client.Prove(ctx, p.URL, p.ID) }
	}
	return nil
}

func (g *Handshaker) turn(id record.PortalID, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !now.Before(g.waits[id].until)
}

// rest notes whether a portal answered.
func (g *Handshaker) rest(ctx context.Context, id record.PortalID, err error) {
	if ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		delete(g.waits, id)
		return
	}
	last := min(max(2*g.waits[id].last, greetWait), maxGreetWait)
	g.waits[id] = wait{clock.Now().Add(last), last}
}
