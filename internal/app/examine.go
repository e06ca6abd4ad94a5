package app

import (
	"agentsite/internal/attention"
	"agentsite/internal/control"
	"agentsite/internal/doctor"
	"agentsite/internal/record"
	"context"
)

// Examine implements control.Examiner for the running portal.
func (p *Portal) Examine(ctx context.Context, q doctor.Question) (doctor.Report, error) {
	s := doctor.Subject{Dir: p.set.Data, Running: true, URL: p.URL(), Listen: p.listener.Addr().String(),
		Proxies: len(p.set.Proxies) > 0, Descriptors: p.descriptors, SetBack: p.clock.Last(), Web: p.told.RoundTripper(),
		Agents: p.db.Hub, Databases: control.Databases{DB: p.db, Replica: p.replica, Scrub: p.scrub}}
	if p.meanings != nil {
		s.Meanings = p.meanings
	}
	if n := p.node; n != nil {
		// Newest asks other portals for the records that they hold of this portal, which the doctor
		// reports.
		if !q.Quick {
			n.Syncer.Newest(ctx)
		}
		s.Network, s.ID, s.Replica, s.Peers, s.Caller = p.set.NetworkName, n.ID, p.replica, n.Peers, n.Client
		s.Keyring, s.Publisher, s.DHT = p.newKeyring(), n.Publisher, n.Overlay
		if n.Gossip != nil {
			s.Gossip = n.Gossip
		}
	} else {
		s.Network = p.unjoinedNetwork()
	}
	return doctor.Examine(ctx, s, q), nil
}

// newAttention returns the list of matters that wait for the operator.
func newAttention(p *Portal) *attention.Service {
	return attention.New(attention.Config{Examiner: p, Complaints: p.hub.Complaints, Accounts: p.accounts,
		Portals: p.peers, Tasks: p, Settings: p.settings, Figures: p.figures})
}

// unjoinedNetwork returns the name of the configured network if the portal could not join it because of
// its address, else "".
func (p *Portal) unjoinedNetwork() string {
	if record.ValidOrigin(p.URL()) {
		return ""
	}
	return p.set.NetworkName
}
