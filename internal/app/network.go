package app

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/api"
	"agentsite/handlers/peer"
	"agentsite/handlers/request"
	"agentsite/internal/clock"
	"agentsite/internal/control"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/peering"
	"agentsite/peering/catalog"
	"agentsite/peering/gossip"
	"agentsite/peering/overlay"
	"agentsite/store/replica"
)

// openNetwork joins the portal to its network and sets p.peers, p.node and p.replica. It runs before the
// hub is built, because the hub shows agents of other portals, and builds hosting, because packages are
// published. Without a network only p.peers is set, so
// that the operator's decisions about portals stay visible.
func (p *Portal) openNetwork(ctx context.Context, keys *ident.Keys, allow []netip.Prefix,
	directory catalog.Directory) (err error) {
	if err := p.openHosting(ctx, keys); err != nil {
		return err
	}
	agents := hubAgents{p}
	if p.set.NetworkName != "" && !record.ValidOrigin(p.url.String()) {
		p.log.Warn("this portal is in no network: others are called by https:// alone, and so must it be", "url",
			p.url.String())
	}
	if p.set.NetworkName == "" || !record.ValidOrigin(p.url.String()) {
		p.peers, err = federation.NewPeers(ctx, p.db.Peers,
			federation.PeersConfig{Name: p.url.Host, Live: p.live, Agents: agents.Own, Tell: p.notifyOperators,
				Most: p.set.MostPeers, Log: p.log})
		return err
	}
	own := record.PortalOf(record.Public(keys.Public()))
	if p.replica, err = replica.Open(ctx, replica.Config{Dir: p.set.Data, Database: p.set.Database, Own: own,
		Network: p.set.NetworkName, Disk: p.db.Space, Log: p.log}); err != nil {
		return err
	}
	p.node, err = peering.Open(ctx, peering.Config{
		Network: p.set.NetworkName, URL: p.url.String(), Host: p.url.Host, Name: p.url.Host, Live: p.live,
		Tier: p.set.FixedTier, Join: p.set.JoinOrigins,
		Gossip: p.set.Gossip != GossipOff, GossipListen: p.set.GossipListen(), Allow: allow,
		UserAgent: "agentsite/" + Release(),
		MaxPeers:  p.set.MostPeers, PeerIdle: p.set.PeerIdle, FirstByte: modelFirstByte, CallsPerHost: callsPerHost(p.set.Bounds.Work),
		Started: p.started,
	}, peering.Ports{
		Keys: keys, Operational: p.operational, Replica: p.replica, Peers: p.db.Peers, Nonces: p.db.Peers,
		Cards: p.db.Peers, Source: p.db.Hub, Packages: p.packages,
		Directory: directory, Agents: agents, NotifyOperators: p.notifyOperators, Shun: p.shun, Log: p.log,
	})
	if err == nil {
		p.peers = p.node.Peers
	}
	return err
}

// hubAgents implements peering.Agents with the hub. It refers to the portal, because the hub is built
// after the network; it must not be used before the portal serves.
type hubAgents struct{ p *Portal }

// Own returns the number of listed agents of this portal.
func (a hubAgents) Own() int { return a.p.hub.Own() }

// Search implements peering.Agents: other portals' searches are answered from the hub's directory.
func (a hubAgents) Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error) {
	q.Private = true
	return a.p.hub.Search(ctx, actor, q)
}

// Anywhere implements peering.Agents. It also resolves names of agents on other portals.
func (a hubAgents) Anywhere(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error) {
	return a.p.hub.Anywhere(ctx, actor, name)
}

// connectHub returns ports with the parts of the network added. Without a network the hub asks no other
// portal. Tests replace the network by Config.RemoteAgents.
func (p *Portal) connectHub(ports hub.Ports) hub.Ports {
	ports.Ways = noWay{}
	if n := p.node; n != nil {
		ports.Network, ports.Ways, ports.Wider, ports.Seeker = n.Network, n, n.Searcher, n.Resolver
		ports.Reports = n
	}
	if p.set.RemoteAgents != nil {
		ports.Network = p.set.RemoteAgents
	}
	return ports
}

