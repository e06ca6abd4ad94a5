package federation

import (
	"net/netip"
	"strings"

	"golang.org/x/net/publicsuffix"

	"agentsite/internal/weborigin"
)

// SiteOf returns the site of a host (see HostOf): the registrable domain, or the /24 or /48 network of
// an address. It stands for the probable owner: limits count by site, because host names below one
// domain cost nothing. On loopback each port is a site, for trials with several portals.
func SiteOf(host string) string {
	name, port, _ := cutPort(host)
	if weborigin.IsLoopback(name) {
		return name + ":" + port
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		bits := 24
		if ip.Is6() {
			bits = 48
		}
		p, _ := ip.Prefix(bits) // an error is impossible: bits fits the address family
		return p.String()
	}
	if site, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return site
	}
	return name
}

// cutPort splits the host of a URL into name and port; ok is false without a port or brackets.
func cutPort(host string) (name, port string, ok bool) {
	if in, rest, ok := strings.Cut(strings.TrimPrefix(host, "["), "]"); ok {
		return in, strings.TrimPrefix(rest, ":"), true
	}
	return strings.Cut(host, ":")
}
