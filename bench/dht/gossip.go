package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"agentsite/bench/report"
	"agentsite/handlers/peer"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/peering/client"
	"agentsite/peering/gossip"
)

// Limits and times for portals without work.
const (
	idleCPU  = 2.0  // ms of processor time per second
	idleWire = 4000 // bytes per second, in and out, with TLS and headers
	// Portals that meet for the first time have more work for some minutes, so these are not measured.
	youngFor = 5 * time.Minute
	idleFor  = 5 * time.Minute
)

// pool is the gossip of one portal.
type pool struct {
	*gossip.Gossip
	lost atomic.Int64 // number of times that a member was declared dead
}

// Standing implements federation.Gossip.
func (g *pool) Standing() federation.GossipStanding {
	return federation.GossipStanding(g.Gossip.Standing())
}

// gossips adds gossip to a portal, connected as internal/app does it.
func (p *portal) gossips() (err error) {
	p.pool = &pool{}
	g := p.pool
	g.Gossip, err = gossip.New(gossip.Config{Network: networkName, Self: p.id, Contact: p.overlay.Contact, Log: discard,
		Check: func(ctx context.Context, _ record.PortalID, wire []byte) (*record.Contact, error) {
			now := clock.Now()
			r, err := record.Open(networkName, wire)
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
			card, err := record.OpenCard(networkName, held, now)
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
			a, err := p.client.Do(ctx, q.URL, to, http.MethodPost, client.Base+"/"+route, body, limit)
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
		Head: func(gossip.Hint) {},
		Seen: func(record.PortalID, string) {},
		Lost: func(record.PortalID) { g.lost.Add(1) }})
	return err
}

// pooled builds a network whose portals gossip, and waits until each portal sees all others. The caller
// must close it.
func (b *bench) pooled(ctx context.Context) (*network, error) {
	const most = 5 * time.Minute
	o, err := b.build(ctx, func(p *portal, door *peer.Door) error {
		if err := p.gossips(); err != nil {
			return err
		}
		door.Gossip(p.pool, gossip.Routes())
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range o.nodes {
		p.run(p.pool.Run)
	}
	began := time.Now()
	for _, p := range o.nodes {
		for up := 0; up < len(o.nodes)-1; sleep(ctx, 100*time.Millisecond) {
			up, _ = p.pool.Members()
			if err := ctx.Err(); err != nil || time.Since(began) > most {
				o.Close()
				return nil, fmt.Errorf("%s sees %d of %d after %v: %w", p.host, up, len(o.nodes)-1, time.Since(began).Round(time.Second), err)
			}
		}
	}
	return o, nil
}

// idle measures portals without work. It counts the bytes of the whole loopback interface, so other
// programs must not use it: see the package comment.
func (b *bench) idle(ctx context.Context) error {
	o, err := b.pooled(ctx)
	if err != nil {
		return err
	}
	defer o.Close()
	young, long := youngFor, idleFor
	if b.Quick {
		young, long = 5*time.Second, 5*time.Second
	}
	if sleep(ctx, young); ctx.Err() != nil {
		return ctx.Err()
	}
	count := func() (spent time.Duration, wire, dht, gossip, lost int64) {
		for _, p := range o.nodes {
			gossip, lost = gossip+p.pool.Gossip.Standing().Sent, lost+p.pool.lost.Load()
		}
		return cpu(), loopback(), o.Sent(), gossip, lost
	}
	spent0, wire0, dht0, gossip0, lost0 := count()
	if sleep(ctx, long); ctx.Err() != nil {
		return ctx.Err()
	}
	spent1, wire1, dht1, gossip1, lost1 := count()
	each := long.Seconds() * float64(len(o.nodes))
	ms := (spent1 - spent0).Seconds() * 1e3 / each
	bytes := 2 * float64(wire1-wire0) / each // each byte is sent by one portal and received by another
	b.Add(report.Line{What: fmt.Sprintf("%d portals without work for %s, after %s: gossip and tables, CPU of each", len(o.nodes), long, young),
		Portal: fmt.Sprintf("%.2f ms/s", ms), Bar: fmt.Sprintf("≤ %.0f ms/s", idleCPU), Judged: !b.Quick, Absolute: true, Met: ms <= idleCPU})
	b.Add(report.Line{What: "the same: bytes of each, in and out, with TLS and headers", Portal: fmt.Sprintf("%.2f kB/s", bytes/1000),
		Bar: fmt.Sprintf("≤ %.0f kB/s", idleWire/1000.), Judged: !b.Quick, Met: bytes <= idleWire})
	b.Add(report.Line{What: "the same: requests of each", Portal: fmt.Sprintf("%.3f DHT/s, %.3f gossip/s, %d members called dead", float64(dht1-dht0)/each, float64(gossip1-gossip0)/each, lost1-lost0)})
	return nil
}
