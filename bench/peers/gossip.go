package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/handlers/peer"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/peering"
	"agentsite/peering/gossip"
)

// Bars of gossip: a hint at all within lateHint, what idle portals cost, of
// gossip and the upkeep of tables together.
const (
	lateHint = time.Second
	idleCPU  = 1.0  // CPU-ms/s and portal
	idleWire = 2000 // bytes/s and portal, in and out
)

// pool is a portal in the pool that gossips.
type pool struct {
	*gossip.Gossip
	mu    sync.Mutex // guards the rest
	heard map[uint64]time.Time
	lost  int
}

// Standing implements federation.Gossip.
func (g *pool) Standing() federation.GossipStanding {
	return federation.GossipStanding(g.Gossip.Standing())
}

// gossips makes a portal one of the pool, as internal/app does.
func (p *portal) gossips(lan bool) (err error) {
	p.pool = &pool{heard: make(map[uint64]time.Time)}
	g := p.pool
	g.Gossip, err = gossip.New(gossip.Config{Network: ourNetwork, Self: p.id, Contact: p.overlay.Contact, LAN: lan, Log: discard,
		Check: func(ctx context.Context, _ record.PortalID, wire []byte) (*record.Contact, error) {
			now := clock.Now()
			r, err := record.Open(ourNetwork, wire)
			if err != nil {
				return nil, err
			}
			c, ok := r.Body.(*record.Contact)
			if !ok || !p.peers.Decide(ctx, c.Portal, c.Origin()).In {
				return nil, errors.New("not let in")
			}
			held, err := p.replica.Card(ctx, c.Portal)
			if err != nil {
				return nil, err
			}
			card, err := record.OpenCard(ourNetwork, held, now)
			if err != nil {
				return nil, err
			}
			return c, card.Signed(r, now)
		},
		Post: func(ctx context.Context, to record.PortalID, route string, body []byte, limit int64) ([]byte, error) {
			q, ok := p.peers.Portal(ctx, string(to))
			if !ok {
				return nil, errors.New("not known")
			}
			a, err := p.client.Do(ctx, q.URL, to, http.MethodPost, peering.Base+"/"+route, body, limit)
			if err == nil && a.Status != http.StatusOK {
				err = fmt.Errorf("status %d", a.Status)
			}
			if err != nil {
				return nil, err
			}
			return a.Body, nil
		},
		Known: func(ctx context.Context) (out []record.PortalID) {
			for _, q := range p.peers.Portals(ctx) {
				if q.State == federation.Active {
					out = append(out, q.ID)
				}
			}
			return out
		},
		Size: func() int { return p.overlay.Standing().Size },
		Head: func(h gossip.Hint) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if _, ok := g.heard[h.Mark]; !ok {
				g.heard[h.Mark] = time.Now()
			}
		},
		Seen: func(record.PortalID, string) {},
		Lost: func(record.PortalID) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.lost++
		}})
	return err
}

// pooled builds a network whose portals gossip, and waits until all see all.
func pooled(ctx context.Context, cfg Config, lan bool) (*ours, error) {
	made, err := buildOurs(ctx, cfg, func(p *portal, door *peer.Door) error {
		if err := p.gossips(lan); err != nil {
			return err
		}
		door.Gossip(p.pool, gossip.Routes())
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range made.nodes {
		p.run(p.pool.Run)
	}
	began := time.Now()
	for _, p := range made.nodes {
		for {
			up, _ := p.pool.Members()
			if up == len(made.nodes)-1 {
				break
			}
			if time.Since(began) > 5*time.Minute {
				return nil, fmt.Errorf("%s sees %d of %d after %v", p.host, up, len(made.nodes)-1, time.Since(began).Round(time.Second))
			}
			settle(ctx, 100*time.Millisecond)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	fmt.Printf("  all see all after %v\n", time.Since(began).Round(100*time.Millisecond))
	return made, nil
}

// hints measures how long it takes until all have heard of a head, with LAN
// timings, and whether anybody is missed who is there.
func hints(ctx context.Context, cfg Config) (missed int, err error) {
	net, err := pooled(ctx, cfg, true)
	if err != nil {
		return 0, err
	}
	defer net.Close()
	settle(ctx, 10*time.Second)
	var took []time.Duration
	lacking := 0
	order := rand.Perm(len(net.nodes))
	for _, i := range order {
		from := net.nodes[i]
		began := time.Now()
		from.pool.Tell(record.Version{Epoch: 1, Seq: int64(i) + 1})
		settle(ctx, 3*time.Second)
		d, _ := from.id.Digest()
		for _, p := range net.nodes {
			p.pool.mu.Lock()
			at, ok := p.pool.heard[markOf(d)]
			p.pool.mu.Unlock()
			switch {
			case p == from:
			case ok:
				took = append(took, at.Sub(began))
			default:
				lacking++
			}
		}
	}
	lost := 0
	for _, p := range net.nodes {
		p.pool.mu.Lock()
		lost += p.pool.lost
		p.pool.mu.Unlock()
	}
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))].Round(time.Millisecond) }
	fmt.Printf("gossip, %d portals, LAN timings, signed HTTPS: a hint heard after p50 %v, p99 %v, max %v; %d of %d not within 3 s; %d false failures\n",
		len(net.nodes), at(.5), at(.99), at(1), lacking, len(took)+lacking, lost)
	if at(.99) > lateHint {
		fmt.Printf("  MISSED: p99 of at most %v\n", lateHint)
		missed++
	}
	if lost > 0 {
		fmt.Printf("  MISSED: nobody is called dead who is not (on a quiet machine)\n")
		missed++
	}
	return missed, ctx.Err()
}

