package request

import (
	"net/netip"
	"slices"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
)

// ConnectionLimits bound the connections that callers hold open for longer than a request: sockets and
// event streams of conversations, and calls of agents that wait for an answer or stream it.
type ConnectionLimits struct {
	// All bounds those of all callers together. One account or guest address may have a quarter, all guests
	// together half.
	All int
	// PerAddress bounds those of all callers of one client address, unless Exempt contains it. An IPv6
	// client counts as its /64.
	PerAddress int
	// Sockets and Streams bound those of one account. The guests of one address count as one account.
	Sockets, Streams int
	Exempt           []netip.Prefix
}

// Connections counts the connections that callers hold open, and refuses those above the limits. Operators
// are bounded by the limits of their account only, so that they can act when the portal is full. Create it
// with NewConnections; it is safe for concurrent use.
type Connections struct {
	limits ConnectionLimits
	held   limit.Held
}

// NewConnections returns Connections with nothing open. A limit of zero refuses everything.
func NewConnections(l ConnectionLimits) *Connections {
	return &Connections{limits: l}
}

// Keys of limit.Held. An owner is the id of an account, of a portal, or the address of a guest.
const (
	allConnections = "all"
	allGuests      = "guests"
	ofOwner        = "owner "
	ofAddress      = "address "
	socketsOf      = "sockets "
	streamsOf      = "streams "
	callsOf        = "calls "
	portalCallsOf  = "portal "
)

// CountOpen returns how many sockets, event streams and waiting calls are open, by these names.
func (c *Connections) CountOpen() map[string]int64 {
	return map[string]int64{"sockets": int64(c.held.Sum(socketsOf)), "streams": int64(c.held.Sum(streamsOf)),
		"calls": int64(c.held.Sum(callsOf))}
}

// OpenSocket counts a socket of the actor. The caller must call release when the socket has ended. The
// error is RateLimited or Unavailable.
func (c *Connections) OpenSocket(actor ident.Actor) (release func(), err error) {
	hold, full := c.take(actor, limit.Share{Key: socketsOf + ownerOf(actor), Most: c.limits.Sockets})
	if full == socketsOf+ownerOf(actor) {
		return nil, tooManyOf(actor, c.limits.Sockets, "sockets")
	}
	return hold.Release, c.refusal(full)
}

// OpenStream is OpenSocket for a stream of server-sent events.
func (c *Connections) OpenStream(actor ident.Actor) (release func(), err error) {
	hold, full := c.take(actor, limit.Share{Key: streamsOf + ownerOf(actor), Most: c.limits.Streams})
	if full == streamsOf+ownerOf(actor) {
		return nil, tooManyOf(actor, c.limits.Streams, "event streams")
	}
	return hold.Release, c.refusal(full)
}

// beginCall counts a request that waits for an agent; see BeginWait.
func (c *Connections) beginCall(actor ident.Actor) (release func(), err error) {
	own := limit.Share{Key: callsOf + ownerOf(actor), Most: mostAttending}
	shares := []limit.Share{own}
	switch actor.Kind {
	case ident.Guest:
		shares[0].Most = mostGuestAttending
	case ident.Portal:
		shares[0].Most = mostGuestAttending
		shares = append(shares, limit.Share{Key: portalCallsOf + actor.Addr, Most: mostPortalAttending})
	}
	hold, full := c.take(actor, shares...)
	switch full {
	case own.Key:
		return nil, fault.Limited(retryCall,
			"You wait for %d answers already. Let one end first, or ask without waiting.", shares[0].Most)
	case portalCallsOf + actor.Addr:
		return nil, fault.Limited(retryCall, "Your portal waits for %d answers already. Let one end first.",
			mostPortalAttending)
	}
	return hold.Release, c.refusal(full)
}

// Times after which a refused caller may try again: an answer ends sooner than a page is closed.
const (
	retryCall       = 5 * time.Second
	retryConnection = 10 * time.Second
)

// take counts a connection under the given shares and under those of its owner, its address and all.
func (c *Connections) take(actor ident.Actor, shares ...limit.Share) (hold *limit.Hold, full string) {
	shares = append(shares, limit.Share{Key: ofOwner + ownerOf(actor), Most: max(c.limits.All/4, 1)})
	if !actor.IsOperator() {
		if actor.Kind != ident.Portal && !c.isExempt(actor.Addr) {
			shares = append(shares, limit.Share{Key: ofAddress + actor.Addr, Most: c.limits.PerAddress})
		}
		if actor.Kind == ident.Guest {
			shares = append(shares, limit.Share{Key: allGuests, Most: max(c.limits.All/2, 1)})
		}
		shares = append(shares, limit.Share{Key: allConnections, Most: c.limits.All})
	}
	return c.held.Take(shares...)
}

// refusal returns the error for a used-up share, nil for "".
func (c *Connections) refusal(full string) error {
	switch full {
	case "":
		return nil
	case allConnections:
		return &fault.Error{Kind: fault.Unavailable, RetryAfter: retryConnection,
			Safe: "This portal has as many connections open as it can. Try again in a moment."}
	case allGuests:
		return &fault.Error{Kind: fault.Unavailable, RetryAfter: retryConnection,
			Safe: "Visitors have as many connections open here as they can. Sign in, or try again in a moment."}
	}
	return fault.Limited(retryConnection,
		"You or others at your address have too many connections open. Close some, then try again.")
}

func tooManyOf(actor ident.Actor, most int, things string) error {
	if actor.Kind == ident.Guest {
		return fault.Limited(retryConnection,
			"Visitors at your address have %d %s open already. Close a conversation, or sign up.", most, things)
	}
	return fault.Limited(retryConnection,
		"Your account has %d %s open already. Close a page or a program that uses one, then try again.", most, things)
}

// ownerOf returns the owner of an actor's connections. A guest counts as its address, because a guest can
// start any number of sessions.
func ownerOf(actor ident.Actor) string {
	if actor.Kind == ident.Guest {
		return "guest " + actor.Addr
	}
	return actor.ID
}

// isExempt reports whether the limit of addresses does not apply to an address as ClientAddr returns it.
func (c *Connections) isExempt(addr string) bool {
	p, err := netip.ParsePrefix(addr)
	if err != nil {
		a, err := netip.ParseAddr(addr)
		if err != nil {
			return false
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	return slices.ContainsFunc(c.limits.Exempt, func(e netip.Prefix) bool {
		// The /64 of a client is exempt with a part of it too: ClientAddr has cut the rest.
		return e.Addr().BitLen() == p.Addr().BitLen() && e.Overlaps(p)
	})
}
