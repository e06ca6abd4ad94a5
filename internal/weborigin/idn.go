package weborigin

import (
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// ASCIIHost returns a host, with or without a port, in the form of DNS: names in other scripts become those that begin
// with xn-- (UTS #46, as browsers look names up). Hosts of ASCII alone and hosts that are no valid names are returned
// unchanged, so that the checks of addresses refuse the latter.
func ASCIIHost(host string) string {
	if isASCII(host) {
		return host
	}
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		name, port = host[:i], host[i:]
	}
	out, err := idna.Lookup.ToASCII(name)
	if err != nil || strings.ContainsAny(out, "/?#@:%\\") {
		return host
	}
	return out + port
}

// ASCIIAddress returns a URL with its host in the form of DNS, see ASCIIHost. Other texts are returned unchanged.
func ASCIIAddress(s string) string {
	if isASCII(s) {
		return s
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || isASCII(u.Host) {
		return s
	}
	ascii := ASCIIHost(u.Host)
	if ascii == u.Host {
		return s
	}
	// The rest of the address stays as it was written.
	begin, rest, found := strings.Cut(s, "//")
	if !found {
		return s
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	user := ""
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user = authority[:i+1]
	}
	return begin + "//" + user + ascii + rest[end:]
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
