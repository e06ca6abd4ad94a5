package app

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/peer"
	"agentsite/internal/egress"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/federation/guard"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/peering/answer"
	"agentsite/peering/catalog"
	"agentsite/peering/client"
	"agentsite/peering/overlay"
	"agentsite/peering/replication"
	"agentsite/peering/search"
)

// federated is what makes the portal one of a network. Its nil is that of a
// portal that keeps to itself.
type federated struct {
	p       *Portal
	id      record.PortalID
	gate    *record.Gate
	peers   *federation.Peers
	self    *federation.Self
	client  *client.Client
	guard   *guard.Guard
	greeter *client.Handshaker
	door    *peer.Door
	catalog *catalog.Catalog // of other portals' agents
	syncer  *replication.Syncer
	ask     *egress.Client // for answers that are read whole
	stream  *egress.Client // for calls of agents
	tiers   *federation.Tiers
	archive *archive.Archive
	// summaries are what portals say of themselves in short.
	summaries *catalog.Summaries
	live      *livePart
	// searcher asks portals that are not wholly held; calls counts those of
	// agents elsewhere.
	searcher *search.Searcher
	seeks    *search.Resolver
	answers  *answer.Network
	stranger *search.Bootstrapper
	calls    wentOut
	overlay  *overlay.Overlay // this portal in the DHT
	gossip   *gossipPart      // nil with --gossip off
	run      []func(ctx context.Context) error
	// led, when set, is told of each new head of this portal; it must not block.
	led func(head []byte)
}

// loops are what runs while the portal does.
func (f *federated) loops() []func(context.Context) error {
	if f == nil {
		return nil
	}
	return f.run
}

// routes declares what other portals ask.
func (f *federated) routes(r chi.Router) {
	if f != nil {
		f.door.Routes(r)
	}
}

// keyring is what the command line may change of the portal's keys.
func (f *federated) keyring() *keyring {
	if f == nil {
		return nil
	}
	return &keyring{dir: f.p.set.Data, self: f.self, keys: f.p.operational}
}

// clients are those whose connections end with the portal.
func (f *federated) clients() []*egress.Client {
	if f == nil {
		return nil
	}
	return []*egress.Client{f.ask, f.stream}
}

const (
	// peerFirstByte is how long another portal may take to begin an answer.
	peerFirstByte = 20 * time.Second
	peerTotal     = 3 * time.Minute
	// peerBody bounds an answer, before the smaller bound of whoever asks.
	peerBody = 8 << 20
	// peerIdle is how many connections to other portals are kept that nobody
	// uses now. A warm one saves a handshake, of 1.2 ms at both ends together,
	// and costs 50 KB; the DHT's table of a hundred portals has some 65 nodes.
	peerIdle = 128
	// peerKeep is for how long. Portals with nothing to do come to each other again
	// after minutes; keeping connections alive for so long costs more than a new one.
	// After 15 s both ends would ask each other whether they are there.
	peerKeep = 14 * time.Second
)

