package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/bench/authority"
	"agentsite/handlers/peer"
	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/peering/client"
	"agentsite/peering/kademlia"
	"agentsite/peering/overlay"
	"agentsite/store"
	"agentsite/store/replica"
)

// network is portals of one network in this process, built from the product's packages without
// directory and pages.
type network struct {
	dir    string
	idle   int // idle connections that a portal keeps
	ca     *authority.Authority
	nodes  []*portal
	opened atomic.Int64 // connections opened so far
}

const networkName = "bench"

// portal is one node. It implements federation.Signer and federation.Caller itself, because the overlay
// needs them before self and client exist.
type portal struct {
	host, origin string
	addr         string // client address that the other portals see
	id           record.PortalID
	keys         *ident.Keys
	op           *ident.Operational
	db           *store.DB
	replica      *replica.Replica
	gate         *record.Gate
	peers        *federation.Peers
	self         *federation.Self
	ask          *egress.Client
	client       *client.Client
	overlay      *overlay.Overlay
	pool         *pool // nil in a network without gossip
	server       *http.Server
	stop         context.CancelFunc
	run          func(loop func(context.Context) error)
	loops        []func(context.Context) error // background loops that start once all portals exist
	running      sync.WaitGroup
	mute         atomic.Bool
}

var discard = slog.New(slog.DiscardHandler)

// build builds the network and lets all nodes join. more, if not nil, is called for each portal before
// it serves. The caller must call Close.
func (b *bench) build(ctx context.Context, more func(*portal, *peer.Door) error) (_ *network, err error) {
	dir := "/dev/shm" // a folder in memory, because the disk is not measured
	if s, err := os.Stat(dir); err != nil || !s.IsDir() {
		dir = b.Dir
	}
	if dir, err = os.MkdirTemp(dir, "dht-"); err != nil {
		return nil, err
	}
	o := &network{dir: dir, idle: b.idleConnections()}
	defer func() {
		if err != nil {
			o.Close()
		}
	}()
	if o.ca, err = authority.New(); err != nil {
		return nil, err
	}
	listeners := make([]net.Listener, b.portals)
	for i := range b.portals {
		p := &portal{host: fmt.Sprintf("p%d.example", i), addr: fmt.Sprintf("198.18.%d.%d", i>>8, i&255)}
		o.nodes = append(o.nodes, p)
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
		_, port, _ := net.SplitHostPort(listeners[i].Addr().String())
		p.origin = "https://" + p.host + ":" + port
		if err := p.open(ctx, filepath.Join(dir, p.host)); err != nil {
			return nil, err
		}
	}
	for i, p := range o.nodes {
		if err := p.start(ctx, o, listeners[i], more); err != nil {
			return nil, err
		}
	}
	if err := o.meet(ctx); err != nil {
		return nil, err
	}
	for _, p := range o.nodes {
		for _, loop := range append(p.loops, p.overlay.Run) {
			p.run(loop)
		}
	}
	// The nodes join one after the other, as the nodes of a real network do.
	for _, p := range o.nodes {
		p.run(p.watch)
		for known := 0; known < min(20, len(o.nodes)-1) && ctx.Err() == nil; sleep(ctx, 5*time.Millisecond) {
			p.overlay.Runner().ViewNode(func(n *kademlia.Node) { known = n.Known() })
		}
	}
	o.warmUp(ctx)
	return o, ctx.Err()
}

// idleConnections returns the number of idle connections that a portal keeps: as in internal/app, or
// fewer if the system does not allow that many open files.
func (b *bench) idleConnections() int {
	const (
		productIdle = 128
		others      = 60 // files of a node that are no idle connections: databases, a listener, handshakes
	)
	most := (int(b.files)/b.portals - others) / 2
	if most < min(productIdle, b.portals-1) {
		fmt.Fprintf(os.Stderr, "  a portal keeps %d connections and not %d: more files cannot be open\n", most, productIdle)
	}
	return min(productIdle, most)
}

// meet makes each portal known to every other one, with the result of all handshakes, because the 9,900
// pairs would need two requests each.
func (o *network) meet(ctx context.Context) error {
	for _, p := range o.nodes {
		for _, q := range o.nodes {
			if p == q {
				continue
			}
			r, _, err := p.gate.Admit(ctx, q.self.Card(), clock.Now())
			if err != nil {
				return fmt.Errorf("%s meets %s: %w", p.host, q.host, err)
			}
			p.peers.Learned(r.Body.(*record.Card), true)
		}
	}
	return nil
}

