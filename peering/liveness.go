package peering

import (
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation/livereport"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/catalog"
	"agentsite/peering/live"
	"agentsite/peering/translate"
)

// OwnLiveness implements live.Directory: it lists the liveness of own agents for other portals.
func (n *Node) OwnLiveness(ctx context.Context, yield func(live.Seen) bool) error {
	return n.ports.Source.AllAgents(ctx, func(a hub.Agent) bool {
		seen, ok := n.seenLiveness(a)
		return ctx.Err() == nil && (!ok || yield(seen))
	})
}

// seenLiveness converts an own agent's liveness for other portals; ok is false for agents that are not
// published.
func (n *Node) seenLiveness(a hub.Agent) (s live.Seen, ok bool) {
	if !translate.Exportable(a) || !n.Peers.Exports(a.Tags(), a.Languages) {
		return s, false
	}
	s = live.Seen{Subject: n.ID, Agent: networkID(n.ID, a), Reach: record.ReachOf(string(a.Liveness.State)),
		At: a.Liveness.CheckedAt, Took: a.Liveness.Latency}
	if a.Kind == hub.Link && s.Reach == record.Alive {
		s.At = clock.Now() // it holds a connection
	}
	return s, true
}

// networkID is an own agent's id in the network.
func networkID(portal record.PortalID, a hub.Agent) string {
	return record.AgentID(portal, strings.ToLower(a.ID))
}

// OwnContacted reports the result of an exchange with an own agent to other portals.
func (n *Node) OwnContacted(a hub.Agent) {
	if s, ok := n.seenLiveness(a); ok {
		n.Liveness.Observe(s)
	}
}

// RemoteCalled takes note of a call of an agent of another portal.
func (n *Node) RemoteCalled(a hub.Agent, reached bool) {
	if a.PortalID == "" || a.NetworkID == "" {
		return
	}
	s := live.Seen{Subject: record.PortalID(a.PortalID), Agent: a.NetworkID, Reach: record.Unreachable, At: clock.Now(),
		Called: true}
	if reached {
		s.Reach = record.Alive
		n.calls.WithLabelValues("reached").Inc()
	} else {
		n.calls.WithLabelValues("unreachable").Inc()
	}
	n.Liveness.Observe(s)
}

// subjectOf returns an agent's id in the network, and the portal that lists it.
func (n *Node) subjectOf(a hub.Agent) (id string, portal record.PortalID) {
	switch {
	case a.Portal == "":
		return networkID(n.ID, a), n.ID
	case a.NetworkID != "": // it works here, though its record is not held
		return a.NetworkID, record.PortalID(a.PortalID)
	}
	portal, _ = translate.Local(a.ID)
	return a.ID, portal
}

// Reports returns the liveness of an agent, and the report of each portal.
func (n *Node) Reports(a hub.Agent) (hub.Liveness, []hub.Voice) {
	id, portal := n.subjectOf(a)
	v := n.Liveness.Verdict(portal, id)
	var list []hub.Voice
	for _, s := range v.Reports {
		list = append(list, hub.Voice{Portal: s.Host, State: hub.Live(s.Reach.String()), At: s.At, Called: s.Called,
			Role: role(s)})
	}
	return catalog.LivenessOf(v), list
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
	// refreshBatch is how many agents are shown anew at once, refreshPause the pause between batches, so
	// that a search waits for neither.
	refreshBatch = 256
	refreshPause = 20 * time.Millisecond
	// staleCheck is when the time of the last contact is shown anew though
	// nothing else changed.
	staleCheck = 30 * time.Minute
)

// LivenessChanged implements live.Directory: it shows agents anew whose liveness has changed.
func (n *Node) LivenessChanged(ctx context.Context, portal record.PortalID, tags map[record.AgentTag]bool) {
	host := ""
	for _, peer := range n.Peers.Portals(ctx) {
		if peer.ID == portal {
			host = peer.Host()
		}
	}
	var stale []string
	for _, id := range n.ports.Directory.LearnedFrom(host) {
		if tags != nil && !tags[record.TagOf(id)] {
			continue
		}
		a, ok := n.ports.Directory.Learned(id)
		if !ok {
			continue
		}
		now := catalog.LivenessOf(n.Liveness.Verdict(portal, id))
		if was := a.Liveness; was.State != now.State || was.Reason != now.Reason ||
			now.CheckedAt.Sub(was.CheckedAt).Abs() > staleCheck {
			stale = append(stale, id)
		}
	}
	for part := range slices.Chunk(stale, refreshBatch) {
		n.Catalog.Refresh(portal, part)
		select {
		case <-ctx.Done():
			return
		case <-time.After(refreshPause):
		}
	}
}
