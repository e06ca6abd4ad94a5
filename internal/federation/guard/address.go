package guard

import (
	"net/netip"

	"agentsite/internal/federation"
)

// Arrive refuses requests from an address (an IP without port) by rule or rate, before anything of the
// request is read. Rules apply to the single address; rates count an IPv6 client by its /64, because a
// client can use all addresses of it.
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

// Strike counts a refused request against its address. An address that goes on after refusals that it
// could have avoided gets into the penalty box.
func (g *Guard) Strike(addr string, why federation.Reason) {
	switch why {
	case federation.ReasonUnknown, federation.ReasonClock, federation.ReasonPending, federation.ReasonBusy,
		federation.ReasonAbsent:
		return // An honest portal may get these refusals and can react to them, so they are not counted.
	}
	if a, err := netip.ParseAddr(addr); err == nil && g.cfg.Shun != nil {
		g.cfg.Shun.Penalize(a)
	}
}

// countedAs returns the key under which requests of an address are counted; a is the parsed addr, zero
// if that is invalid.
func countedAs(a netip.Addr, addr string) string {
	switch {
	case !a.IsValid():
		return addr
	case a.Is6():
		net, _ := a.Prefix(64) // an error is impossible: 64 bits fit an IPv6 address
		return net.String()
	}
	return a.String()
}

// unlimited reports whether the requests of an address are not limited: on a portal with a loopback
// origin all portals share one address.
func (g *Guard) unlimited(addr string) bool {
	return g.near && (addr == "127.0.0.1" || addr == "::/64")
}

// chargeFake counts an invalid signature against the address it came from, as fakeCost requests, because
// verifying costs time.
func (g *Guard) chargeFake(addr string) {
	a, _ := netip.ParseAddr(addr)
	g.addrs.ChargeUpTo(countedAs(a.Unmap().WithZone(""), addr), fakeCost)
}

// networkOf returns the network of an address (an IP, or the /64 of request.ClientAddr) whose addresses one
// holder usually has: an IPv4 /24 or an IPv6 /48. Another text is returned as it is.
func networkOf(addr string) string {
	p, err := netip.ParsePrefix(addr)
	if err != nil {
		a, err := netip.ParseAddr(addr)
		if err != nil {
			return addr
		}
		p = netip.PrefixFrom(a.Unmap().WithZone(""), 0)
	}
	bits := 24
	if p.Addr().Is6() {
		bits = 48
	}
	network, _ := p.Addr().Prefix(bits) // an error is impossible: the bits fit the address
	return network.String()
}
