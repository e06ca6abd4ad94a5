package registry

import (
	"net"
	"net/netip"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/weborigin"
)

// ProvesNamespace returns an Invalid fault for a domain that cannot stand for a namespace of the
// MCP registry, even if control of it was proved: an address, a name without a dot, or a name with
// a port, because a program that listens at a port need not belong to the owner of the name. With
// loopback set, names of this machine are allowed with all of that.
func ProvesNamespace(domain string, loopback bool) error {
	switch {
	case LocalDomain(domain):
		if loopback {
			return nil
		}
	case !PlainDomain(domain):
	case domain == "github.io" || strings.HasSuffix(domain, ".github.io"):
		// A page below github.io proves write access to one repository, not to the account or
		// organization.
		return fault.New(fault.Invalid, "github.io domains cannot be used with DNS/HTTP authentication")
	default:
		return nil
	}
	return fault.New(fault.Invalid, "invalid domain format: write a name like example.com, without scheme, port or path")
}

// PlainDomain reports whether s is a domain name in lower case with at least two labels, and
// neither an address nor a name with a port.
func PlainDomain(s string) bool {
	labels := strings.Split(s, ".")
	if len(s) > 253 || len(labels) < 2 {
		return false
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' ||
			strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	// Programs read a name with a number as its last label as an IP address.
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

// LocalDomain reports whether s, with or without a port, is a name or address of this machine.
func LocalDomain(s string) bool {
	host := s
	if h, port, err := net.SplitHostPort(s); err == nil {
		if port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
			return false
		}
		host = h
	}
	if !weborigin.IsLoopback(host) {
		return false
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost" || PlainDomain(host)
	}
	return ip.Zone() == "" && (ip.Is4() || s != host)
}
