package gossip

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/record"
)

// contactTag is the tag with a portal's signed contact.
const contactTag = "r"

// maxShown bounds the contacts that are remembered.
const maxShown = 2 * MaxMembers

// guard lets in only what an honest member may say: who is a member shows a
// contact that its portal signed, and its address is that of its id. What is
// left, that somebody is gone or may be, is a hint.
type guard struct {
	cfg   Config
	count *counters
	full  func() bool // no more members fit
	heard *heard
	aside func() // a contact that was checked aside held; nil for nothing

	mu    sync.Mutex // guards the rest
	own   string     // the contact that this portal shows
	shown map[string]shown
	// seen is the highest incarnation of each member, clock the highest of
	// serf's: what is far beyond is a lie, made so that nobody can go higher.
	seen  map[string]uint32
	clock uint64
	busy  int // contacts being checked aside
}

// shown is a contact that held.
type shown struct {
	wire   string
	origin string
	until  time.Time

	version record.Version
}

func newGuard(cfg Config) *guard {
	return &guard{cfg: cfg, heard: newHeard(), shown: make(map[string]shown), seen: make(map[string]uint32)}
}

// contact returns the origin of a member by the contact it showed.
func (g *guard) contact(name string) (origin string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.shown[name]
	return s.origin, ok
}

// contactOf is the contact that a member has shown here, or that of this
// portal; "" for none.
func (g *guard) contactOf(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if name == string(g.cfg.Self) {
		return g.own
	}
	return g.shown[name].wire
}

// shows notes what this portal shows.
func (g *guard) shows(contact string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = contact
}

// known reports whether a contact held before, and still does.
func (g *guard) known(name, wire string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.shown[name]
	return ok && s.wire == wire && clock.Now().Before(s.until)
}

// check reports whether a member's contact is signed by its portal, and that
// let in. It may read from disk.
func (g *guard) check(ctx context.Context, from, name, wire string) bool {
	if g.known(name, wire) {
		return true
	}
	c, err := g.cfg.Check(ctx, record.PortalID(from), []byte(wire))
	if err != nil || string(c.Portal) != name || g.full() && !g.isShown(name) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	version := c.Version()
	if s, ok := g.shown[name]; ok && version.Compare(s.version) < 0 && clock.Now().Before(s.until) {
		return false // what it showed before
	}
	if len(g.shown) >= maxShown {
		g.forgetLocked()
	}
	g.shown[name] = shown{wire, c.Origin(), time.UnixMilli(c.Expires), version}
	return true
}

// members is how many have shown a contact that held.
func (g *guard) members() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.shown)
}

func (g *guard) isShown(name string) bool {
	_, ok := g.contact(name)
	return ok
}

// forgetLocked makes room; the caller holds mu. What is forgotten is checked
// again when it comes again.
func (g *guard) forgetLocked() {
	n := maxShown / 8
	for name := range g.shown {
		if n--; n < 0 {
			return
		}
		delete(g.shown, name)
	}
}

var errNotShown = fault.New(fault.Forbidden, "It shows no contact that its portal signed.")

// NotifyMerge implements serf.MergeDelegate: of each member that somebody says
// is alive. A list is of a join; an error would end that, and each of the list
// comes again alone. It must not block, so a contact that was not checked yet
// is looked at aside, and comes again with the next exchange of states, which is
// soon where there are few members.
func (g *guard) NotifyMerge(list []*serf.Member) error {
	if len(list) != 1 {
		return nil
	}
	m := list[0]
	if m.Name == string(g.cfg.Self) {
		return nil
	}
	if g.cfg.Listen == "" && (!m.Addr.Equal(addressOf(m.Name)) || m.Port != anyPort) {
		return errNotShown
	}
	wire := m.Tags[contactTag]
	if g.known(m.Name, wire) {
		return nil
	}
	if g.cfg.Listen != "" && len(wire) > 0 {
		g.checkAside(m.Name, wire)
	}
	return errNotShown
}

// maxAside bounds the contacts that are checked aside at once.
const maxAside = 8

func (g *guard) checkAside(name, wire string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy >= maxAside {
		return
	}
	g.busy++
	go func() {
		defer func() {
			g.mu.Lock()
			g.busy--
			g.mu.Unlock()
		}()
		ctx, cancel := context.WithTimeout(context.Background(), packetTimeout)
		defer cancel()
		if g.check(ctx, name, name, wire) && g.aside != nil {
			g.aside()
		}
	}()
}

const (
	// Numbers go up by one each time a member denies to be gone, and by one
	// with each event. Nobody who is honest comes near these.
	maxIncarnation  = 1 << 24
	maxIncarnations = 1_000_000 // in one step
	maxLamport      = 1 << 40
	maxLamports     = 1_000_000
)

// incarnation reports whether a member's incarnation may be true, and remembers
// it. The caller has made sure that name is one of a portal.
func (g *guard) incarnation(name string, n uint32) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was, ok := g.seen[name]
	if n > maxIncarnation || ok && n > was+maxIncarnations {
		return false
	}
	if !ok && len(g.seen) >= maxShown {
		for k := range g.seen {
			delete(g.seen, k)
			break
		}
	}
	g.seen[name] = max(was, n)
	return true
}

// lamport reports whether a time of serf's clocks may be true.
func (g *guard) lamport(t uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t > maxLamport || g.clock > 0 && t > g.clock+maxLamports {
		return false
	}
	g.clock = max(g.clock, t, 1)
	return true
}

// place reports whether an address and port are those of a member.
func place(name string, ip []byte, port uint16) bool {
	return net.IP(ip).Equal(addressOf(name)) && port == anyPort
}

// isPortal reports whether a name is the id of a portal.
func isPortal(name string) bool {
	_, ok := record.PortalID(name).Digest()
	return ok
}
