package peering

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"agentsite/internal/adjust"
	"agentsite/internal/egress"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/federation/guard"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/meter"
	"agentsite/internal/record"
	"agentsite/peering/answer"
	"agentsite/peering/catalog"
	"agentsite/peering/client"
	"agentsite/peering/live"
	"agentsite/peering/overlay"
	"agentsite/peering/publish"
	"agentsite/peering/replication"
	"agentsite/peering/search"
)

// Config is the operator's configuration of a portal's part in its network.
type Config struct {
	Network string
	// URL is the portal's address, Host the host in it, Name its display name unless Live has one.
	URL, Host, Name string
	Live            *adjust.Snapshot
	// Tier is how much is kept of other portals, one of the record.Tier constants; empty to choose it by the
	// number of their agents.
	Tier string
	// Join are the origins of portals to contact first, when no others are known yet.
	Join []string
	// Gossip turns gossip on: over UDP and TCP at the address GossipListen, or inside signed HTTP requests
	// when GossipListen is empty.
	Gossip       bool
	GossipListen string
	// Allow are private networks to which requests may go in spite of the protection against SSRF.
	Allow []netip.Prefix
	// UserAgent is the User-Agent header of requests to other portals.
	UserAgent string
	// MaxPeers bounds the portals in the registry, PeerIdle the idle connections to other portals; 0
	// selects the default.
	MaxPeers, PeerIdle int
	// FirstByte is how long an agent of another portal may take until the first byte of its answer.
	FirstByte time.Duration
	// CallsPerHost bounds concurrent calls of agents at one host.
	CallsPerHost int
	// Started is when this process started, see guard.Config.
	Started time.Time
}

// Agents is the directory of this portal, implemented by hub.Service. Open must not call it, because the
// directory is built with the Node and completed after it.
type Agents interface {
	Own() int
	Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error)
	Anywhere(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error)
}

// Replica is the database of signed records. After Fatal is closed it accepts no writes; Err then gives the
// reason.
type Replica interface {
	federation.Replica
	federation.DHTStore
	Sweep(ctx context.Context, now time.Time) error
	Fatal() <-chan struct{}
	Err() error
}

// Packages are the packages of this portal, which are published, and those of others. packages.Service implements it.
type Packages interface {
	publish.Packages
	catalog.Packages
}

// Ports are the parts of the program that a Node uses. Every field is required.
type Ports struct {
	Keys        *ident.Keys
	Operational *ident.Operational
	Replica     Replica
	Peers       federation.PeerStore
	Nonces      guard.NonceStore
	Cards       federation.Cards
	Source      publish.Source
	Packages    Packages
	// Directory receives the agents of other portals for display and search.
	Directory catalog.Directory
	Agents    Agents
	// NotifyOperators sends a notification to every operator of this portal.
	NotifyOperators func(ctx context.Context, n federation.Notice)
	Shun            *limit.PenaltyBox
	Log             *slog.Logger
}

// Node is this portal in its network. Create it with Open, which builds all its
// parts in the order of their needs, and keep Run running. The exported parts do
// not change.
type Node struct {
	ID        record.PortalID
	Gate      *record.Gate
	Peers     *federation.Peers
	Self      *federation.Self
	Guard     *guard.Guard
	Client    *client.Client
	Tiers     *federation.Tiers
	Publisher *publish.Publisher
	Catalog   *catalog.Catalog // agents of other portals
	Syncer    *replication.Syncer
	Archive   *archive.Archive
	Overlay   *overlay.Overlay // membership in the DHT
	Gossip    *Gossip          // nil if gossip is off
	Liveness  *live.Service    // liveness reports of all portals
	Searcher  *search.Searcher
	Resolver  *search.Resolver
	Network   *answer.Network  // answers the hub's queries about remote agents
	Answerer  *answer.Answerer // answers queries of other portals

	cfg        Config
	ports      Ports
	ask        *egress.Client // requests to portals; reads answers into memory
	stream     *egress.Client // calls of agents; streams their answers
	handshaker *client.Handshaker
	summaries  *catalog.Summaries
	policy     *policyWatch
	calls      *prometheus.CounterVec // calls of other portals' agents by outcome
}

