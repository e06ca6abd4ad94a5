package main

import (
	"context"
	"crypto/ed25519"
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
	"agentsite/internal/ident"
	"agentsite/internal/meter"
	"agentsite/internal/record"
	"agentsite/peering"
	"agentsite/peering/kademlia"
	"agentsite/peering/overlay"
	"agentsite/store"
)

// ours is portals of one network, of the product's own parts. What a portal has
// besides, such as its directory and its pages, is left out.
type ours struct {
	dir  string
	idle int // connections that a portal keeps
	ca   *authority.Authority
	// more adds to each portal before its door opens; nil for nothing.
	more func(*portal, *peer.Door) error
	// joining is when the DHT began.
	joining time.Time
	nodes   []*portal
	base    Memory
	value   atomic.Int64
	ends    atomic.Int64
	opened  atomic.Int64 // connections, ever
	asked   meter.Kinds  // requests by path
}

const ourNetwork = "bench"

// portal is one of them. It is federation's Signer and Caller before there is
// a Self and a Client, as the portal's own federated is.
type portal struct {
	host, origin string
	addr         string // as which the others see it
	id           record.PortalID
	keys         *ident.Keys
	op           *ident.Operational
	db           *store.DB
	replica      *store.Replica
	gate         *record.Gate
	peers        *federation.Peers
	self         *federation.Self
	ask          *egress.Client
	client       *peering.Client
	overlay      *overlay.Overlay
	pool         *pool // nil without gossip
	server       *http.Server
	stop         context.CancelFunc
	run          func(loop func(context.Context) error)
	loops        []func(context.Context) error // that are to run
	running      sync.WaitGroup
	mute         atomic.Bool
	dead         atomic.Bool
}

var discard = slog.New(slog.DiscardHandler)

func newOurs(ctx context.Context, cfg Config) (network, error) { return buildOurs(ctx, cfg, nil) }

// buildOurs builds the network; more, when set, adds to each portal before its
// door opens.
func buildOurs(ctx context.Context, cfg Config, more func(*portal, *peer.Door) error) (*ours, error) {
	dir, err := os.MkdirTemp(cfg.Temp, "peers")
	if err != nil {
		return nil, err
	}
	o := &ours{dir: dir, idle: idleConnections(cfg.Nodes), more: more}
	if o.ca, err = authority.New(); err != nil {
		return nil, err
	}
	listeners := make([]net.Listener, cfg.Nodes)
	for i := range cfg.Nodes {
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
		if err := p.start(ctx, o, listeners[i]); err != nil {
			return nil, err
		}
	}
	if err := o.meet(ctx); err != nil {
		return nil, err
	}
	// What portals have that know each other, without a DHT.
	o.base = memory()
	o.joining = time.Now()
	for _, p := range o.nodes {
		for _, loop := range append(p.loops, p.overlay.Run) {
			p.run(loop)
		}
	}
	// One after the other: a network does not start in one moment.
	for _, p := range o.nodes {
		p.run(p.watch)
		for known := 0; known < min(20, len(o.nodes)-1) && ctx.Err() == nil; settle(ctx, 5*time.Millisecond) {
			p.overlay.Runner().Look(func(n *kademlia.Node) { known = n.Known() })
		}
	}
	o.warmUp(ctx, cfg)
	return o, ctx.Err()
}

// idleConnections is how many connections a portal keeps that nobody uses: as
// internal/app has it, or fewer where the system does not allow so many files.
func idleConnections(nodes int) int {
	const (
		productIdle = 128
		others      = 60 // files of a node: databases, a listener, handshakes
	)
	most := (int(maxFiles())/nodes - others) / 2
	if most < min(productIdle, nodes-1) {
		fmt.Fprintf(os.Stderr, "  a portal keeps %d connections and not %d: more files cannot be open\n", most, productIdle)
	}
	return min(productIdle, most)
}

// meet has each portal know each, with or without a DHT: what is left when all
// have said hello to all, without the 9,900 times two requests of a hundred.
func (o *ours) meet(ctx context.Context) error {
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

// warmUp looks for random places and each node's own, as is done for all.
func (o *ours) warmUp(ctx context.Context, cfg Config) {
	rounds(cfg.Nodes, func(i int, target [32]byte) {
		o.nodes[i].overlay.Runner().Find(ctx, target)
	}, func(i int) {
		d, _ := o.nodes[i].id.Digest()
		o.nodes[i].overlay.Runner().Find(ctx, kademlia.ID(d))
	})
}

// open opens what a portal has on disk.
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
	p.replica, err = store.OpenReplica(ctx, dir, p.id, ourNetwork, discard)
	return err
}

