package egress

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"agentsite/internal/weborigin"
)

// maxURL is the maximum length of a URL in bytes.
const maxURL = 2048

// CheckURL parses and checks the form of a URL without looking its host up, so that a form can show
// problems at once. It returns the URL with lower-case scheme and host, the latter in the form of DNS, without
// fragment and default port. Client.CheckURL also checks the configuration of a client.
func CheckURL(s string) (*url.URL, error) {
	if len(s) > maxURL {
		return nil, newError(BadURL, "", nil, "the address is longer than %d characters", maxURL)
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f || s[i] == '\\' {
			return nil, newError(BadURL, "", nil, "the address holds a space, a backslash or a control character")
		}
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, newError(BadURL, "", err, "that is not an address like https://example.com/agent")
	}
	u.Fragment, u.RawFragment = "", ""
	u.Scheme = strings.ToLower(u.Scheme)
	u.Host = strings.ToLower(weborigin.ASCIIHost(u.Host))
	if _, _, err := checkForm(u); err != nil {
		return nil, err
	}
	host := u.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	switch port := u.Port(); {
	case port == "", u.Scheme == "http" && port == "80", u.Scheme == "https" && port == "443":
		u.Host = host
	default:
		u.Host = host + ":" + port
	}
	return u, nil
}

// CheckURL is the package's CheckURL and also refuses literal addresses that this client may not connect
// to. A URL that passes may still be refused later, if its host name leads to a private address.
func (c *Client) CheckURL(s string) (*url.URL, error) {
	u, err := CheckURL(s)
	if err != nil {
		return nil, err
	}
	if err := c.checkURL(u); err != nil {
		return nil, err
	}
	return u, nil
}

// checkRequest checks a request before it is sent and returns its host and port, the key for the gate.
func (c *Client) checkRequest(req *http.Request) (string, error) {
	if req.URL == nil {
		return "", newError(BadURL, "", nil, "the request has no address")
	}
	if err := c.checkURL(req.URL); err != nil {
		return "", err
	}
	if req.Host != "" && !strings.EqualFold(req.Host, req.URL.Host) {
		return "", newError(BadURL, req.URL.Hostname(), nil, "the request names another host than its address")
	}
	return net.JoinHostPort(strings.ToLower(req.URL.Hostname()), portOf(req.URL)), nil
}

func (c *Client) checkURL(u *url.URL) error {
	addr, literal, err := checkForm(u)
	if err == nil && literal && !c.policy.allowsAddr(addr) {
		return refusalError(u.Hostname(), addr)
	}
	return err
}

// checkForm checks everything about a URL except the policy of a client. literal is true if the host is
// an IP address, which is then addr.
func checkForm(u *url.URL) (addr netip.Addr, literal bool, err error) {
	bad := func(host, format string, args ...any) (netip.Addr, bool, error) {
		return netip.Addr{}, false, newError(BadURL, host, nil, format, args...)
	}
	switch u.Scheme {
	case "http", "https":
	case "":
		return bad("", "the address must begin with http:// or https://")
	default:
		return bad("", "only http and https addresses are called, not %s", makePrintable(u.Scheme))
	}
	if u.Opaque != "" || u.Host == "" || u.Hostname() == "" {
		return bad("", "the address names no host")
	}
	if u.User != nil {
		return bad("", "the address holds a user name or password; give credentials in their own field")
	}
	if addr, literal, err = parseHost(u.Hostname()); err != nil {
		return addr, literal, err
	}
	port, perr := strconv.ParseUint(portOf(u), 10, 16)
	if perr != nil || port == 0 {
		return bad(u.Hostname(), "the address has no valid port")
	}
	if notHTTP[uint16(port)] {
		return bad(u.Hostname(), "port %d belongs to another protocol than HTTP", port)
	}
	return addr, literal, nil
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// parseHost accepts host names and IP addresses in canonical form. A name whose last label is numeric
// must be a dotted IPv4 address, as in browsers: "127.1", "0x7f.1" and "2130706433" are refused, because
// some resolvers read them as addresses.
func parseHost(h string) (addr netip.Addr, literal bool, err error) {
	bad := func(why string) (netip.Addr, bool, error) {
		return netip.Addr{}, false, newError(BadURL, "", nil, "the host %s", why)
	}
	if strings.ContainsAny(h, "%") {
		return bad("has a zone or an escaped character")
	}
	if strings.Contains(h, ":") {
		a, err := netip.ParseAddr(h)
		if err != nil {
			return bad("is not a valid IPv6 address")
		}
		return a, true, nil
	}
	if len(h) > 253 {
		return bad("is longer than 253 characters")
	}
	labels := strings.Split(h, ".")
	for _, l := range labels {
		if l == "" {
			return bad("has a dot at its end or two in a row")
		}
		if len(l) > 63 {
			return bad("has a part longer than 63 characters")
		}
		for i := range len(l) {
			if ch := l[i]; !(ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || ch == '-' ||
				ch == '_') {
				return bad("has characters other than a–z, 0–9, - and dots; this is no name of " +
					"DNS in another script either")
			}
		}
	}
	if !isNumeric(labels[len(labels)-1]) {
		return netip.Addr{}, false, nil
	}
	a, err := netip.ParseAddr(h)
	if err != nil {
		return bad("is not an IPv4 address in its plain form")
	}
	return a, true, nil
}

// isNumeric reports whether some resolver could read label as a number, decimal or hexadecimal.
func isNumeric(label string) bool {
	l := strings.ToLower(label)
	if hex, ok := strings.CutPrefix(l, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(l, "0123456789") == ""
}

func refusalError(host string, addr netip.Addr) *Error {
	cause := &net.AddrError{Err: "not globally routable and not in --allow-cidr", Addr: addr.String()}
	return newError(Private, host, cause, "refused to connect to a private address")
}

// notHTTP holds ports whose services an HTTP request could abuse, or that no HTTP server uses.
var notHTTP = func() map[uint16]bool {
	m := make(map[uint16]bool)
	for _, p := range []uint16{
		1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77,
		79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123,
		135, 137, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514, 515,
		526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 873, 989,
		990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 3306, 3389, 3659,
		4045, 4190, 5060, 5061, 5432, 5900, 6000, 6379, 6566, 6665, 6666, 6667,
		6668, 6669, 6679, 6697, 10080, 11211, 27017,
	} {
		m[p] = true
	}
	return m
}()
