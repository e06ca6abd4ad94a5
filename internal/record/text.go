package record

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentsite/internal/weborigin"
)

// maxURL is the longest address, in bytes.
const maxURL = 500

// isLine reports whether s is one line of at most max bytes without hidden content: no control
// characters, no marks that change the direction of text.
func isLine(s string, max int) bool { return fitsText(s, max, "") }

// isText is isLine for text with several lines: line feeds and tabs are allowed.
func isText(s string, max int) bool { return fitsText(s, max, "\n\t") }

func fitsText(s string, max int, also string) bool {
	if len(s) > max {
		return false
	}
	if isPrintable(s) {
		return true
	}
	if !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x2028, r == 0x2029:
			return true
		}
		return unicode.IsControl(r) && !strings.ContainsRune(also, r)
	})
}

// isPrintable reports whether s is printable ASCII; a fast path for most texts.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isFilledLine is isLine for a text that must not be blank.
func isFilledLine(s string, max int) bool { return strings.TrimSpace(s) != "" && isLine(s, max) }

// plainName reports whether s is a–z, 0–9 and -, beginning with a letter.
func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '-')) {
			return false
		}
	}
	return s != ""
}

// localID reports whether s may be an agent's id at its portal: 1 to 40 of a–z, 0–9 and -.
// Portals that use ULIDs write them in lower case.
func localID(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && c == '-') {
			return false
		}
	}
	return s != "" && len(s) <= 40
}

// isTag reports whether s may name a capability or a language: lower case, without spaces, at most
// max bytes, words of a taxonomy separated by /.
func isTag(s string, max int) bool {
	if len(s) > max {
		return false
	}
	for word := range strings.SplitSeq(s, "/") {
		for i := range len(word) {
			c := word[i]
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 &&
				(c == '-' || c == '_' || c == '.' || c == '+')) {
				return false
			}
		}
		if word == "" {
			return false
		}
	}
	return true
}

// isMediaType reports whether s is type/subtype, with or without parameters, in lower case and
// without spaces.
func isMediaType(s string) bool {
	kind, sub, _ := strings.Cut(s, "/")
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c >= 'A' && c <= 'Z' || strings.IndexByte(`,<>"'\`, c) >= 0 {
			return false
		}
	}
	return kind != "" && sub != "" && len(s) <= maxMediaType
}

// isDomain reports whether s is a host, with a port if it is not 443.
func isDomain(s string) bool { return len(s) <= maxPublisher && ValidOrigin("https://"+s) }

// ValidTag reports whether s may name a capability, a language, a kind or a protocol, of at most
// max bytes.
func ValidTag(s string, max int) bool { return isTag(s, max) }

// ValidMediaType reports whether s may be one of the inputs and outputs of an agent.
func ValidMediaType(s string) bool { return isMediaType(s) }

// isSorted reports whether list is sorted without duplicates.
func isSorted(list []string) bool {
	for i := 1; i < len(list); i++ {
		if list[i-1] >= list[i] {
			return false
		}
	}
	return true
}

// allOf reports whether list has at most max elements and ok holds for each.
func allOf(list []string, max int, ok func(string) bool) bool {
	if len(list) > max {
		return false
	}
	for _, s := range list {
		if !ok(s) {
			return false
		}
	}
	return true
}

// ValidOrigin reports whether s is an origin in its only valid spelling: https, or http on
// loopback; a lower-case host; a port only if it is not the scheme's own; nothing else.
func ValidOrigin(s string) bool {
	u, ok := parseAddress(s)
	return ok && s == u.Scheme+"://"+u.Host
}

// webAddress reports whether s is the address of a page or a service: as ValidOrigin, with a path
// and a query.
func webAddress(s string) bool {
	if plainAddress(s) {
		return true
	}
	_, ok := parseAddress(s)
	return ok
}

// plainAddress reports whether s is https, a host and a path of plain characters only: parseAddress
// accepts all of these, which most addresses are, at ten times the cost.
func plainAddress(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok || len(s) > maxURL {
		return false
	}
	host, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	for i := range len(path) {
		if c := path[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '/' ||
			c == '-' || c == '.' || c == '_' || c == '~') {
			return false
		}
	}
	return validHost(host) && !strings.Contains(host, ":")
}

func parseAddress(s string) (*url.URL, bool) {
	if len(s) > maxURL || !isLine(s, maxURL) || strings.ContainsAny(s, " \\") {
		return nil, false
	}
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.Opaque != "" || u.Fragment != "" || strings.HasSuffix(s, "#") {
		return nil, false
	}
	host, port := u.Hostname(), u.Port()
	if !validHost(host) || u.Host != hostPort(host, port) {
		return nil, false
	}
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port) {
		return nil, false
	}
	switch u.Scheme {
	case "https":
		return u, port != "443"
	case "http":
		return u, weborigin.IsLoopback(host) && port != "80"
	}
	return nil, false
}

// hostPort joins a host and a port in the form of URL.Hostname and URL.Port; the caller leaves the
// scheme's own port empty.
func hostPort(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" {
		host += ":" + port
	}
	return host
}

// validHost reports whether s is an IP address in its canonical spelling without a zone, or a name
// of DNS in lower case.
func validHost(s string) bool {
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip.Zone() == "" && !ip.Is4In6() && ip.String() == s
	}
	if s == "" || len(s) > 253 {
		return false
	}
	var last string
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
				return false
			}
		}
		last = label
	}
	// Some parsers read a host that ends in a number as an IP address.
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}
