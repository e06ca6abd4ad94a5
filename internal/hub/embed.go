package hub

import (
	"context"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

const (
	// maxEmbedOrigins is how many other sites may show the chat with an agent:
	// all of them stand in one header.
	maxEmbedOrigins = 20
	// maxOrigin bounds an origin in bytes: a host name of 253, and scheme and port.
	maxOrigin = 270
)

// Embeddable returns an agent that other sites may show a chat of. Readers there are visitors, so
// the agent has to be public; any other gives the same NotFound fault as a missing one.
func (s *Service) Embeddable(ctx context.Context, name string) (Agent, error) {
	a, err := s.Get(ctx, ident.Actor{Kind: ident.Guest}, name)
	if fault.Is(err, fault.NotFound) || err == nil &&
		(len(a.EmbedOrigins) == 0 || a.Visibility != Public || a.Status.State == StatusDraft) {
		return Agent{}, fault.New(fault.NotFound,
			"There is no agent %.80q here that other sites may show. Its owner can allow it.", name)
	}
	return a, err
}

// cleanOrigins writes origins in the form that browsers use and leaves out duplicates. Invalid
// ones stay as they are, so that checkOrigins can name them.
func cleanOrigins(in []string) []string {
	out := []string{}
	for _, s := range in {
		s = strings.TrimSpace(s)
		if o, ok := webOrigin(s); ok {
			s = o
		}
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func checkOrigins(c *fault.Check, list []string) {
	c.Field(len(list) <= maxEmbedOrigins, "embed_origins", "name at most %d sites", maxEmbedOrigins)
	for _, s := range list {
		_, ok := webOrigin(s)
		c.Field(ok, "embed_origins", "%.80q is no origin of a site; write for example https://www.example.org, without a path and with other scripts as xn--… (http only for localhost and 127.0.0.1)", s)
	}
}

// hostName matches names as browsers write them: those of other scripts in the
// form that begins with xn--.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// webOrigin returns scheme, host and port of a site as a browser writes them. It accepts only
// origins that a header can name exactly: https, or http on this machine, no wildcards, and no IP
// address but 127.0.0.1, because browsers match no other.
func webOrigin(s string) (string, bool) {
	if len(s) > maxOrigin || strings.ContainsFunc(s,
		func(r rune) bool { return r <= ' ' || r == '\\' || r == '%' || r == 0x7f }) {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.Opaque != "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" ||
		u.ForceQuery || u.Fragment != "" || strings.HasSuffix(s, "#") {
		return "", false
	}
	host := strings.ToLower(u.Hostname())
	if !hostName.MatchString(host) {
		return "", false
	}
	loopback := host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "127.0.0.1"
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, numeric := strconv.ParseUint(last, 0, 64)
	_, address := netip.ParseAddr(host)
	if host != "127.0.0.1" && (numeric == nil || address == nil) {
		return "", false
	}
	if !loopback && u.Scheme != "https" {
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
