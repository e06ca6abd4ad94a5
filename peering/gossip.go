package peering

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

// Gossip is this portal's membership in the gossip pool of its network. It adds the checks and requests
// that need the Node to gossip.Gossip. Node.Gossip is nil when gossip is off.
type Gossip struct {
	*gossip.Gossip
	n *Node
}

// Standing implements federation.Gossip: it returns the state of the membership for display.
func (g *Gossip) Standing() federation.GossipStanding {
	return federation.GossipStanding(g.Gossip.Standing())
}

// openGossip makes the portal a member of its gossip pool; it does nothing if gossip is off. openOverlay
// must have run before, because the contact record that members present is signed by the Overlay.
func (n *Node) openGossip(context.Context) (err error) {
	if !n.cfg.Gossip {
		return nil
	}
	g := &Gossip{n: n}
	g.Gossip, err = gossip.New(gossip.Config{Network: n.cfg.Network, Self: n.ID, Contact: n.Overlay.Contact,
		Check: g.checkMember, Post: g.post, Known: g.known,
		Host: func(ctx context.Context, portal record.PortalID) string {
			p, _ := n.Peers.Portal(ctx, string(portal))
			u, err := url.Parse(p.URL)
			if err != nil {
				return ""
			}
			return u.Hostname()
		},
		Size: func() int { return n.Overlay.Standing().Size },
		Head: func(h gossip.Hint) { n.Syncer.Rumour(federation.Mark(h.Mark), h.Version) },
		Seen: func(portal record.PortalID, origin string) {
			if n.Peers.Decide(context.Background(), portal, origin).State != federation.Active {
				n.Peers.Heard(origin, portal)
			}
		},
		Lost:   n.Peers.Missed,
		Listen: n.cfg.GossipListen, Log: n.ports.Log})
	if err != nil {
		return err
	}
	n.Gossip = g
	return nil
}

// checkMember implements gossip.Config's Check: it verifies the contact record of a member with the portal
// card that the Replica holds. Without a card it returns a NotFound error and has the registry look the
// portal up.
func (g *Gossip) checkMember(ctx context.Context, from record.PortalID, wire []byte) (*record.Contact, error) {
	n, now := g.n, clock.Now()
	r, err := record.Open(n.cfg.Network, wire)
	if err != nil {
		return nil, err
	}
	c, ok := r.Body.(*record.Contact)
	if !ok {
		return nil, fault.New(fault.Invalid, "It is a %s, not a contact.", r.Type)
	}
	if !n.Peers.Decide(ctx, c.Portal, c.Origin()).In {
		return nil, fault.New(fault.Forbidden, "Rules or policy keep %s out.", c.Portal)
	}
	held, err := n.ports.Replica.Card(ctx, c.Portal)
	if err != nil {
		return nil, err
	}
	if held == nil {
		n.Peers.Heard(c.Origin(), from)
		return nil, fault.New(fault.NotFound, "The portal %s is not known yet.", c.Portal)
	}
	card, err := record.OpenCard(n.cfg.Network, held, now)
	if err != nil {
		return nil, err
	}
	if err := card.Signed(r, now); err != nil {
		return nil, err
	}
	return c, nil
}

// post implements gossip.Config's Post: it sends a signed request to a known portal. The errors distinguish
// a portal without gossip (NotFound) from one that rejects the message (Invalid) and from a failure that
// may pass (Unavailable).
func (g *Gossip) post(ctx context.Context, to record.PortalID, route string, body []byte, limit int64) ([]byte, error) {
	p, ok := g.n.Peers.Portal(ctx, string(to))
	if !ok || p.URL == "" {
		return nil, fault.New(fault.Unavailable, "The portal %s is not known.", to)
	}
	a, err := g.n.Client.Do(ctx, p.URL, to, http.MethodPost, client.Base+"/"+route, body, limit)
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

// known implements gossip.Config's Known: it returns the portals that are reachable and allowed.
func (g *Gossip) known(ctx context.Context) (out []record.PortalID) {
	for _, p := range g.n.Peers.Portals(ctx) {
		if p.ID != "" && p.State == federation.Active {
			out = append(out, p.ID)
		}
	}
	return out
}

// watchPeers asks the pool to join newly known portals after each change of the registry, until ctx ends.
func (g *Gossip) watchPeers(ctx context.Context) error {
	for {
		changed := g.n.Peers.Changed()
		g.Nudge()
		select {
		case <-changed:
			if !clock.Sleep(ctx, time.Second) { // changes come in bursts: join once for all
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}