// newCallers returns the value that identifies the actor of a request. In a network it also accepts
// people of other portals, and then sets p.portalCalls. It sets the limits of connections.
func (p *Portal) newCallers() *request.Callers {
	p.limits = newConnectionLimits(p.set, p.descriptors)
	p.connections = request.NewConnections(p.limits.held)
	if p.node == nil {
		return request.NewCallers(p.accounts, nil, p.connections)
	}
	p.portalCalls = peer.NewCalls(peer.CallsConfig{Guard: p.node.Guard, Peers: p.peers, Accounts: p.accounts,
		Tasks: p.tasks, Store: p.db.Tasks, Ways: p.node, Log: p.log})
	return request.NewCallers(p.accounts, p.portalCalls, p.connections)
}

// peerRoutes registers the routes that other portals call. Without a network there are none.
func (p *Portal) peerRoutes(r chi.Router) {
	n := p.node
	if n == nil {
		return
	}
	d := peer.New(peer.Config{Self: n.Self, Guard: n.Guard, Replica: p.replica, Version: Version(), Log: p.log,
		Peers: n.Peers, Tiers: n.Tiers, Handshakes: n})
	peer.NewRecords(n.Archive, n.Syncer).Routes(d)
	d.DHT(n.Overlay, overlay.Routes())
	if n.Gossip != nil && p.set.GossipListen() == "" {
		d.Gossip(n.Gossip, gossip.Routes())
	}
	peer.Search(d, n.Answerer)
	d.Attest(n.Liveness)
	peer.Modules(d, p.packages)
	d.Routes(r)
}

// callerPortals implements remote.Portals: it identifies this portal and its callers to other portals.
type callerPortals struct{ portal *Portal }

// Transport implements remote.Portals: requests are signed and sent only to the portal with that id at
// origin.
func (c callerPortals) Transport(portal, origin string) http.RoundTripper {
	return c.portal.node.Client.Transport(record.PortalID(portal), origin)
}

// MarkCaller implements remote.Portals. The result differs from portal to portal, so that portals cannot
// match a person's calls.
func (c callerPortals) MarkCaller(portal, callerID string) string {
	return c.portal.keys.Mark("agentsite/for/1", portal+"/"+callerID)
}

// noWay is the hub.Ways of a portal without a network: no other portal can be called.
type noWay struct{}

// Way always returns an Unavailable fault.
func (noWay) Way(context.Context, string) (string, error) {
	return "", fault.New(fault.Unavailable, "This portal is in no network.")
}

// Vanish makes the portal end without a farewell message in the gossip pool, as if it had been killed.
// It is for the demo's drills.
func (p *Portal) Vanish() {
	if p.node != nil && p.node.Gossip != nil {
		p.node.Gossip.Vanish()
	}
}

// notifyOperators stores a notice about another portal for every operator and queues it for mailing.
// Failures are only logged.
func (p *Portal) notifyOperators(ctx context.Context, n federation.Notice) {
	operators, err := p.db.Hub.Operators(ctx)
	if err != nil {
		p.log.Warn("list operators", "error", err)
		return
	}
	note := hub.Notice{Kind: hub.NoticePeer, Subject: n.Subject, Text: n.Text, Href: n.Href, CreatedAt: clock.Now()}
	for _, id := range operators {
		note.ID, note.AccountID = ident.NewID(), id
		if err := p.db.Hub.AddNotice(ctx, note); err != nil {
			p.log.Warn("store a notice", "account", id, "kind", note.Kind, "error", err)
		}
	}
	p.notifier.QueueNotice(note, operators)
}

// publications returns the publication states of this portal's agents, or nil without a network.
func (p *Portal) publications() api.Publications {
	if p.node == nil {
		return nil
	}
	return p.node.Publisher
}

// newKeyring returns the key operations for the command line, or nil without a network.
func (p *Portal) newKeyring() *control.Keyring {
	if p.node == nil {
		return nil
	}
	return control.NewKeyring(p.set.Config, p.node.Self, p.operational)
}
