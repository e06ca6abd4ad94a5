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

// contactTag is the tag that holds a portal's signed contact.
const contactTag = "r"

// maxShown bounds the cached contacts.
const maxShown = 2 * MaxMembers

// guard admits only statements that an honest member can make: a member shows a contact that its
// portal signed, and its address follows from its id. The other statements, such as that a member
// is gone, are hints.
type guard struct {
	cfg   Config
	count *counters
	full  func() bool // the pool has no room for more members
	heard *heard
	aside func() // called after a contact was verified in the background; nil for nothing

	mu    sync.Mutex // guards the rest
	own   string     // the contact that this portal shows
	shown map[string]shown
	// seen is the highest incarnation of each member, clock the highest time of serf. A value far
	// above is a lie, sent so that the member cannot go higher.
	seen  map[string]uint32
	clock uint64
	busy  int // contacts being verified in the background
}

// shown is a verified contact.
type shown struct {
	wire   string
	origin string
	until  time.Time

	version record.Version
}

func newGuard(cfg Config) *guard {
	return &guard{cfg: cfg, heard: newHeard(), shown: make(map[string]shown), seen: make(map[string]uint32)}
}

// originOf returns the origin of a member from the contact that it showed.
func (g *guard) originOf(name string) (origin string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.shown[name]
	return s.origin, ok
}

// contactOf returns the contact that a member has shown here, or the own one for this portal; ""
// for none.
func (g *guard) contactOf(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if name == string(g.cfg.Self) {
		return g.own
	}
	return g.shown[name].wire
}

// setOwn sets the contact that this portal shows.
func (g *guard) setOwn(contact string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = contact
}

// isVerified reports whether a contact was verified before and has not expired.
func (g *guard) isVerified(name, wire string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.shown[name]
	return ok && s.wire == wire && clock.Now().Before(s.until)
}

// checkContact reports whether a member's contact is signed by its portal, and the portal is
// allowed. It may read from disk.
func (g *guard) checkContact(ctx context.Context, from, name, wire string) bool {
	if g.isVerified(name, wire) {
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
		return false // older than the contact that it has shown already
	}
	if len(g.shown) >= maxShown {
		g.forgetLocked()
	}
	g.shown[name] = shown{wire, c.Origin(), time.UnixMilli(c.Expires), version}
	return true
}

// countMembers returns the number of verified contacts.
func (g *guard) countMembers() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.shown)
}

func (g *guard) isShown(name string) bool {
	_, ok := g.originOf(name)
	return ok
}

// forgetLocked makes room in the cache. The caller holds mu. A removed contact is verified again
// when it comes again.
func (g *guard) forgetLocked() {
	n := maxShown / 8
	for name := range g.shown {
		if n--; n < 0 {
			return
		}
		delete(g.shown, name)
	}
}

var errNotShown = fault.New(fault.Forbidden, "The member shows no contact that its portal signed.")

// NotifyMerge implements serf.MergeDelegate: serf calls it for each member that another one reports
// as alive. A list with several members is from a join: an error would end the join, and each of
// them comes again alone. It must not block, so an unknown contact is verified in the background
// and comes again with the next exchange of states, which is soon while there are few members.
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
	if g.isVerified(m.Name, wire) {
		return nil
	}
	if g.cfg.Listen != "" && len(wire) > 0 {
		g.checkAside(m.Name, wire)
	}
	return errNotShown
}

// maxAside bounds the contacts that are verified in the background at once.
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
		if g.checkContact(ctx, name, name, wire) && g.aside != nil {
			g.aside()
		}
	}()
}

const (
	// An incarnation grows by one each time that a member denies to be gone, serf's clock by one
	// with each event. An honest member stays far below these bounds.
	maxIncarnation  = 1 << 24
	maxIncarnations = 1_000_000 // in one step
	maxLamport      = 1 << 40
	maxLamports     = 1_000_000
)

// checkIncarnation reports whether a member's incarnation is plausible, and remembers it. The
// caller has checked that name is the id of a portal.
func (g *guard) checkIncarnation(name string, n uint32) bool {
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

// checkTime reports whether a time of serf's clocks is plausible.
func (g *guard) checkTime(t uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t > maxLamport || g.clock > 0 && t > g.clock+maxLamports {
		return false
	}
	g.clock = max(g.clock, t, 1)
	return true
}

// isPlace reports whether an address and port are those of the named member.
func isPlace(name string, ip []byte, port uint16) bool {
	return net.IP(ip).Equal(addressOf(name)) && port == anyPort
}

// isPortal reports whether a name is the id of a portal.
func isPortal(name string) bool {
	_, ok := record.PortalID(name).Digest()
	return ok
}
