package app

import (
	"agentsite/internal/control"
	"agentsite/internal/doctor"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"context"
)

// Examine examines the running portal.
func (p *Portal) Examine(ctx context.Context, q doctor.Question) (doctor.Report, error) {
	s := doctor.Subject{Dir: p.set.Data, Running: true, URL: p.URL(), Listen: p.listener.Addr().String(),
		Proxies: len(p.set.Proxies) > 0, Web: p.told.RoundTripper(),
		Own:       p.ownAgents,
		Databases: func(ctx context.Context, r *doctor.Report) { control.CheckDatabases(ctx, p.db, p.replica, r) }}
	if n := p.node; n != nil {
		n.Syncer.Newest(ctx) // after this Standing knows the records that others hold of this portal
		s.Network, s.ID, s.Replica, s.Exports, s.Caller = p.set.NetworkName, n.ID, p.replica, n.Peers.Exports, n.Client
		s.Standing, s.Published = p.newKeyring().Keys, n.Publisher.Published
		if n.Gossip != nil {
			s.Gossip = n.Gossip.Standing
		}
		s.DHT, s.LookUp = n.Overlay.Standing, n.Overlay.Ask
		s.Known = func(ctx context.Context) ([]federation.Peer, error) { return n.Peers.Portals(ctx), nil }
	} else {
		s.Network = p.unjoinedNetwork()
	}
	return doctor.Examine(ctx, s, q), nil
}

// unjoinedNetwork returns the network that the portal is configured for but cannot join, because of its address.
func (p *Portal) unjoinedNetwork() string {
	if record.ValidOrigin(p.URL()) {
		return ""
	}
	return p.set.NetworkName
}

func (p *Portal) ownAgents(ctx context.Context, yield func(hub.Agent) bool) error {
	return p.db.Hub.AllAgents(ctx, yield)
}