// warmUp fills the routing tables: each node looks up six random ids and twice its own.
func (o *network) warmUp(ctx context.Context) {
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for round := range 8 {
		for _, p := range o.nodes {
			target := kademlia.ID(sha256.Sum256(fmt.Appendf(nil, "%s %d", p.host, round)))
			if round%4 == 0 {
				d, _ := p.id.Digest()
				target = kademlia.ID(d)
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				p.overlay.Runner().FindNodes(ctx, target)
			})
		}
		wg.Wait()
	}
}

// open creates the keys and databases of a portal in dir.
func (p *portal) open(ctx context.Context, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if p.keys, err = ident.CreateKeys(dir); err != nil {
		return err
	}
	if p.op, err = ident.OpenOperational(dir, p.keys.Public(), clock.Now()); err != nil {
		return err
	}
	if p.db, err = store.Open(ctx, dir, discard); err != nil {
		return err
	}
	p.id = record.PortalOf(record.Public(p.keys.Public()))
	p.replica, err = replica.Open(ctx, replica.Config{Dir: dir, Own: p.id, Network: networkName, Log: discard})
	return err
}

// start connects the parts of a portal as internal/app does, and serves on l.
func (p *portal) start(ctx context.Context, o *network, l net.Listener, more func(*portal, *peer.Door) error) (err error) {
	if p.gate, err = record.NewGate(networkName, p.replica); err != nil {
		return err
	}
	p.peers, err = federation.NewPeers(ctx, p.db.Peers, federation.PeersConfig{Signer: p, Replica: p.replica, Gate: p.gate, Caller: p,
		Gossip: func() federation.Gossip {
			if p.pool == nil {
				return nil
			}
			return p.pool
		},
		Greet: func(ctx context.Context, origin string) (record.PortalID, error) { return p.client.Greet(ctx, origin) }, Log: discard})
	if err != nil {
		return err
	}
	p.self, err = federation.NewSelf(ctx, federation.SelfConfig{Network: networkName, Origin: p.origin, Name: p.host, Policy: p.peers.Mode,
		Root: p.keys.Portal, Public: p.keys.Public(), Keys: p.op, Cards: p.db.Peers, Gate: p.gate, Replica: p.replica, Log: discard})
	if err != nil {
		return err
	}
	p.ask = egress.New(egress.Config{AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Deny: p.peers.DecideAddr, Resolver: near{}, RootCAs: o.ca.Pool(),
		UserAgent: "agentsite/bench", HTTP2: true, Public: true, Encoded: true, PerHost: 32, MaxIdle: o.idle, KeepIdle: 14 * time.Second, FirstByte: 20 * time.Second, Total: 3 * time.Minute, MaxBody: 8 << 20})
	p.client = client.New(client.Config{Self: p.self, Gate: p.gate, Replica: p.replica, Registry: p.peers,
		RoundTripper: asIf{p.ask.RoundTripper(), p.addr}, Stream: asIf{p.ask.RoundTripper(), p.addr}, Log: discard})
	started := clock.Now()
	guard, err := guard.New(ctx, guard.Config{Self: p.self, Gate: p.gate, Registry: p.peers, Nonces: p.db.Peers, Prover: p.client, Started: started, Log: discard})
	if err != nil {
		return err
	}
	door := peer.New(peer.Config{Self: p.self, Guard: guard, Replica: p.replica, Version: "bench", Log: discard, Peers: p.peers})
	p.overlay, err = overlay.New(overlay.Config{Self: p.self, Gate: p.gate, Caller: p.client, Registry: p.peers, Records: p.replica, Store: p.replica,
		Where: func(ctx context.Context, portal record.PortalID) string {
			q, _ := p.peers.Portal(ctx, string(portal))
			return q.URL
		},
		IDOf:      func(context.Context, string) (string, error) { return "", errors.New("there are no agents") },
		Uncounted: func(host string) bool { a, err := netip.ParseAddr(host); return err == nil && a.IsLoopback() }, Log: discard})
	if err != nil {
		return err
	}
	door.DHT(p.overlay, overlay.Routes())
	if more != nil {
		if err := more(p, door); err != nil {
			return err
		}
	}

	r := chi.NewRouter()
	r.Use(middleware.GetHead, middleware.ClientIPFromXFF("127.0.0.0/8"))
	door.Routes(r)
	cert, err := o.ca.Certificate(p.host)
	if err != nil {
		return err
	}
	// The limits are those of web.Serve, which itself leaves TLS to a proxy in front of the portal.
	p.server = &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: log.New(nothing{}, "", 0), ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				o.opened.Add(1)
			}
		}}
	var running context.Context
	running, p.stop = context.WithCancel(context.Background())
	tl := tls.NewListener(muteListener{l, &p.mute}, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}})
	p.running.Go(func() { p.server.Serve(tl) })
	p.run = func(loop func(context.Context) error) { p.running.Go(func() { loop(running) }) }
	p.loops = []func(context.Context) error{p.self.Run, guard.Run, client.NewHandshaker(p.client, p.self, p.peers, started).Run, p.peers.Run}
	return nil
}