// Open builds all parts of a Node, in the order in which they need each other. Functions that an earlier
// part is given may read a part of n that is built later, so no part calls them before Run or the first
// request of another portal.
func Open(ctx context.Context, cfg Config, ports Ports) (*Node, error) {
	n := &Node{cfg: cfg, ports: ports, calls: meter.NewCounters("agentsite_calls_out_total",
		"Calls of agents of other portals, by whether they were reached.", "outcome", "reached", "unreachable"), ID: record.PortalOf(record.Public(ports.Keys.Public()))}
	for _, open := range []func(context.Context) error{
		n.openPeers, n.openClient, n.openPublisher, n.openCatalog, n.openReplication, n.openOverlay, n.openGossip,
		n.openSearch,
	} {
		if err := open(ctx); err != nil {
			return nil, err
		}
	}
	for _, origin := range cfg.Join {
		n.Peers.Heard(origin, "")
	}
	return n, nil
}

// Run takes part in the network until ctx ends. filled must be closed when the local search index is
// complete: only then are the portal's agents published and their liveness listed. The first round signs
// all agents if the portal's address is new, which would double the time until a search finds all agents.
func (n *Node) Run(ctx context.Context, filled <-chan struct{}) error {
	group, ctx := errgroup.WithContext(ctx)
	observe := func(ctx context.Context) error { return n.Liveness.Run(ctx, filled) }
	publish := func(ctx context.Context) error {
		select {
		case <-filled:
			return n.Publisher.Run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
	loops := []func(context.Context) error{
		n.Peers.Run, n.Tiers.Run, n.Self.Run, n.Guard.Run, n.handshaker.Run, n.sweepReplica, publish,
		n.WatchPolicy,
		n.Catalog.Run, n.summaries.Run, n.Syncer.Run, n.Overlay.Run, n.watchNodes, n.Searcher.Run, observe,
	}
	if n.Gossip != nil {
		loops = append(loops, n.Gossip.Run, n.Gossip.watchPeers)
	}
	for _, loop := range loops {
		group.Go(func() error { return loop(ctx) })
	}
	return group.Wait()
}

// CloseIdle closes the idle connections to other portals. It is called when the program ends, after Run.
func (n *Node) CloseIdle() {
	n.ask.CloseIdle()
	n.stream.CloseIdle()
}

const (
	// peerFirstByte is how long another portal may take until the first byte of an answer, peerTotal until
	// the last.
	peerFirstByte = 20 * time.Second
	peerTotal     = 3 * time.Minute
	// peerBody bounds an answer in bytes. Callers may set a smaller limit for each request.
	peerBody = 8 << 20
	// peerIdle is how many idle connections to other portals are kept. Reusing one saves a TLS handshake
	// (1.2 ms of CPU at both ends together) and costs 50 KB of memory. In a network of a hundred portals
	// the DHT's routing table has about 65 nodes.
	peerIdle = 128
	// peerKeep is how long an idle connection is kept. Portals without traffic contact each other only
	// every few minutes; keeping a connection open for so long costs more than a new one. The value is just
	// below 15 s, after which both ends would send keep-alive probes.
	peerKeep = 14 * time.Second
)

// signer is the Node as federation.Signer and federation.Caller, for parts that are built before Node.Self
// and Node.Client. Its methods must not be called before those two are set.
type signer struct{ n *Node }

// ID implements federation.Signer; it is valid from the start of Open.
func (s signer) ID() record.PortalID { return s.n.ID }

// Network implements federation.Signer by the configured network name.
func (s signer) Network() string { return s.n.cfg.Network }

// Origin implements federation.Signer by the configured URL.
func (s signer) Origin() string { return s.n.cfg.URL }

// Card implements federation.Signer. Node.Self must be set.
func (s signer) Card() []byte { return s.n.Self.Card() }

// Key implements federation.Signer. Node.Self must be set.
func (s signer) Key(now time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return s.n.Self.Key(now)
}

// Do implements federation.Caller. Node.Client must be set.
func (s signer) Do(ctx context.Context, origin string, portal record.PortalID, method, path string, body []byte,
	limit int64) (*federation.Answer, error) {
	return s.n.Client.Do(ctx, origin, portal, method, path, body, limit)
}
