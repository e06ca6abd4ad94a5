package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation/livereport"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/live"
)

// livePart is what portals tell each other of whether agents can be reached.
type livePart struct {
	*live.Service
	p *Portal
}

// telling has the portal say what its exchanges showed, and hear the others.
func (f *federated) telling() {
	f.live = &livePart{p: f.p}
	f.live.Service = live.New(live.Config{Signer: f, Gate: f.gate, Replica: f.p.replica, Registry: f.peers, Caller: f,
		Own: f.live.own, Changed: f.live.changed, Log: f.p.log})
	f.door.Attest(f.live)
	f.run = append(f.run, f.live.Run)
}

// own lists what was seen of the agents that others are told of.
func (l *livePart) own(ctx context.Context, yield func(live.Seen) bool) error {
	return l.p.db.AllAgents(ctx, func(a hub.Agent) bool {
		seen, ok := l.seen(a)
		return ctx.Err() == nil && (!ok || yield(seen))
	})
}

// seen returns the liveness of an own agent for others; ok is false if it is not published.
func (l *livePart) seen(a hub.Agent) (s live.Seen, ok bool) {
	f := l.p.federated
	if a.Portal != "" || !a.Listable() || !f.peers.Exports(a.Tags(), a.Languages) {
		return s, false
	}
	s = live.Seen{Subject: f.id, Agent: networkID(f.id, a), Reach: record.ReachOf(string(a.Liveness.State)), At: a.Liveness.CheckedAt, Took: a.Liveness.Latency}
	if a.Kind == hub.Builtin || a.Kind == hub.Link && s.Reach == record.Alive {
		s.At = clock.Now() // it runs here, or holds a connection
	}
	return s, true
}

// networkID is an own agent's id in the network.
func networkID(portal record.PortalID, a hub.Agent) string {
	return record.AgentID(portal, strings.ToLower(a.ID))
}

// contacted tells others what an exchange with an own agent showed.
func (p *Portal) contacted(a hub.Agent) {
	if p.federated == nil {
		return
	}
	if s, ok := p.federated.live.seen(a); ok {
		p.federated.live.Observe(s)
	}
}

// calledElsewhere takes note of a call of an agent of another portal.
func (p *Portal) calledElsewhere(a hub.Agent, reached bool) {
	if p.federated == nil || a.PortalID == "" || a.NetworkID == "" {
		return
	}
	s := live.Seen{Subject: record.PortalID(a.PortalID), Agent: a.NetworkID, Reach: record.Unreachable, At: clock.Now(), Called: true}
	if reached {
		s.Reach = record.Alive
		p.federated.calls.reached.Add(1)
	} else {
		p.federated.calls.missed.Add(1)
	}
	p.federated.live.Observe(s)
}

// livenessOf is what is believed of an agent by its id in the network.
func (p *Portal) livenessOf(id string) hub.Liveness {
	if p.federated == nil || p.federated.live == nil {
		return hub.Liveness{State: hub.Unknown}
	}
	return believed(p.federated.live.Verdict(portalOf(id), id))
}

// portalOf is the portal in the id of an agent without a key of its own.
func portalOf(id string) record.PortalID {
	portal, _, ok := strings.Cut(id, "/")
	if !ok {
		return ""
	}
	return record.PortalID(portal)
}

func believed(v livereport.Verdict) hub.Liveness {
	l := hub.Liveness{State: hub.Unknown, CheckedAt: v.At, Reason: v.Reason}
	if v.Reach != 0 {
		l.State = hub.Live(v.Reach.String())
	}
	return l
}

// whose returns an agent's id in the network, and the portal that it is of.
func (f *federated) whose(a hub.Agent) (id string, portal record.PortalID) {
	switch {
	case a.Portal == "":
		return networkID(f.id, a), f.id
	case a.NetworkID != "": // it works here, though its record is not held
		return a.NetworkID, record.PortalID(a.PortalID)
	}
	return a.ID, portalOf(a.ID)
}

// voices is what is believed of an agent, and who says what.
func (p *Portal) voices(a hub.Agent) (hub.Liveness, []hub.Voice) {
	if p.federated == nil {
		return a.Liveness, nil
	}
	id, portal := p.federated.whose(a)
	v := p.federated.live.Verdict(portal, id)
	var list []hub.Voice
	for _, s := range v.Reports {
		list = append(list, hub.Voice{Portal: s.Host, State: hub.Live(s.Reach.String()), At: s.At, Called: s.Called, Role: role(s)})
	}
	return believed(v), list
}

func role(v livereport.Report) string {
	switch {
	case v.Own:
		return hub.RoleHere
	case v.Home:
		return hub.RoleHome
	case v.Pinned:
		return hub.RolePinned
	case v.Proved:
		return hub.RoleProved
	}
	return ""
}

const (
	// againBatch is how many agents are shown anew at once, againPause what
	// lies between: whoever searches meanwhile waits for neither.
	againBatch = 256
	againPause = 20 * time.Millisecond
	// staleCheck is when the time of the last contact is shown anew though
	// nothing else changed.
	staleCheck = 30 * time.Minute
)

// changed shows agents anew of which something else is believed now.
func (l *livePart) changed(ctx context.Context, portal record.PortalID, tags map[record.AgentTag]bool) {
	p := l.p
	host := ""
	for _, peer := range p.federated.peers.Portals(ctx) {
		if peer.ID == portal {
			host = peer.Host()
		}
	}
	var again []string
	for _, id := range p.hub.LearnedFrom(host) {
		if tags != nil && !tags[record.TagOf(id)] {
			continue
		}
		a, ok := p.hub.Learned(id)
		if !ok {
			continue
		}
		now := believed(l.Verdict(portal, id))
		if was := a.Liveness; was.State != now.State || was.Reason != now.Reason || now.CheckedAt.Sub(was.CheckedAt).Abs() > staleCheck {
			again = append(again, id)
		}
	}
	for part := range slices.Chunk(again, againBatch) {
		p.federated.catalog.Refresh(portal, part)
		select {
		case <-ctx.Done():
			return
		case <-time.After(againPause):
		}
	}
}
