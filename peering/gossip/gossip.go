// Package gossip connects this portal to a pool of portals that exchange membership and hints of
// new heads, by hashicorp/serf (SWIM with Lifeguard, Das 2002 and Dadgar 2018). Its messages travel
// inside the signed requests between portals, so that it needs no port and no shared key.
//
// SWIM cannot sign the statements of a member about others, so every statement is only a hint: it
// grants, deletes and proves nothing. A member shows a signed contact, which is checked. A report
// that a member is gone leads to one probe by this portal, a hint of a new head to one request for
// the head. See docs/design/peering.md.
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

// Names of the routes below /peering/v1: one for packets, one for exchanges of states.
const (
	packetRoute = "gossip"
	streamRoute = "pushpull"
)

// Routes returns the names below /peering/v1 of the routes that Serve answers.
func Routes() []string { return []string{packetRoute, streamRoute} }

const (
	// MaxMembers bounds the members of a pool (a zone of the network); further ones are refused.
	MaxMembers = 2000
	// A zone with more than zoneFrom portals is split in two; a zone with fewer than zoneTo is joined with
	// its other half. The limits are far apart, so that an inexact estimate of the size does not cause
	// splits and joins in turn.
	zoneFrom, zoneTo = 1500, 500
	// maxZoneBits bounds how many times the network is split.
	maxZoneBits = 16

	// One known portal that is not a member is joined every joinSoon while there are fewer than fewMembers
	// members, otherwise every joinEvery, which reunites a pool that fell in two halves.
	joinSoon, joinEvery = 5 * time.Second, 2 * time.Minute
	fewMembers          = 3
	// restFor is the pause before a portal without gossip is joined again.
	restFor = 30 * time.Minute
	// zoneEvery is the interval of the checks for a new zone and for a newly signed contact.
	zoneEvery = time.Minute
	// leaveTime bounds how long this portal notifies others that it leaves.
	leaveTime = 250 * time.Millisecond
	// forgetAfter is how long members that are gone are remembered and may come back.
	forgetAfter = time.Hour
)

// Config holds the parts of a Gossip. All fields are required unless their comment says otherwise.
// The functions are called by several goroutines at once.
type Config struct {
	Network string
	Self    record.PortalID
	// Contact returns the newest contact record that this portal signed, nil before the first.
	Contact func() []byte
	// Check verifies a contact record that the portal from sent: the portal that it describes must have
	// signed it and must be allowed. It may read from disk, and may look up a portal that is not known yet.
	Check func(ctx context.Context, from record.PortalID, wire []byte) (*record.Contact, error)
	// Post sends a signed request to a portal and returns its answer, at most limit bytes. A NotFound error
	// means that the portal has no such route.
	Post func(ctx context.Context, to record.PortalID, route string, body []byte, limit int64) ([]byte, error)
	// Known returns the portals that are reachable and allowed, in any order.
	Known func(ctx context.Context) []record.PortalID
	// Host returns the host of a known portal, "" for none. It is required only with Listen.
	Host func(ctx context.Context, portal record.PortalID) string
	// Size returns the estimated number of portals in the network, which determines the zone.
	Size func() int
	// Head is called for each hint of a new head. Seen is called when a portal, which may be unknown,
	// becomes a member. Lost is called when a member leaves or other members report it as gone. They must
	// not block.
	Head func(Hint)
	Seen func(portal record.PortalID, origin string)
	Lost func(portal record.PortalID)
	// Listen is the address (IP:PORT or :PORT) for UDP and TCP; empty to use signed requests.
	Listen string
	// LAN selects serf's timings for a local network, for tests. Its timeouts are too short for the
	// internet, where a slow machine must not count as gone.
	LAN bool
	Log *slog.Logger
}

// Gossip is the membership of this portal in a pool. It takes part while Run runs. It is safe for
// concurrent use.
type Gossip struct {
	cfg   Config
	host  string // host and port of Config.Listen
	port  int
	count counters
	hints hints
	guard *guard
	nudge chan struct{} // capacity 1; see Nudge
	quiet atomic.Bool   // leave without notifying other members, see Vanish

	mu    sync.Mutex // guards the fields below
	pool  *pool      // nil while Run is not in a pool
	zone  int        // number of id bits that all members of the zone share
	shy   map[record.PortalID]time.Time
	alive map[record.PortalID]bool // by member, without this portal; false for those that are gone
}

// pool is one run of serf. Each zone is a pool of its own, so a change of the zone starts another.
type pool struct {
	serf      *serf.Serf
	transport memberlist.NodeAwareTransport
	https     *transport // nil if Config.Listen is set
	contact   string     // contact record in this portal's tags
}