// watch adds portals to the DHT when the policy allows them, until ctx ends.
func (p *portal) watch(ctx context.Context) error {
	heard := make(map[record.PortalID]bool)
	for {
		changed := p.peers.Changed()
		for _, q := range p.peers.Portals(ctx) {
			if !heard[q.ID] && p.peers.Decide(ctx, q.ID, q.URL).In {
				p.overlay.Hear(q.ID)
				heard[q.ID] = true
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// ID, Network, Origin, Card and Key implement federation.Signer.
func (p *portal) ID() record.PortalID { return p.id }
func (p *portal) Network() string     { return networkName }
func (p *portal) Origin() string      { return p.origin }
func (p *portal) Card() []byte        { return p.self.Card() }
func (p *portal) Key(now time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return p.self.Key(now)
}

// Do implements federation.Caller.
func (p *portal) Do(ctx context.Context, origin string, to record.PortalID, method, path string, body []byte, limit int64) (*federation.Answer, error) {
	return p.client.Do(ctx, origin, to, method, path, body, limit)
}

func keyOf(key int) kademlia.ID { return kademlia.ID(record.AgentKey(fmt.Sprintf("agent-%d", key))) }

// sign returns the signed record that says that the portal provides an agent.
func (p *portal) sign(key int) (kademlia.Record, error) {
	now := clock.Now()
	_, private, until, err := p.self.Key(now)
	if err != nil {
		return kademlia.Record{}, err
	}
	ms, id := now.UnixMilli(), keyOf(key)
	r, err := record.Sign(networkName, &record.Provider{Kind: record.ProvidesAgent, Key: record.Hash(id), HeadSeq: 1, Count: 1,
		Header: record.Header{Portal: p.id, Epoch: 1, Seq: ms, Issued: ms, Expires: min(now.Add(36*time.Hour).UnixMilli(), until.UnixMilli())}}, private)
	if err != nil {
		return kademlia.Record{}, err
	}
	return kademlia.Record{Key: id, Value: slices.Concat(p.self.Card(), []byte{'\n'}, r.Wire)}, nil
}

func (o *network) Put(ctx context.Context, node, key int) error {
	p := o.nodes[node]
	rec, err := p.sign(key)
	if err != nil {
		return err
	}
	n, err := p.overlay.Runner().Put(ctx, rec)
	if err == nil && n < 15 && n < len(o.nodes)-1 {
		return fmt.Errorf("it is at %d nodes only", n)
	}
	return err
}

// Get looks up the values of a key from a node: the first one with holders 1, all with holders 0. It
// returns an error if there is none.
func (o *network) Get(ctx context.Context, node, key, holders int) error {
	values, _, err := o.nodes[node].overlay.Runner().Get(ctx, keyOf(key), holders)
	if err == nil && len(values) == 0 {
		return errors.New("no node gives a value")
	}
	return err
}

// Sent returns the number of DHT requests of all nodes so far.
func (o *network) Sent() (n int64) {
	for _, p := range o.nodes {
		p.overlay.Runner().ViewNode(func(k *kademlia.Node) { n += k.Tally().Sent })
	}
	return n
}

// Close ends all portals and removes their files. It works on a network that was built in part.
func (o *network) Close() {
	var wg sync.WaitGroup
	for _, p := range o.nodes {
		if p.stop != nil {
			wg.Go(p.end)
		}
	}
	wg.Wait()
	for _, p := range o.nodes {
		if p.replica != nil {
			p.replica.Close()
		}
		if p.db != nil {
			p.db.Close()
		}
	}
	os.RemoveAll(o.dir)
}

func (p *portal) end() {
	p.server.Close()
	p.stop()
	p.running.Wait()
	p.ask.CloseIdle()
}
