package gossip

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// joinRegularly joins known portals that are not members until ctx ends: often while there are few members,
// otherwise at intervals, which reunites a pool that fell apart.
func (g *Gossip) joinRegularly(ctx context.Context, p *pool) {
	for {
		next := joinEvery
		if g.joinOne(ctx, p) < fewMembers {
			next = joinSoon
		}
		t := time.NewTimer(next*3/4 + rand.N(next/2))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		case <-g.nudge:
			t.Stop()
			if !clock.Sleep(ctx, 100*time.Millisecond+rand.N(400*time.Millisecond)) {
				return
			}
		}
	}
}

// Nudge starts a join soon if there are few members, because more portals may be known now. It does not
// block.
func (g *Gossip) Nudge() {
	if up, _ := g.Members(); up >= fewMembers {
		return
	}
	select {
	case g.nudge <- struct{}{}:
	default:
	}
}

// joinOne joins one random known portal of the zone that is not a member, and returns the number of members
// afterwards. It waits for the exchange of states.
func (g *Gossip) joinOne(ctx context.Context, p *pool) int {
	now := clock.Now()
	var candidates []record.PortalID
	known := g.cfg.Known(ctx)
	g.mu.Lock()
	for _, id := range known {
		if id == g.cfg.Self || g.alive[id] || now.Before(g.shy[id]) || !sameZone(id, g.cfg.Self, g.zone) {
			continue
		}
		candidates = append(candidates, id)
	}
	for id, until := range g.shy {
		if !now.Before(until) {
			delete(g.shy, id)
		}
	}
	g.mu.Unlock()
	up, _ := g.Members()
	if len(candidates) == 0 {
		return up
	}
	id := candidates[rand.IntN(len(candidates))]
	where, ok := g.serfAddress(ctx, id)
	if !ok {
		return up
	}
	g.count.joins.Add(1)
	if _, err := p.serf.Join([]string{string(id) + "/" + where}, true); err != nil && ctx.Err() == nil {
		g.cfg.Log.Debug("gossip: join a portal", "portal", id, "error", err)
		g.mu.Lock()
		if len(g.shy) < 4*MaxMembers {
			g.shy[id] = now.Add(restAfter(p, id, up))
		}
		g.mu.Unlock()
	}
	up, _ = g.Members()
	return up
}

// restAfter returns the pause after a failed join of a portal: restFor if it does not gossip, short while
// there are few members.
func restAfter(p *pool, id record.PortalID, members int) time.Duration {
	switch {
	case p.https != nil && p.https.lacksRoute(string(id)):
		return restFor
	case members < fewMembers:
		return 3 * joinSoon
	}
	return joinEvery
}

// serfAddress returns the address of a portal for serf: the one derived from its id when signed requests
// are used, otherwise its host with this portal's own port. ok is false if the host is not known.
func (g *Gossip) serfAddress(ctx context.Context, id record.PortalID) (string, bool) {
	if g.cfg.Listen == "" {
		return net.JoinHostPort(addressOf(string(id)).String(), strconv.Itoa(anyPort)), true
	}
	host := g.cfg.Host(ctx, id)
	return net.JoinHostPort(host, strconv.Itoa(g.port)), host != ""
}
