// Package gossip is this portal's place in a pool of portals that tell each
// other who is there and whose head is new, by hashicorp/serf (SWIM with
// Lifeguard, Das 2002 and Dadgar 2018). Its messages travel inside the signed
// requests of all portals, so that it needs no port and no shared key.
//
// What members say of others cannot be signed in SWIM, so all of it is a hint:
// nothing is granted, deleted or believed on it. Who is a member shows a
// signed contact, which is checked; that one is gone leads to one look of our
// own; that a head is new leads to one request for it. See
// docs/design/peering.md.
package gossip

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/record"
)

// Routes below /peering/v1.
const (
	packetRoute = "gossip"
	streamRoute = "pushpull"
)

// Routes are those that Serve answers.
func Routes() []string { return []string{packetRoute, streamRoute} }

const (
	// MaxMembers bounds a pool: a zone of the network.
	MaxMembers = 2000
	// zoneFrom is how many portals a zone has at most before it is parted in
	// two, and half of a zone is joined to its other half below zoneTo: they
	// are far enough apart that a guess of the size does not go to and fro.
	zoneFrom, zoneTo = 1500, 500
	// maxZoneBits bounds how often the network is parted.
	maxZoneBits = 16

	// joinEvery is how often somebody is joined who is known and no member:
	// soon as long as there are few members, else to mend a pool in two halves.
	joinSoon, joinEvery = 5 * time.Second, 2 * time.Minute
	fewMembers          = 3
	// restFor is how long a portal that would not be joined is left alone.
	restFor = 30 * time.Minute
	// zoneEvery is how often it is looked whether the zone is another, and
	// whether the contact was signed anew.
	zoneEvery = time.Minute
	// leaveTime is what telling others that this portal goes may take.
	leaveTime = 250 * time.Millisecond
	// forgetAfter is how long members that are gone are remembered.
	forgetAfter = time.Hour
)

// Config is what a Gossip needs. Every field is required but those that say
// otherwise. The functions are called by several goroutines at once.
type Config struct {
	Network string
	Self    record.PortalID
	// Contact is the contact that this portal last signed, nil before it did.
	Contact func() []byte
	// Check says whether a contact that came from a portal is signed by the one
	// that it names, and that let in. It may read from disk, and note where a
	// portal that is not known yet may be.
	Check func(ctx context.Context, from record.PortalID, wire []byte) (*record.Contact, error)
	// Post sends a request to a portal, signed, and returns at most limit bytes
	// of its answer; a fault.NotFound means that it has no such route.
	Post func(ctx context.Context, to record.PortalID, route string, body []byte, limit int64) ([]byte, error)
	// Known returns the portals that are known and answer, in any order.
	Known func(ctx context.Context) []record.PortalID
	// Host is the host of a portal that is known, for Listen alone; "" for none.
	Host func(ctx context.Context, portal record.PortalID) string
	// Size is a guess of how many portals the network has.
	Size func() int
	// Head is told that a portal may have a new head; Seen that one that may
	// not be known is a member, Lost that a member does not answer others. They
	// must not block.
	Head func(Hint)
	Seen func(portal record.PortalID, origin string)
	Lost func(portal record.PortalID)
	// Listen is where to use UDP and TCP; empty for signed requests.
	Listen string
	// LAN uses serf's timings for one network of machines, for tests: between
	// operators a slow machine is no dead one. Optional.
	LAN bool
	Log *slog.Logger
}

// Gossip takes part in the pool while Run runs. It is safe for concurrent use.
type Gossip struct {
	cfg   Config
	host  string // of Listen
	port  int
	count counters
	hints hints
	guard *guard
	nudge chan struct{} // capacity 1
	quiet atomic.Bool   // nobody is told when it ends

	mu    sync.Mutex // guards the rest
	pool  *pool      // nil while there is none
	zone  int        // bits of the id
	shy   map[record.PortalID]time.Time
	alive map[record.PortalID]bool // members but this portal; false for those that are gone
}

// pool is one life of serf: another zone is another pool.
type pool struct {
	serf      *serf.Serf
	transport memberlist.NodeAwareTransport
	https     *transport // nil with Listen
	contact   string     // in the tags
}

// New returns a Gossip.
func New(cfg Config) (*Gossip, error) {
	g := &Gossip{cfg: cfg, nudge: make(chan struct{}, 1), shy: make(map[record.PortalID]time.Time), alive: make(map[record.PortalID]bool)}
	if cfg.Listen != "" {
		var err error
		if g.host, g.port, err = ParseListen(cfg.Listen); err != nil {
			return nil, err
		}
	}
	g.guard = newGuard(cfg)
	g.guard.count = &g.count
	g.guard.full = func() bool {
		up, down := g.Members()
		return up+down >= MaxMembers
	}
	g.guard.aside = g.Nudge
	g.hints.init()
	return g, nil
}

// ParseListen parts an address to listen at: an IP address, or nothing for all
// of this machine, and a port.
func ParseListen(addr string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(p)
	}
	if err != nil || port < 1 || port > 65535 || host != "" && net.ParseIP(host) == nil {
		return "", 0, errors.New("use IP:PORT, as in 192.168.1.10:7946, or :PORT for all addresses of this machine")
	}
	if host == "" {
		host = "0.0.0.0"
	}
	return host, port, nil
}

// Run takes part until ctx ends, and then tells others that this portal goes. It
// begins again when it has to.
func (g *Gossip) Run(ctx context.Context) error {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		began := time.Now()
		err := g.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			g.count.failures.Add(1)
			g.cfg.Log.Warn("gossip ended and begins again", "error", err, "in", wait)
			if !clock.Sleep(ctx, wait) {
				return nil
			}
		}
		if time.Since(began) > time.Minute {
			wait = time.Second / 2
		}
	}
}