// start makes the portal one of its network, as internal/app does.
func (p *portal) start(ctx context.Context, o *ours, l net.Listener) (err error) {
	if p.gate, err = record.NewGate(ourNetwork, p.replica); err != nil {
		return err
	}
	p.peers, err = federation.NewPeers(ctx, p.db, federation.PeersConfig{Signer: p, Replica: p.replica, Gate: p.gate, Caller: p,
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
	p.self, err = federation.NewSelf(ctx, federation.SelfConfig{Network: ourNetwork, Origin: p.origin, Name: p.host, Policy: p.peers.Mode,
		Root: p.keys.Portal, Public: p.keys.Public(), Keys: p.op, Cards: p.db, Gate: p.gate, Replica: p.replica, Log: discard})
	if err != nil {
		return err
	}
	p.ask = egress.New(egress.Config{AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Deny: p.peers.DecideAddr, Resolver: near{}, RootCAs: o.ca.Pool(),
		UserAgent: "agentsite/bench", HTTP2: true, Public: true, Encoded: true, PerHost: 32, MaxIdle: o.idle, KeepIdle: 14 * time.Second, FirstByte: 20 * time.Second, Total: 3 * time.Minute, MaxBody: 8 << 20})
	p.client = peering.NewClient(peering.ClientConfig{Self: p.self, Gate: p.gate, Replica: p.replica, Registry: p.peers,
		RoundTripper: asIf{p.ask.RoundTripper(), p.addr}, Stream: asIf{p.ask.RoundTripper(), p.addr}, Log: discard})
	started := clock.Now()
	guard, err := federation.NewGuard(ctx, federation.GuardConfig{Self: p.self, Gate: p.gate, Registry: p.peers, Nonces: p.db, Prover: p.client, Started: started, Log: discard})
	if err != nil {
		return err
	}
	door := peer.New(peer.Config{Self: p.self, Guard: guard, Replica: p.replica, Version: "bench", Log: discard, Counts: func(context.Context) (int, int) { return p.peers.Counts() }})
	p.overlay, err = overlay.New(overlay.Config{Self: p.self, Gate: p.gate, Caller: p.client, Registry: p.peers, Known: p.peers.Portals, Store: p.replica,
		Where: func(ctx context.Context, portal record.PortalID) string {
			q, _ := p.peers.Portal(ctx, string(portal))
			return q.URL
		},
		IDOf:      func(context.Context, string) (string, error) { return "", errors.New("there are no agents") },
		Listed:    func(ctx context.Context, yield func([]byte) bool) error { return p.replica.Agents(ctx, p.id, yield) },
		Head:      func(ctx context.Context) ([]byte, error) { return p.replica.Head(ctx, p.id) },
		Uncounted: func(host string) bool { a, err := netip.ParseAddr(host); return err == nil && a.IsLoopback() }, Log: discard})
	if err != nil {
		return err
	}
	door.DHT(p.overlay, overlay.Routes())
	if o.more != nil {
		if err := o.more(p, door); err != nil {
			return err
		}
	}

	r := chi.NewRouter()
	r.Use(middleware.GetHead, middleware.ClientIPFromXFF("127.0.0.0/8"), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			o.asked.Add(r.URL.Path, 1)
			next.ServeHTTP(w, r)
		})
	})
	door.Routes(r)
	cert, err := o.ca.Certificate(p.host)
	if err != nil {
		return err
	}
	// The limits of web.Serve, which itself leaves TLS to a proxy before it.
	p.server = &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: log.New(nothing{}, "", 0), ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				o.ends.Add(2)
				o.opened.Add(1)
			case http.StateClosed, http.StateHijacked:
				o.ends.Add(-2)
			}
		}}
	var running context.Context
	running, p.stop = context.WithCancel(context.Background())
	tl := tls.NewListener(muteListener{l, &p.mute}, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}})
	p.running.Go(func() { p.server.Serve(tl) })
	p.run = func(loop func(context.Context) error) { p.running.Go(func() { loop(running) }) }
	p.loops = []func(context.Context) error{p.self.Run, guard.Run, peering.NewGreeter(p.client, p.self, p.peers, started).Run, p.peers.Run}
	return nil
}