func markOf(d record.Hash) (m uint64) {
	for _, b := range d[:8] {
		m = m<<8 | uint64(b)
	}
	return m
}

// idle measures what portals cost that do nothing, with the timings they have:
// as long as they are new to each other, for information, and then for as long as
// their own upkeep takes to come round (Config.Self of kademlia), which is what
// the bars are for.
func idle(ctx context.Context, cfg Config, profile string) (missed int, err error) {
	net, err := pooled(ctx, cfg, false)
	if err != nil {
		return 0, err
	}
	defer net.Close()
	type point struct {
		cpu         time.Duration
		wire, bytes int64
		gossip, dht int64
		failed      int64
		opened      int64
		asked       map[string]int64
	}
	look := func() point {
		at := point{cpu: cpu(), wire: loopback(), dht: net.RPCs(), opened: net.opened.Load(), asked: net.asked.All()}
		for _, p := range net.nodes {
			g := p.pool.Standing()
			at.gossip, at.bytes, at.failed = at.gossip+g.Sent, at.bytes+g.In+g.Out, at.failed+g.Failed+g.Lost
		}
		return at
	}
	show := func(what string, from, to point, long time.Duration) (spent, wire float64) {
		each := long.Seconds() * float64(len(net.nodes))
		spent = float64((to.cpu - from.cpu).Microseconds()) / 1000 / each
		wire = 2 * float64(to.wire-from.wire) / each
		fmt.Printf("%s, %d portals, %v, WAN timings: %.2f CPU-ms/s, %.0f B/s in and out with TLS and headers; %.3f DHT and %.3f gossip requests/s, %.0f B/s of bodies of gossip; %d gossip requests failed or members missed\n",
			what, len(net.nodes), long, spent, wire, float64(to.dht-from.dht)/each, float64(to.gossip-from.gossip)/each, float64(to.bytes-from.bytes)/each, to.failed-from.failed)
		fmt.Printf("  %d new connections", to.opened-from.opened)
		for _, path := range slices.Sorted(maps.Keys(to.asked)) {
			if n := to.asked[path] - from.asked[path]; n > 0 {
				fmt.Printf(", %d %s", n, strings.TrimPrefix(path, peering.Base+"/"))
			}
		}
		fmt.Println()
		return spent, wire
	}
	from := look()
	for range int(cfg.Young / window) {
		if settle(ctx, window); ctx.Err() != nil {
			return 0, ctx.Err()
		}
		to := look()
		show("young", from, to, window)
		from = to
	}
	began := from
	profiled, err := profiles(profile, "idle")
	if err != nil {
		return 0, err
	}
	for range int(cfg.Long / window) {
		if settle(ctx, window); ctx.Err() != nil {
			break
		}
		to := look()
		show("settled", from, to, window)
		from = to
	}
	profiled()
	if cfg.Long < window || ctx.Err() != nil {
		return 0, ctx.Err()
	}
	spent, wire := show("idle", began, from, cfg.Long/window*window)
	if spent > idleCPU {
		fmt.Printf("  MISSED: at most %.1f CPU-ms/s\n", idleCPU)
		missed++
	}
	if wire > idleWire {
		fmt.Printf("  MISSED: at most %d B/s\n", idleWire)
		missed++
	}
	return missed, ctx.Err()
}

// window is how long the idle portals are watched for one line.
const window = 5 * time.Minute