// federate makes the portal one of its network, if it is of one. It comes before
// the hub, which shows agents of others.
func (p *Portal) federate(ctx context.Context, keys *ident.Keys, allow []netip.Prefix, shelf catalog.Directory) error {
	if p.set.network == "" {
		return p.openPeers(ctx, federation.PeersConfig{})
	}
	if !record.ValidOrigin(p.url.String()) {
		p.log.Warn("this portal is in no network: others are called by https:// alone, and so must it be", "url", p.url.String())
		return p.openPeers(ctx, federation.PeersConfig{})
	}
	f := &federated{p: p, id: record.PortalOf(record.Public(keys.Public()))}
	if err := p.openReplica(ctx, f.id, p.set.network); err != nil {
		return err
	}
	var err error
	if f.gate, err = record.NewGate(p.set.network, p.replica); err != nil {
		return err
	}
	if err := f.tier(ctx); err != nil {
		return err
	}
	// Who is met is asked by f, which is whole when anybody asks.
	err = p.openPeers(ctx, federation.PeersConfig{Signer: f, Replica: p.replica, Gate: f.gate, Caller: f, Summing: f.summing,
		Elsewhere: func() (federation.Elsewhere, bool) { return f.self.Elsewhere() },
		DHT: func() federation.DHT {
			if f.overlay == nil {
				return nil
			}
			return f.overlay
		},
		Gossip: func() federation.Gossip {
			if f.gossip == nil {
				return nil
			}
			return f.gossip
		},
		Greet: func(ctx context.Context, origin string) (record.PortalID, error) { return f.client.Greet(ctx, origin) },
		Drop:  func(ctx context.Context, portal record.PortalID) error { return f.syncer.Drop(ctx, portal) }})
	if err != nil {
		return err
	}
	f.peers = p.peers
	f.self, err = federation.NewSelf(ctx, federation.SelfConfig{Network: p.set.network, Origin: p.url.String(), Name: p.name, Policy: f.peers.Mode, Tier: f.tiers.Tier,
		Root: keys.Portal, Public: keys.Public(), Keys: p.operational, Cards: p.db, Gate: f.gate, Replica: p.replica, Log: p.log})
	if err != nil {
		return err
	}
	out := egress.Config{AllowCIDR: allow, Deny: f.peers.DecideAddr, UserAgent: "agentsite/" + Release(), HTTP2: true, Encoded: true, PerHost: 32, MaxIdle: cmp.Or(p.set.PeerIdle, peerIdle),
		FirstByte: peerFirstByte, Total: peerTotal, MaxBody: peerBody}
	// Records, tables and gossip are for everybody to read, and what is searched
	// for is told to many portals anyway; conversations travel by stream.
	out.Public, out.KeepIdle = true, peerKeep
	f.ask = egress.New(out)
	out.Public, out.KeepIdle = false, 0
	out.PerHost, out.FirstByte, out.Total, out.MaxBody = callsPerHost, 0, 0, 0
	f.stream = egress.New(out)
	f.client = client.New(client.Config{Self: f.self, Gate: f.gate, Replica: p.replica, Registry: f.peers,
		RoundTripper: f.ask.RoundTripper(), Stream: f.stream.Patient(modelFirstByte), OnHandshake: f.welcomed, Log: p.log})
	f.guard, err = guard.New(ctx, guard.Config{Self: f.self, Gate: f.gate, Registry: f.peers, Nonces: p.db,
		Prover: f.client, Shun: p.shun, Started: p.started, Log: p.log})
	if err != nil {
		return err
	}
	f.greeter = client.NewHandshaker(f.client, f.self, f.peers, p.started)
	f.door = peer.New(peer.Config{Self: f.self, Guard: f.guard, Replica: p.replica, Version: Version(), Log: p.log, Tier: f.tiers.Tier,
		Greeted: f.greeted, Counts: func(context.Context) (portals, agents int) { return f.peers.Counts() }})
	f.run = append(f.run, f.self.Run, f.guard.Run, f.greeter.Run, p.sweepReplica)
	if err := f.publish(ctx); err != nil {
		return err
	}
	for _, origin := range p.set.join {
		f.peers.Heard(origin, "")
	}
	f.find(shelf)
	if err := f.follow(); err != nil {
		return err
	}
	if err := f.distribute(allow); err != nil {
		return err
	}
	if err := f.gossips(); err != nil {
		return err
	}
	f.search()
	f.answer()
	f.telling()
	p.federated = f
	return nil
}

// ID implements federation.Signer, for what is there before Self.
func (f *federated) ID() record.PortalID { return f.id }

// Network implements federation.Signer.
func (f *federated) Network() string { return f.p.set.network }

// Origin implements federation.Signer.
func (f *federated) Origin() string { return f.p.url.String() }

// Card implements federation.Signer.
func (f *federated) Card() []byte { return f.self.Card() }

// Key implements federation.Signer.
func (f *federated) Key(now time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return f.self.Key(now)
}

// Do implements federation.Caller.
func (f *federated) Do(ctx context.Context, origin string, portal record.PortalID, method, path string, body []byte, limit int64) (*federation.Answer, error) {
	return f.client.Do(ctx, origin, portal, method, path, body, limit)
}
