package egress

import "net/netip"

func parsePrefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

var (
	// notGlobal4 holds the private and other IPv4 ranges that are not globally reachable by IANA's registry, and other
	// ranges without public hosts.
	notGlobal4 = parsePrefixes(
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8",
		"169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", // Azure's internal wire server, although the address is public
	)
	// global6 is the only IPv6 range allocated to public hosts. Loopback, mapped and compatible forms,
	// ULA, link-local, site-local and multicast are all outside of it.
	global6    = netip.MustParsePrefix("2000::/3")
	notGlobal6 = parsePrefixes(
		"2001::/23", // protocol assignments, such as Teredo, ORCHID and benchmarking
		"2001:db8::/32", "3fff::/20",
	)
	// embedding holds IPv6 ranges whose addresses lead through a gateway to an IPv4 address that the
	// sender chose. AllowCIDR does not allow them.
	embedding = parsePrefixes("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")
)

// policy decides which addresses a client may connect to: global ones and those in allow.
type policy struct{ allow []netip.Prefix }

func newPolicy(allow []netip.Prefix) policy {
	var p policy
	for _, n := range allow {
		if a := n.Addr(); a.Is4In6() && n.Bits() >= 96 {
			n = netip.PrefixFrom(a.Unmap(), n.Bits()-96)
		}
		if n.IsValid() {
			p.allow = append(p.allow, n.Masked())
		}
	}
	return p
}

// allowsAddr reports whether the client may connect to a. IPv4-mapped addresses are treated as IPv4; an
// address with a zone is never allowed.
func (p policy) allowsAddr(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if containsAddr(embedding, a) {
		return false
	}
	if containsAddr(p.allow, a) {
		return true
	}
	if a.Is4() {
		return !containsAddr(notGlobal4, a)
	}
	return global6.Contains(a) && !containsAddr(notGlobal6, a)
}

func containsAddr(list []netip.Prefix, a netip.Addr) bool {
	for _, n := range list {
		if n.Contains(a) {
			return true
		}
	}
	return false
}
