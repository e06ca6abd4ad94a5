// Package weborigin parses the origins of web sites, in the notation that browsers send in the
// Origin header.
package weborigin

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// maxOrigin bounds an origin in bytes: a host name of 253, and scheme and port.
const maxOrigin = 270

// hostName matches host names as browsers write them: lower case, and names of other scripts in the
// form that begins with xn--.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// Parse returns scheme, host and port of a site as a browser writes them. It accepts only
// origins that a header can name exactly: https, or http on this machine, no wildcards, and no IP
// address but 127.0.0.1, because browsers match no other.
func Parse(s string) (string, bool) {
	if len(s) > maxOrigin || strings.ContainsFunc(s,
		func(r rune) bool { return r <= ' ' || r == '\\' || r == '%' || r == 0x7f }) {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.Opaque != "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" ||
		u.ForceQuery || u.Fragment != "" || strings.HasSuffix(s, "#") {
		return "", false
	}
	host := strings.ToLower(ASCIIHost(u.Hostname()))
	if !hostName.MatchString(host) {
		return "", false
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, numeric := strconv.ParseUint(last, 0, 64)
	_, address := netip.ParseAddr(host)
	if host != "127.0.0.1" && (numeric == nil || address == nil) {
		return "", false
	}
	if u.Scheme != "https" && !IsLoopback(host) {
		return "", false
	}
	out := u.Scheme + "://" + host
	switch port := u.Port(); {
	case u.Scheme != "https" && u.Scheme != "http", strings.HasSuffix(u.Host, ":"):
		return "", false
	case port == "", u.Scheme == "https" && port == "443", u.Scheme == "http" && port == "80":
	default:
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return "", false
		}
		out += ":" + strconv.FormatUint(n, 10)
	}
	return out, true
}

// IsLoopback reports whether a host, without a port and with or without brackets, stands for this machine by its
// spelling: localhost, a name below it, or a loopback address. No name is resolved, because the answer of a name
// server is not proof: it may change between two questions.
func IsLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// IsConfidential reports whether a secret may be sent to an address: it is https, or http on this machine.
func IsConfidential(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Hostname() != "" &&
		(u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u.Hostname()))
}
