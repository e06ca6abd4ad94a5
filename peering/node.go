package peering

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

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
	// URL is the portal's address, Host the host in it, Name its display name.
	URL, Host, Name string
	// Tier is how much is kept of other portals; empty to choose by their number.
	Tier string
	// Join are the origins of portals to begin with.
	Join []string
	// Gossip is true for a portal that gossips: over UDP and TCP at GossipListen,
	// or by signed requests when that is empty.
	Gossip       bool
	GossipListen string
	// Allow are private addresses that may be called.
	Allow []netip.Prefix
	// UserAgent stands in requests.
	UserAgent string
	// MaxPeers bounds the portals that are known, PeerIdle the connections that
	// are kept; 0 for the default.
	MaxPeers, PeerIdle int
	// FirstByte is how long an agent elsewhere may take to begin its answer.
	FirstByte time.Duration
	// CallsPerHost bounds the calls of agents at one host.
	CallsPerHost int
	// Started is when the portal started.
	Started time.Time
}

// Agents is the directory of this portal: hub.Service. It is asked only after
// the portal was built, because the directory itself asks the Node.
type Agents interface {
	Own() int
	Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error)
	Anywhere(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error)
}

// Replica is the database of signed records.
type Replica interface {
	federation.Replica
	federation.DHTStore
	Sweep(ctx context.Context, now time.Time) error
	Fatal() <-chan struct{}
	Err() error
}

// Ports are the interfaces that a Node uses. Every field is required.
type Ports struct {
	Keys        *ident.Keys
	Operational *ident.Operational
	Replica     Replica
	Peers       federation.PeerStore
	Nonces      guard.NonceStore
	Cards       federation.Cards
	Source      publish.Source
	// Directory is where agents of other portals are shown.
	Directory catalog.Directory
	Agents    Agents
	// NotifyOperators leaves a notice with every operator.
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
	Catalog   *catalog.Catalog // of other portals' agents
	Syncer    *replication.Syncer
	Archive   *archive.Archive
	Overlay   *overlay.Overlay // this portal in the DHT
	Gossip    *Gossip          // nil for a portal that does not gossip
	Liveness  *live.Service    // reports of portals about agents
	Searcher  *search.Searcher
	Resolver  *search.Resolver
	Network   *answer.Network  // answers the hub about remote agents
	Answerer  *answer.Answerer // answers other portals

	cfg        Config
	ports      Ports
	ask        *egress.Client // for answers that are read whole
	stream     *egress.Client // for calls of agents
	handshaker *client.Handshaker
	summaries  *catalog.Summaries
	policy     *policyWatch
	calls      *prometheus.CounterVec // of agents of other portals, by outcome
}

// Open builds a Node. Functions that refer to a part built later are called only after Run or a
// request of another portal has started.
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

// Run takes part in the network until ctx ends. The portal's agents are published once filled is
// closed: the first round signs all of them when the address of the portal is new, which would
// double the time until a search finds all agents. Their liveness is listed then too.
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

// CloseIdle closes connections that are not in use.
func (n *Node) CloseIdle() {
	n.ask.CloseIdle()
	n.stream.CloseIdle()
}

const (
	// peerFirstByte is how long another portal may take to begin an answer.
	peerFirstByte = 20 * time.Second
	peerTotal     = 3 * time.Minute
	// peerBody bounds an answer, before the smaller bound of whoever asks.
	peerBody = 8 << 20
	// peerIdle is how many unused connections to other portals are kept. A warm
	// one saves a handshake, of 1.2 ms at both ends together, and costs 50 KB; the
	// DHT's table of a hundred portals has some 65 nodes.
	peerIdle = 128
	// peerKeep is for how long. Portals with nothing to do come to each other again
	// after minutes; keeping connections alive for so long costs more than a new one.
	// After 15 s both ends would ask each other whether they are there.
	peerKeep = 14 * time.Second
)

// signer is the Node as federation.Signer and federation.Caller for parts that
// are built before Self and Client.
type signer struct{ n *Node }

// ID implements federation.Signer.
func (s signer) ID() record.PortalID { return s.n.ID }

// Network implements federation.Signer.
func (s signer) Network() string { return s.n.cfg.Network }

// Origin implements federation.Signer.
func (s signer) Origin() string { return s.n.cfg.URL }

// Card implements federation.Signer.
func (s signer) Card() []byte { return s.n.Self.Card() }

// Key implements federation.Signer.
func (s signer) Key(now time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return s.n.Self.Key(now)
}

// Do implements federation.Caller.
func (s signer) Do(ctx context.Context, origin string, portal record.PortalID, method, path string, body []byte,
	limit int64) (*federation.Answer, error) {
	return s.n.Client.Do(ctx, origin, portal, method, path, body, limit)
}
