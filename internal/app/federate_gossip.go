package app

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/peering/client"
	"agentsite/peering/gossip"
)

// gossipPart is this portal in its pool.
type gossipPart struct {
	*gossip.Gossip
	f *federated
}

// Standing implements federation.Gossip.
func (g *gossipPart) Standing() federation.GossipStanding {
	return federation.GossipStanding(g.Gossip.Standing())
}

// Vanish makes the portal end without a message to others, as if it were killed: for drills.
func (p *Portal) Vanish() {
	if p.federated != nil && p.federated.gossip != nil {
		p.federated.gossip.Vanish()
	}
}

// gossips joins the pool of portals. It comes after distribute, which signs this portal's address.
func (f *federated) gossips() error {
	if f.p.set.Gossip == GossipOff {
		return nil
	}
	g := &gossipPart{f: f}
	listen := f.p.set.Gossip
	if listen == GossipHTTPS {
		listen = ""
	}
	var err error
	g.Gossip, err = gossip.New(gossip.Config{Network: f.p.set.network, Self: f.id, Contact: f.overlay.Contact, Check: g.check, Post: g.post, Known: g.known,
		Host: func(ctx context.Context, portal record.PortalID) string {
			p, _ := f.peers.Portal(ctx, string(portal))
			u, err := url.Parse(p.URL)
			if err != nil {
				return ""
			}
			return u.Hostname()
		},
		Size: func() int { return f.overlay.Standing().Size },
		Head: func(h gossip.Hint) { f.syncer.Rumour(federation.Mark(h.Mark), h.Version) },
		Seen: func(portal record.PortalID, origin string) {
			if f.peers.Decide(context.Background(), portal, origin).State != federation.Active {
				f.peers.Heard(origin, portal)
			}
		},
		Lost:   f.peers.Missed,
		Listen: listen, Log: f.p.log})
	if err != nil {
		return err
	}
	f.gossip = g
	if listen == "" {
		f.door.Gossip(g, gossip.Routes())
	}
	led := f.led
	f.led = func(head []byte) {
		led(head)
		if r, err := record.Open(f.p.set.network, head); err == nil {
			g.AdvertiseHead(r.Version())
		}
	}
	f.run = append(f.run, g.Run, g.meet)
	return nil
}

// check implements gossip.Config's Check by the cards that are held.
func (g *gossipPart) check(ctx context.Context, from record.PortalID, wire []byte) (*record.Contact, error) {
	f, now := g.f, clock.Now()
	r, err := record.Open(f.p.set.network, wire)
	if err != nil {
		return nil, err
	}
	c, ok := r.Body.(*record.Contact)
	if !ok {
		return nil, fault.New(fault.Invalid, "It is a %s, not a contact.", r.Type)
	}
	if !f.peers.Decide(ctx, c.Portal, c.Origin()).In {
		return nil, fault.New(fault.Forbidden, "Rules or policy keep %s out.", c.Portal)
	}
	held, err := f.p.replica.Card(ctx, c.Portal)
	if err != nil {
		return nil, err
	}
	if held == nil {
		f.peers.Heard(c.Origin(), from)
		return nil, fault.New(fault.NotFound, "The portal %s is not known yet.", c.Portal)
	}
	card, err := record.OpenCard(f.p.set.network, held, now)
	if err != nil {
		return nil, err
	}
	if err := card.Signed(r, now); err != nil {
		return nil, err
	}
	return c, nil
}

// post implements gossip.Config's Post.
func (g *gossipPart) post(ctx context.Context, to record.PortalID, route string, body []byte, limit int64) ([]byte, error) {
	p, ok := g.f.peers.Portal(ctx, string(to))
	if !ok || p.URL == "" {
		return nil, fault.New(fault.Unavailable, "The portal %s is not known.", to)
	}
	a, err := g.f.client.Do(ctx, p.URL, to, http.MethodPost, client.Base+"/"+route, body, limit)
	switch {
	case err != nil:
		return nil, err
	case a.Status == http.StatusOK:
		return a.Body, nil
	case a.Status == http.StatusNotFound:
		return nil, fault.New(fault.NotFound, "The portal %s does not gossip.", to)
	case a.Status == http.StatusBadRequest:
		return nil, fault.New(fault.Invalid, "The portal %s does not understand it.", to)
	}
	return nil, fault.New(fault.Unavailable, "The portal %s refused with status %d.", to, a.Status)
}

// known implements gossip.Config's Known.
func (g *gossipPart) known(ctx context.Context) (out []record.PortalID) {
	for _, p := range g.f.peers.Portals(ctx) {
		if p.ID != "" && p.State == federation.Active {
			out = append(out, p.ID)
		}
	}
	return out
}

// meet has portals joined that are met, until ctx ends.
func (g *gossipPart) meet(ctx context.Context) error {
	for {
		changed := g.f.peers.Changed()
		g.Nudge()
		select {
		case <-changed:
			if !clock.Sleep(ctx, time.Second) { // much may happen at once
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}
