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

// contactTag is the name of the serf tag that holds a portal's signed contact.
const contactTag = "r"

// maxShown bounds the verified contacts in memory; beyond it some are dropped and verified again.
const maxShown = 2 * MaxMembers

// guard checks all input from other members: a member must present a contact record that its portal signed,
// and its address must follow from its id. Statements that cannot be checked, such as that a member is
// gone, are used as hints only. It is safe for concurrent use.
type guard struct {
	cfg   Config
	count *counters
	full  func() bool // reports whether the pool has MaxMembers members
	heard *heard
	aside func() // called after a contact was verified in the background; may be nil

	mu    sync.Mutex // guards the fields below
	own   string     // this portal's contact
	shown map[string]shown
	// seen is the highest incarnation number of each member, clock the highest Lamport time of serf. Much
	// higher values are refused: an attacker sends them so that the member cannot exceed them.
	seen  map[string]uint32
	clock uint64
	busy  int // number of contacts being verified in the background
}

// shown is a verified contact, valid until the time until.
type shown struct {
	wire   string
	origin string
	until  time.Time

	version record.Version
}

func newGuard(cfg Config) *guard {
	return &guard{cfg: cfg, heard: newHeard(), shown: make(map[string]shown), seen: make(map[string]uint32)}
}

// originOf returns the origin in the verified contact of a member. ok is false if there is none.
func (g *guard) originOf(name string) (origin string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.shown[name]
	return s.origin, ok
}

// contactOf returns the encoded verified contact of a member, or this portal's own; "" for none.
func (g *guard) contactOf(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if name == string(g.cfg.Self) {
		return g.own
	}
	return g.shown[name].wire
}

// setOwn sets the encoded contact that this portal presents.
func (g *guard) setOwn(contact string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = contact
}

// isVerified reports whether this encoded contact of a member was verified before and has not expired.
func (g *guard) isVerified(name, wire string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.shown[name]
	return ok && s.wire == wire && clock.Now().Before(s.until)
}

// checkContact reports whether a member's contact is signed by its portal and the portal is allowed. It
// keeps the contact if it is new. It may read from disk. A new member is refused when the pool is full.
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
		return false // older than the verified contact of the member
	}
	if len(g.shown) >= maxShown {
		g.forgetLocked()
	}
	g.shown[name] = shown{wire, c.Origin(), time.UnixMilli(c.Expires), version}
	return true
}

// countMembers returns the number of verified contacts, an estimate of the pool's size for limits.
func (g *guard) countMembers() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.shown)
}

func (g *guard) isShown(name string) bool {
	_, ok := g.originOf(name)
	return ok
}

// forgetLocked removes some contacts to make room. They are verified again when they are needed. The caller
// holds mu.
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

// NotifyMerge implements serf.MergeDelegate. serf calls it for each member that another one reports as
// alive; an error keeps that member out. It must not block. Over UDP an unknown contact is therefore
// verified in the background, and the member is refused until the next exchange of states, which comes
// soon while there are few members; over signed requests all contacts were verified before. A list with
// several members comes from a join, which an error would end. It is accepted, because serf then calls
// NotifyMerge for each of them.
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

// maxAside bounds the contacts that are being verified in the background; further ones are verified when
// they are received again.
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
	// An incarnation number grows by one each time a member denies to be gone, serf's Lamport time by one
	// with each event. Honest members stay far below these bounds.
	maxIncarnation  = 1 << 24
	maxIncarnations = 1_000_000 // largest increase in one step
	maxLamport      = 1 << 40
	maxLamports     = 1_000_000
)

// checkIncarnation reports whether an incarnation number of a member is plausible, and records it if so.
// The caller has checked that name is the id of a portal.
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

// checkTime reports whether a Lamport time of serf is plausible, and records it if so.
func (g *guard) checkTime(t uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t > maxLamport || g.clock > 0 && t > g.clock+maxLamports {
		return false
	}
	g.clock = max(g.clock, t, 1)
	return true
}

// isPlace reports whether an address and port are those that follow from the member's id, see addressOf.
func isPlace(name string, ip []byte, port uint16) bool {
	return net.IP(ip).Equal(addressOf(name)) && port == anyPort
}

// isPortal reports whether the name of a member is a valid portal id.
func isPortal(name string) bool {
	_, ok := record.PortalID(name).Digest()
	return ok
}