// New returns a Gossip that is in no pool. It fails only for an invalid Config.Listen.
func New(cfg Config) (*Gossip, error) {
	g := &Gossip{cfg: cfg, nudge: make(chan struct{}, 1), shy: make(map[record.PortalID]time.Time),
		alive: make(map[record.PortalID]bool)}
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

// ParseListen splits an address into an IP address and a port. Without an IP address the host is 0.0.0.0,
// for all addresses of this machine.
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

// Run takes part until ctx ends, and then notifies others that this portal leaves. It restarts after a
// failure, with a growing pause, and after a change of the zone. It returns nil.
func (g *Gossip) Run(ctx context.Context) error {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		began := time.Now()
		err := g.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			g.count.failures.Add(1)
			g.cfg.Log.Warn("gossip ended and starts again", "error", err, "in", wait)
			if !clock.Sleep(ctx, wait) {
				return nil
			}
		}
		if time.Since(began) > time.Minute {
			wait = time.Second / 2
		}
	}
}

// runOnce takes part in one pool, until ctx ends or the zone changes, and returns nil then. An error means
// that serf failed.
func (g *Gossip) runOnce(ctx context.Context) error {
	contact := g.cfg.Contact()
	for contact == nil { // a portal without a signing key has no contact to present
		if !clock.Sleep(ctx, time.Second) {
			return nil
		}
		contact = g.cfg.Contact()
	}
	p := &pool{contact: string(contact)}
	g.guard.setOwn(p.contact)
	events := make(chan serf.Event, 512)
	conf := g.serfConfig(events, p.contact)
	if err := g.openTransport(p, conf); err != nil {
		return err
	}
	var err error
	if p.serf, err = serf.Create(conf); err != nil {
		_ = p.transport.Shutdown() // the error of Create is returned
		return err
	}
	g.enterPool(p)
	inner, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { g.handleEvents(p, events) })
	all.Go(func() { g.joinRegularly(inner, p) })
	all.Go(func() { g.announceHeads(inner, p) })
	err = g.watchPool(ctx, p)
	cancel()
	g.leavePool(p, ctx.Err() != nil)
	all.Wait()
	return err
}

// Vanish makes the end of Run silent, as if the process were killed: other members are not notified. It is
// for tests.
func (g *Gossip) Vanish() { g.quiet.Store(true) }

// openTransport creates the transport of a pool and enters it into the configuration of serf.
func (g *Gossip) openTransport(p *pool, conf *serf.Config) error {
	m := conf.MemberlistConfig
	if g.cfg.Listen == "" {
		p.https = newTransport(g)
		p.transport = p.https
		m.Transport = p.transport
		return nil
	}
	net, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{g.host}, BindPort: g.port,
		Logger: conf.Logger})
	if err != nil {
		return err
	}
	p.transport = net
	m.Transport, m.BindAddr, m.BindPort, m.AdvertisePort = net, g.host, g.port, g.port
	m.Label = g.cfg.Network
	return nil
}

func (g *Gossip) enterPool(p *pool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pool = p
	clear(g.alive)
}

// leavePool shuts a pool down. The second argument selects whether the other members are notified first;
// this is not needed when the zone changes, because they find out themselves.
func (g *Gossip) leavePool(p *pool, tell bool) {
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
			g.cfg.Log.Debug("gossip: notify the members that this portal leaves", "error", err)
		}
	}
	if err := p.serf.Shutdown(); err != nil {
		g.cfg.Log.Debug("gossip: shutdown", "error", err)
	}
}

// watchPool renews the contact in the tags and checks the zone at intervals. It returns nil when ctx ends
// or the zone changes, and an error when serf has ended.
func (g *Gossip) watchPool(ctx context.Context, p *pool) error {
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
			g.guard.setOwn(p.contact)
			if err := p.serf.SetTags(map[string]string{contactTag: p.contact}); err != nil {
				return err
			}
		}
		if g.updateZone() {
			return nil
		}
	}
}

// serfConfig returns the configuration of serf: timings for a WAN, without queries, key management,
// resolution of equal names, and compression.
func (g *Gossip) serfConfig(events chan serf.Event, contact string) *serf.Config {
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
	c.LogOutput, c.Logger = nil, newLogger(g.cfg.Log)
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
		m.DisableTcpPings = true // a TCP ping would be the same HTTP request again
		m.UDPBufferSize = maxPacket
	}
	c.MemberlistConfig = m
	return c
}

// Serve answers a request of the portal from on one of Routes. It returns an Unavailable error while this
// portal is in no pool, and an Invalid one for a malformed body.
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

// newLogger returns a logger for serf and memberlist that writes at debug level, because most of their
// lines describe events that other members cause, which must not fill the disk.
func newLogger(log *slog.Logger) *stdLogger { return slog.NewLogLogger(log.Handler(), slog.LevelDebug) }

// serveTimeout bounds the work on one request for the exchange of states.
const serveTimeout = 10 * time.Second
