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

// OwnLiveness implements live.Directory: it yields the liveness of every published agent of this portal,
// for reports to other portals. It stops early when yield returns false or ctx ends.
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
		s.At = clock.Now() // a link agent is alive only while its connection is open, so it was reached just now
	}
	return s, true
}

// networkID returns the id that an agent of this portal has in the network, derived from the portal's id
// and the agent's own.
func networkID(portal record.PortalID, a hub.Agent) string {
	return record.AgentID(portal, strings.ToLower(a.ID))
}

// OwnContacted observes the result of an exchange with an agent of this portal, so that the next liveness
// report to other portals contains it. Agents that are not published are ignored.
func (n *Node) OwnContacted(a hub.Agent) {
	if s, ok := n.seenLiveness(a); ok {
		n.Liveness.Observe(s)
	}
}

// RemoteCalled counts a call of another portal's agent and observes its result for liveness reports:
// reached is false when the agent could not be reached. Other agents are ignored.
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

// subjectOf returns an agent's network id and the portal that lists the agent; the portal is "" for an
// agent with its own key that no portal is known for.
func (n *Node) subjectOf(a hub.Agent) (id string, portal record.PortalID) {
	switch {
	case a.Portal == "":
		return networkID(n.ID, a), n.ID
	case a.NetworkID != "": // a registered agent of another portal; the Replica need not hold its record
		return a.NetworkID, record.PortalID(a.PortalID)
	}
	portal, _ = translate.Local(a.ID)
	return a.ID, portal
}

// Reports returns the liveness of an agent as this portal judges it, and the reports of the single portals
// behind that judgment. Without reports the state is unknown and the list is empty.
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
	// refreshBatch is how many directory entries are updated at once, refreshPause the pause between two
	// batches, so that searches are not held up.
	refreshBatch = 256
	refreshPause = 20 * time.Millisecond
	// staleCheck is by how much the time of the last contact must differ from the displayed one to update
	// an entry, when the rest of its liveness is the same.
	staleCheck = 30 * time.Minute
)

// LivenessChanged implements live.Directory: it updates the directory's entries for agents of the given
// portal, if their liveness changed. tags selects the agents; nil means all.
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
