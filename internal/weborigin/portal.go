package weborigin

import (
	"net/netip"
	"net/url"
	"strings"
)

// PortalOrigins returns the origins at which a portal may be that a person named by a text: an origin, or only a host
// with or without a port. A host alone is tried by https, and by http only if it is a loopback address, where no
// certificate can be had. It returns nil for other texts.
func PortalOrigins(text string) []string {
	text = ASCIIAddress(strings.ToLower(strings.TrimSuffix(strings.TrimSpace(text), "/")))
	if addr, err := netip.ParseAddr(text); err == nil && addr.Is6() {
		text = "[" + text + "]"
	}
	schemes := []string{""}
	if !strings.Contains(text, "://") {
		schemes = []string{"https://", "http://"}
		text = ASCIIHost(text)
	}
	var out []string
	for _, scheme := range schemes {
		u, err := url.Parse(scheme + text)
		if err != nil || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" ||
			u.ForceQuery || u.Scheme != "https" && u.Scheme != "http" {
			return nil
		}
		if len(out) > 0 && !isLoopbackName(u.Hostname()) {
			break
		}
		out = append(out, u.Scheme+"://"+withoutDefaultPort(u))
	}
	return out
}

// withoutDefaultPort returns the host of a URL, with its port unless that is the default one of the scheme.
func withoutDefaultPort(u *url.URL) string {
	switch port := u.Port(); {
	case port == "", u.Scheme == "https" && port == "443", u.Scheme == "http" && port == "80":
		return strings.TrimSuffix(strings.TrimSuffix(u.Host, port), ":")
	}
	return u.Host
}

func isLoopbackName(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
