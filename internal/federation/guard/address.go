package guard

import (
	"net/netip"

	"agentsite/internal/federation"
)

// Arrive refuses requests from an address, an IP without port, before anything of the request is
// read. Rules are about the whole address, limits count an IPv6 client as its /64.
func (g *Guard) Arrive(addr string) (err error) {
	defer func() { g.metrics.countRefusal(err) }()
	a, parsed := netip.ParseAddr(addr)
	if parsed == nil {
		a = a.Unmap().WithZone("")
		if why := g.cfg.Registry.DecideAddr(a); why != "" {
			return federation.Refuse(federation.ReasonDenied, "%s", why)
		}
	}
	key := countedAs(a, addr)
	if g.unlimited(key) {
		return nil
	}
	if wait, ok := g.addrs.Allow(key); !ok {
		return federation.RefuseFor(federation.ReasonLimit, wait,
			"Too many requests come from your address. Ask again later.")
	}
	return nil
}

// Strike notes that a request from an address was refused. An address that goes on although it
// could know is put into the penalty box.
func (g *Guard) Strike(addr string, why federation.Reason) {
	switch why {
	case federation.ReasonUnknown, federation.ReasonClock, federation.ReasonPending, federation.ReasonBusy,
		federation.ReasonAbsent:
		return // it may be honest, and has something to do about it
	}
	if a, err := netip.ParseAddr(addr); err == nil && g.cfg.Shun != nil {
		g.cfg.Shun.Penalize(a)
	}
}

// countedAs is the key under which an address is counted; a is zero for an invalid address.
func countedAs(a netip.Addr, addr string) string {
	switch {
	case !a.IsValid():
		return addr
	case a.Is6():
		net, _ := a.Prefix(64) // of its own family
		return net.String()
	}
	return a.String()
}

// unlimited reports whether the requests of an address are not counted: all
// that is on this portal's machine has one, unless it takes another.
func (g *Guard) unlimited(addr string) bool {
	return g.near && (addr == "127.0.0.1" || addr == "::/64")
}

// fake counts a signature that does not hold against where it came from.
func (g *Guard) chargeFake(addr string) {
	a, _ := netip.ParseAddr(addr)
	g.addrs.ChargeUpTo(countedAs(a.Unmap().WithZone(""), addr), fakeCost)
}