// watch tells the DHT of portals that are met, as internal/app does.
func (p *portal) watch(ctx context.Context) error {
	told := make(map[record.PortalID]bool)
	for {
		changed := p.peers.Changed()
		for _, q := range p.peers.Portals(ctx) {
			if !told[q.ID] && p.peers.Decide(ctx, q.ID, q.URL).In {
				p.overlay.Hear(q.ID)
				told[q.ID] = true
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// ID, Network, Origin, Card and Key implement federation.Signer, for what is
// there before Self.
func (p *portal) ID() record.PortalID { return p.id }
func (p *portal) Network() string     { return ourNetwork }
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

// sign makes what the portal signs of an agent it has.
func (p *portal) sign(key int) (kademlia.Record, error) {
	now := clock.Now()
	_, private, until, err := p.self.Key(now)
	if err != nil {
		return kademlia.Record{}, err
	}
	ms, id := now.UnixMilli(), keyOf(key)
	r, err := record.Sign(ourNetwork, &record.Provider{Kind: record.ProvidesAgent, Key: record.Hash(id), HeadSeq: 1, Count: 1,
		Header: record.Header{Portal: p.id, Epoch: 1, Seq: ms, Issued: ms, Expires: min(now.Add(36*time.Hour).UnixMilli(), until.UnixMilli())}}, private)
	if err != nil {
		return kademlia.Record{}, err
	}
	return kademlia.Record{Key: id, Value: slices.Concat(p.self.Card(), []byte{'\n'}, r.Wire)}, nil
}

func (o *ours) Put(ctx context.Context, node, key int) error {
	p := o.nodes[node]
	rec, err := p.sign(key)
	if err != nil {
		return err
	}
	o.value.Store(int64(len(rec.Value)))
	n, err := p.overlay.Runner().Put(ctx, rec)
	if err == nil && n < 15 && n < len(o.nodes)-1 {
		return fmt.Errorf("it is at %d nodes only", n)
	}
	return err
}

func (o *ours) First(ctx context.Context, node, key int) error { return o.get(ctx, node, key, 1) }
func (o *ours) Full(ctx context.Context, node, key int) error  { return o.get(ctx, node, key, 0) }

func (o *ours) get(ctx context.Context, node, key, holders int) error {
	values, _, err := o.nodes[node].overlay.Runner().Get(ctx, keyOf(key), holders)
	if err == nil && len(values) == 0 {
		return errNotFound
	}
	return err
}

var errNotFound = errors.New("nobody gives a value")

func (o *ours) Base() Memory       { return o.base }
func (o *ours) Joining() time.Time { return o.joining }
func (o *ours) Value() int         { return int(o.value.Load()) }
func (o *ours) Ends() int          { return int(o.ends.Load()) }

func (o *ours) RPCs() (n int64) {
	for _, p := range o.nodes {
		p.overlay.Runner().Look(func(k *kademlia.Node) { n += k.Tally().Sent })
	}
	return n
}

func (o *ours) Table() float64 {
	n := 0
	for _, p := range o.nodes {
		p.overlay.Runner().Look(func(k *kademlia.Node) { n += k.Known() })
	}
	return float64(n) / float64(len(o.nodes))
}

// Kill ends a portal as the end of its process would: its connections break.
func (o *ours) Kill(node int) {
	p := o.nodes[node]
	if p.dead.Swap(true) {
		return
	}
	p.server.Close()
	p.stop()
	p.running.Wait()
	p.ask.CloseIdle()
}

func (o *ours) Mute(node int) { o.nodes[node].mute.Store(true) }

func (o *ours) CloseIdle() bool {
	for _, p := range o.nodes {
		p.ask.CloseIdle()
	}
	return true
}

func (o *ours) Close() {
	var wg sync.WaitGroup
	for i := range o.nodes {
		wg.Go(func() { o.Kill(i) })
	}
	wg.Wait()
	for _, p := range o.nodes {
		p.replica.Close()
		p.db.Close()
	}
	os.RemoveAll(o.dir)
}
