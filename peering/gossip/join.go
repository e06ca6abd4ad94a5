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

// join joins portals that are known and no members: at once and often while
// there are few, now and then to mend what fell apart.
func (g *Gossip) join(ctx context.Context, p *pool) {
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

// Nudge has portals that are known by now joined, if there are few members.
func (g *Gossip) Nudge() {
	if up, _ := g.Members(); up >= fewMembers {
		return
	}
	select {
	case g.nudge <- struct{}{}:
	default:
	}
}

// joinOne joins one portal, if there is one to join, and returns how many members
// there are, or fewMembers where there is nobody to join.
func (g *Gossip) joinOne(ctx context.Context, p *pool) int {
	now := clock.Now()
	var who []record.PortalID
	known := g.cfg.Known(ctx)
	g.mu.Lock()
	for _, id := range known {
		if id == g.cfg.Self || g.alive[id] || now.Before(g.shy[id]) || !sameZone(id, g.cfg.Self, g.zone) {
			continue
		}
		who = append(who, id)
	}
	for id, until := range g.shy {
		if !now.Before(until) {
			delete(g.shy, id)
		}
	}
	g.mu.Unlock()
	up, _ := g.Members()
	if len(who) == 0 {
		return up
	}
	id := who[rand.IntN(len(who))]
	where, ok := g.address(ctx, id)
	if !ok {
		return up
	}
	g.count.joins.Add(1)
	if _, err := p.serf.Join([]string{string(id) + "/" + where}, true); err != nil && ctx.Err() == nil {
		g.cfg.Log.Debug("gossip: a portal was not joined", "portal", id, "error", err)
		g.mu.Lock()
		if len(g.shy) < 4*MaxMembers {
			g.shy[id] = now.Add(restAfter(p, id, up))
		}
		g.mu.Unlock()
	}
	up, _ = g.Members()
	return up
}

// restAfter is for how long a portal that was not joined is left alone: one
// that has no such route for long, and who has few members cannot be choosy.
func restAfter(p *pool, id record.PortalID, members int) time.Duration {
	switch {
	case p.https != nil && p.https.absent(string(id)):
		return restFor
	case members < fewMembers:
		return 3 * joinSoon
	}
	return joinEvery
}

// address is where serf finds a portal: by signed requests the name alone says
// it, else its host with the port that this one has.
func (g *Gossip) address(ctx context.Context, id record.PortalID) (string, bool) {
	if g.cfg.Listen == "" {
		return net.JoinHostPort(addressOf(string(id)).String(), strconv.Itoa(anyPort)), true
	}
	host := g.cfg.Host(ctx, id)
	return net.JoinHostPort(host, strconv.Itoa(g.port)), host != ""
}