// runOnce is one pool, until ctx ends or the zone is another.
func (g *Gossip) runOnce(ctx context.Context) error {
	contact := g.cfg.Contact()
	for contact == nil { // a portal that may sign nothing has nothing to show
		if !clock.Sleep(ctx, time.Second) {
			return nil
		}
		contact = g.cfg.Contact()
	}
	p := &pool{contact: string(contact)}
	g.guard.shows(p.contact)
	events := make(chan serf.Event, 512)
	conf := g.conf(events, p.contact)
	if err := g.listen(p, conf); err != nil {
		return err
	}
	var err error
	if p.serf, err = serf.Create(conf); err != nil {
		p.transport.Shutdown()
		return err
	}
	g.enter(p)
	inner, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { g.listenTo(p, events) })
	all.Go(func() { g.join(inner, p) })
	all.Go(func() { g.tell(inner, p) })
	err = g.keep(ctx, p)
	cancel()
	g.leave(p, ctx.Err() != nil)
	all.Wait()
	return err
}

// Vanish has nobody told when this portal goes, as if it were killed.
func (g *Gossip) Vanish() { g.quiet.Store(true) }

// listen makes the transport of a pool.
func (g *Gossip) listen(p *pool, conf *serf.Config) error {
	m := conf.MemberlistConfig
	if g.cfg.Listen == "" {
		p.https = newTransport(g)
		p.transport = p.https
		m.Transport = p.transport
		return nil
	}
	net, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{g.host}, BindPort: g.port, Logger: conf.Logger})
	if err != nil {
		return err
	}
	p.transport = net
	m.Transport, m.BindAddr, m.BindPort, m.AdvertisePort = net, g.host, g.port, g.port
	m.Label = g.cfg.Network
	return nil
}

func (g *Gossip) enter(p *pool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pool = p
	clear(g.alive)
}

// leave ends a pool. Others are told when this portal goes; when it only changes
// its zone they see it themselves.
func (g *Gossip) leave(p *pool, tell bool) {
	g.mu.Lock()
	g.pool = nil
	alone := true
	for _, up := range g.alive {
		alone = alone && !up
	}
	clear(g.alive)
	g.mu.Unlock()
	if tell && !alone && !g.quiet.Load() && p.serf.State() == serf.SerfAlive {
		if err := p.serf.Leave(); err != nil {
			g.cfg.Log.Debug("gossip: others were not told that this portal goes", "error", err)
		}
	}
	if err := p.serf.Shutdown(); err != nil {
		g.cfg.Log.Debug("gossip: shutdown", "error", err)
	}
}

// keep looks after a pool until it is over: nil for another zone.
func (g *Gossip) keep(ctx context.Context, p *pool) error {
	tick := time.NewTicker(zoneEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.serf.ShutdownCh():
			return errors.New("serf shut itself down")
		case <-tick.C:
		}
		if c := g.cfg.Contact(); c != nil && string(c) != p.contact {
			p.contact = string(c)
			g.guard.shows(p.contact)
			if err := p.serf.SetTags(map[string]string{contactTag: p.contact}); err != nil {
				return err
			}
		}
		if g.rezone() {
			return nil
		}
	}
}

// conf is how serf is used: WAN timings, no queries, no keys, no conflicts of
// names, nothing compressed.
func (g *Gossip) conf(events chan serf.Event, contact string) *serf.Config {
	c := serf.DefaultConfig()
	c.NodeName = string(g.cfg.Self)
	c.Tags = map[string]string{contactTag: contact}
	c.EventCh = events
	c.Merge = g.guard
	c.EnableNameConflictResolution = false
	c.DisableCoordinates = true
	c.LeavePropagateDelay, c.BroadcastTimeout = leaveTime, leaveTime
	c.ReconnectTimeout, c.TombstoneTimeout = forgetAfter, forgetAfter
	c.MaxQueueDepth = 1024
	c.QueueDepthWarning = 512
	c.LogOutput, c.Logger = nil, logger(g.cfg.Log)
	m := memberlist.DefaultWANConfig()
	if g.cfg.LAN {
		m = memberlist.DefaultLANConfig()
	} else {
		m.PushPullInterval = 2 * time.Minute
	}
	m.Name = c.NodeName
	m.LogOutput, m.Logger = nil, c.Logger
	m.EnableCompression = false
	if g.cfg.Listen == "" {
		m.RequireNodeNames = true
		m.DisableTcpPings = true // the same request once more
		m.UDPBufferSize = maxPacket
	}
	c.MemberlistConfig = m
	return c
}

// Serve answers a request of another portal on one of Routes.
func (g *Gossip) Serve(ctx context.Context, from record.PortalID, route string, body []byte) ([]byte, error) {
	g.mu.Lock()
	p := g.pool
	g.mu.Unlock()
	if p == nil || p.https == nil {
		return nil, fault.New(fault.Unavailable, "This portal does not gossip now.")
	}
	g.count.asked.Add(1)
	g.count.in.Add(int64(len(body)))
	var out []byte
	var err error
	if route == streamRoute {
		out, err = p.https.serveStream(ctx, string(from), body)
	} else {
		out, err = p.https.servePackets(ctx, string(from), body)
	}
	g.count.out.Add(int64(len(out)))
	return out, err
}

// logger hands what serf and memberlist log on, for those who look for it: most
// is what others did, and they must not fill a disk.
func logger(log *slog.Logger) *stdLogger { return slog.NewLogLogger(log.Handler(), slog.LevelDebug) }

// serveTimeout bounds how long a request is worked on.
const serveTimeout = 10 * time.Second
