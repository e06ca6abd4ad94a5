package peering

import (
	"cmp"
	"context"
	"net/netip"

	"agentsite/internal/egress"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
	"agentsite/internal/weborigin"
	"agentsite/peering/answer"
	"agentsite/peering/catalog"
	"agentsite/peering/client"
	"agentsite/peering/live"
	"agentsite/peering/overlay"
	"agentsite/peering/publish"
	"agentsite/peering/replication"
	"agentsite/peering/search"
)

// openPeers opens the identity of this portal and the registry, which decides about other portals.
func (n *Node) openPeers(ctx context.Context) (err error) {
	replica, log := n.ports.Replica, n.ports.Log
	if n.Gate, err = record.NewGate(n.cfg.Network, replica); err != nil {
		return err
	}
	was, err := n.lastTier(ctx)
	if err != nil {
		return err
	}
	n.Tiers = federation.NewTiers(federation.TiersConfig{Want: n.cfg.Tier, Was: was, Log: log,
		Known: func(ctx context.Context) (int, int64, error) {
			_, held, err := replica.Holding(ctx, "")
			if err != nil {
				return 0, 0, err
			}
			agents, bytes := n.Peers.Known(held)
			return agents, bytes, nil
		},
		Announce: func(ctx context.Context) error { return n.Self.Renew(ctx) }})
	n.Peers, err = federation.NewPeers(ctx, n.ports.Peers, federation.PeersConfig{
		Signer: signer{n}, Replica: replica, Gate: n.Gate, Caller: signer{n},
		Summing:   func() bool { return n.Tiers.Tier() == record.TierSummary },
		Elsewhere: func() (federation.Elsewhere, bool) { return n.Self.Elsewhere() },
		DHT:       func() federation.DHT { return n.Overlay },
		Gossip: func() federation.Gossip {
			if n.Gossip == nil {
				return nil
			}
			return n.Gossip
		},
		Greet: func(ctx context.Context, origin string) (record.PortalID, error) { return n.Client.Greet(ctx, origin) },
		Join: func(ctx context.Context, origins []string) (record.PortalID, error) {
			return n.Client.Join(ctx, origins)
		},
		Drop: func(ctx context.Context, portal record.PortalID) error { return n.Syncer.Drop(ctx, portal) },
		Name: n.cfg.Name, Live: n.cfg.Live, Agents: n.ports.Agents.Own,
		Tell: n.ports.NotifyOperators, Most: n.cfg.MaxPeers, Log: log,
	})
	if err != nil {
		return err
	}
	n.Self, err = federation.NewSelf(ctx, federation.SelfConfig{Network: n.cfg.Network, Origin: n.cfg.URL,
		Name: n.cfg.Name, Live: n.cfg.Live, Policy: n.Peers.Mode, Tier: n.Tiers.Tier,
		Root: n.ports.Keys.Portal, Public: n.ports.Keys.Public(), Keys: n.ports.Operational, Cards: n.ports.Cards,
		Gate: n.Gate, Replica: replica, Log: log})
	return err
}

// lastTier returns the tier that this portal last announced in its card, "" if it has no readable card.
func (n *Node) lastTier(ctx context.Context) (string, error) {
	wire, err := n.ports.Replica.Card(ctx, n.ID)
	if err != nil {
		return "", err
	}
	if r, err := record.Open(n.cfg.Network, wire); err == nil {
		if card, ok := r.Body.(*record.Card); ok {
			return card.Tier, nil
		}
	}
	return "", nil
}

// openClient opens the client for other portals, and the guard that verifies their requests. openPeers must
// have run before.
func (n *Node) openClient(ctx context.Context) (err error) {
	allow := n.cfg.Allow
	out := egress.Config{AllowCIDR: allow, Deny: n.Peers.DecideAddr, UserAgent: n.cfg.UserAgent, HTTP2: true,
		Encoded: true, PerHost: 32, MaxIdle: cmp.Or(n.cfg.PeerIdle, peerIdle),
		FirstByte: peerFirstByte, Total: peerTotal, MaxBody: peerBody}
	// The traffic of this client needs no secrecy: records, routing tables and gossip are public, and
	// search terms go to many portals anyway. Public makes handshakes smaller. Conversations use n.stream.
	out.Public, out.KeepIdle = true, peerKeep
	n.ask = egress.New(out)
	out.Public, out.KeepIdle = false, 0
	out.PerHost, out.FirstByte, out.Total, out.MaxBody = n.cfg.CallsPerHost, 0, 0, 0
	n.stream = egress.New(out)
	n.Client = client.New(client.Config{Self: n.Self, Gate: n.Gate, Replica: n.ports.Replica, Registry: n.Peers,
		RoundTripper: n.ask.RoundTripper(),
		Stream:       n.stream.Patient(n.cfg.FirstByte), Listener: n, Log: n.ports.Log})
	n.Guard, err = guard.New(ctx, guard.Config{Self: n.Self, Gate: n.Gate, Registry: n.Peers, Nonces: n.ports.Nonces,
		Prover: n.Client, Shun: n.ports.Shun, Started: n.cfg.Started, Log: n.ports.Log})
	n.handshaker = client.NewHandshaker(n.Client, n.Self, n.Peers, n.cfg.Started)
	return err
}

// openPublisher opens the publisher that signs this portal's agents, and reads the policy for WatchPolicy.
func (n *Node) openPublisher(ctx context.Context) (err error) {
	n.Publisher = publish.New(publish.Config{Source: n.ports.Source, Signer: n.Self, Gate: n.Gate,
		Replica: n.ports.Replica, Policy: n.Peers, Packages: n.ports.Packages, Network: n, Log: n.ports.Log})
	n.policy, err = n.newPolicyWatch(ctx)
	return err
}

