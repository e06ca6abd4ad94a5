package federation

import (
	"net/netip"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// SiteOf returns the site of a portal's host (see HostOf), the likely owner: the registered
// domain, or the network of an address. Names below one domain cost nothing, so limits count by
// site. On loopback each port is a site, because portals there are trials.
func SiteOf(host string) string {
	name, port, _ := cutPort(host)
	if ip, err := netip.ParseAddr(name); err == nil {
		bits := 24
		switch {
		case ip.IsLoopback():
			return name + ":" + port
		case ip.Is6():
			bits = 48
		}
		p, _ := ip.Prefix(bits) // of its own family
		return p.String()
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return name + ":" + port
	}
	if site, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return site
	}
	return name
}

// cutPort parts host and port as they stand in a URL.
func cutPort(host string) (name, port string, ok bool) {
	if in, rest, ok := strings.Cut(strings.TrimPrefix(host, "["), "]"); ok {
		return in, strings.TrimPrefix(rest, ":"), true
	}
	return strings.Cut(host, ":")
}
