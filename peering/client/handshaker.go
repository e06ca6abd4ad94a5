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
	// greetEvery is the interval of rounds that search for portals due for a handshake or a verification.
	greetEvery = 15 * time.Second
	// greetAtOnce bounds the concurrent requests of a round, greetMost all of them, to avoid bursts.
	greetAtOnce = 8
	greetMost   = 64
	// proveAgain is the age at which an address is verified again, shortly before whoFor is over.
	proveAgain = 23 * time.Hour
	// greetWait is the pause after a portal did not answer. It doubles each time, up to maxGreetWait.
	greetWait    = 30 * time.Second
	maxGreetWait = 2 * time.Hour
)

// Greet performs a handshake with any portal at an origin and returns its id. It is passed to the registry
// as federation.PeersConfig.Greet.
func (c *Client) Greet(ctx context.Context, origin string) (record.PortalID, error) {
	w, err := c.Handshake(ctx, origin, "")
	if err != nil {
		return "", err
	}
	return w.Card.Portal, nil
}

// Handshaker sends new cards of this portal to all known portals, and verifies their addresses again once a
// day. Create it with NewHandshaker and keep Run running.
type Handshaker struct {
	client   *Client
	self     *federation.Self
	registry federation.Registry
	started  time.Time

	mu    sync.Mutex // guards waits
	waits map[record.PortalID]wait
}

// wait is the pause before a portal that did not answer is contacted again.
type wait struct {
	until time.Time
	last  time.Duration
}

// NewHandshaker returns a Handshaker. started is the start of the process: cards signed after it are sent
// to all portals.
func NewHandshaker(c *Client, self *federation.Self, registry federation.Registry, started time.Time) *Handshaker {
	return &Handshaker{client: c, self: self, registry: registry, started: started,
		waits: make(map[record.PortalID]wait)}
}

// Run performs a round at intervals and after each new card of this portal, until ctx ends.
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

// Round performs the requests that are due, at most greetMost, and returns when all have ended.
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
		slots <- struct{}{} // waits for an earlier request, each of which has a timeout
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

// dueRequest returns the request that a portal needs now (a handshake or a verification), nil for none.
func (g *Handshaker) dueRequest(ctx context.Context, p federation.Peer, card *record.Card,
	now time.Time) func(context.Context) error {
	if d := g.registry.Decide(ctx, p.ID, p.URL); !d.In && !d.Show && d.State != federation.Pending {
		return nil
	}
	// An older card was sent before the restart; a portal that lacks it asks for it with its next refusal.
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

// rest records the result of a request to a portal and sets the pause after a failure.
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