// NewestHead implements publish.Network: it asks other portals for a newer head of this portal.
func (n *Node) NewestHead(ctx context.Context) record.Version { return n.Syncer.Newest(ctx) }

// HeadPublished implements publish.Network: it sends hints of a new head of this portal.
func (n *Node) HeadPublished(head []byte) {
	n.Syncer.Published()
	n.Overlay.Changed()
	if n.Gossip == nil {
		return
	}
	if r, err := record.Open(n.cfg.Network, head); err == nil {
		n.Gossip.AdvertiseHead(r.Version())
	}
}

// openCatalog creates the catalog of other portals' agents, the liveness reports that it displays, and the
// summaries for remote search.
func (n *Node) openCatalog(context.Context) error {
	n.Liveness = live.New(live.Config{Signer: n.Self, Gate: n.Gate, Replica: n.ports.Replica, Registry: n.Peers,
		Caller: n.Client, Directory: n, Log: n.ports.Log})
	n.Catalog = catalog.New(catalog.Config{Self: n.ID, Host: n.cfg.Host, Tiers: n.Tiers, Network: n.cfg.Network,
		Replica: n.ports.Replica, Registry: n.Peers,
		Directory: n.ports.Directory, Packages: n.ports.Packages, Verdicts: n.Liveness, Log: n.ports.Log})
	n.summaries = catalog.NewSummaries(n.cfg.Network, n.ports.Replica, n.ports.Log)
	return nil
}

// openReplication opens the Syncer, which keeps the records of other portals and passes them on.
func (n *Node) openReplication(context.Context) (err error) {
	trees := archive.NewTrees(n.ports.Replica)
	n.Syncer, err = replication.New(replication.Config{Self: n.Self, Caller: n.Client, Replica: n.ports.Replica,
		Registry: n.Peers, Trees: trees,
		Directory: n.Catalog, Changes: n.Peers, Tiers: n.Tiers, Summaries: n.summaries, Own: ownRecords{n},
		Log: n.ports.Log})
	n.Archive = archive.New(n.cfg.Network, n.ID, n.ports.Replica, n.Peers, trees)
	return err
}

// ownRecords implements replication.OwnRecords: other portals hold records that this portal signed and does
// not know.
type ownRecords struct{ n *Node }

// SeeCard implements replication.OwnRecords: a newer card than this portal's own shows that the identity is
// in use elsewhere.
func (o ownRecords) SeeCard(wire []byte) { o.n.Self.Saw(wire) }

// SeeHead implements replication.OwnRecords. It begins a new epoch, because other portals hold a head of
// this portal that this portal does not know (it was restored from a backup or runs twice). Records of the
// new epoch are newer than all of the old one.
func (o ownRecords) SeeHead(head record.Version) {
	if n := o.n; n.Publisher.Overtaken(head) {
		n.ports.Log.Warn("others hold a newer head of this portal than it has: its folder is a copy of an older state, or it runs twice; it begins a new count. Stop the other one if there is one",
			"epoch", head.Epoch, "seq", head.Seq)
	}
}

// openOverlay makes the portal a node of the DHT. The functions in the configuration are called only after
// Run has started.
func (n *Node) openOverlay(context.Context) (err error) {
	n.Overlay, err = overlay.New(overlay.Config{
		Self: n.Self, Gate: n.Gate, Caller: n.Client, Registry: n.Peers, Records: n.ports.Replica, Store: n.ports.Replica,
		Where: func(ctx context.Context, portal record.PortalID) string {
			p, _ := n.Peers.Portal(ctx, string(portal))
			return p.URL
		},
		IDOf:      n.agentID,
		Uncounted: func(host string) bool { return uncounted(host, n.cfg.Allow) }, Log: n.ports.Log,
	})
	return err
}

// uncounted reports whether a host is exempt from the limit of DHT nodes per network. Loopback addresses
// and networks that the operator allowed are exempt, because the operator controls them.
func uncounted(host string, allow []netip.Prefix) bool {
	if weborigin.IsLoopback(host) {
		return true
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, p := range allow {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// openSearch opens remote search, and the answers to other portals and to the hub. All other parts must be
// open.
func (n *Node) openSearch(context.Context) error {
	boot := &search.Bootstrapper{Client: n.Client, Registry: n.Peers, Syncer: n.Syncer, Catalog: n.Catalog}
	n.Searcher = search.New(search.Config{Network: n.cfg.Network, Caller: n.Client, Gate: n.Gate,
		Replica: n.ports.Replica, Registry: n.Peers,
		Catalog: n.Catalog, Summaries: n.summaries, Syncer: n.Syncer, DHT: n.Overlay, Bootstrapper: boot,
		Log: n.ports.Log})
	n.Resolver = search.NewResolver(search.ResolverConfig{Host: n.cfg.Host, DHT: n.Overlay, Searcher: n.Searcher,
		Bootstrapper: boot, Log: n.ports.Log})
	n.Network = answer.NewNetwork(answer.NetworkConfig{Self: n.ID, Name: n.cfg.Network, Replica: n.ports.Replica,
		Registry: n.Peers, Catalog: n.Catalog, Searcher: n.Searcher})
	n.Answerer = &answer.Answerer{Self: n.ID, Host: n.cfg.Host, Network: n.cfg.Network, Replica: n.ports.Replica,
		Directory: n.ports.Agents, Publisher: n.Publisher, Tiers: n.Tiers, Archive: n.Archive}
	return nil
}
