package gossip

import (
	"github.com/hashicorp/serf/serf"

	"agentsite/internal/record"
)

// Members returns how many members of the zone are up, without this portal, and how many are gone but may
// come back.
func (g *Gossip) Members() (up, down int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, is := range g.alive {
		if is {
			up++
		} else {
			down++
		}
	}
	return up, down
}

// Alive reports whether a portal is a member of this portal's zone and not reported as gone. It is a hint,
// because it relies on statements of other members.
func (g *Gossip) Alive(id record.PortalID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.alive[id]
}

// handleEvents processes the events of serf until its pool ends.
func (g *Gossip) handleEvents(p *pool, events <-chan serf.Event) {
	for {
		select {
		case e := <-events:
			g.handleEvent(e)
		case <-p.serf.ShutdownCh():
			return
		}
	}
}

func (g *Gossip) handleEvent(e serf.Event) {
	switch e := e.(type) {
	case serf.MemberEvent:
		for _, m := range e.Members {
			g.handleMember(record.PortalID(m.Name), e.EventType())
		}
	case serf.UserEvent:
		if h, ok := readHint(e.Payload); ok && e.Name == headEvent && h.Mark != leadingBits(g.cfg.Self) {
			g.count.heard.Add(1)
			g.cfg.Head(h)
		}
	}
}

func (g *Gossip) handleMember(id record.PortalID, what serf.EventType) {
	if id == g.cfg.Self {
		return
	}
	g.mu.Lock()
	switch what {
	case serf.EventMemberJoin, serf.EventMemberUpdate:
		g.alive[id] = true
	case serf.EventMemberReap:
		delete(g.alive, id)
	default:
		g.alive[id] = false
	}
	g.mu.Unlock()
	switch what {
	case serf.EventMemberJoin:
		if c, ok := g.guard.originOf(string(id)); ok {
			g.cfg.Seen(id, c)
		}
	case serf.EventMemberFailed, serf.EventMemberLeave:
		g.count.lost.Add(1)
		g.cfg.Lost(id)
	}
}
