package a2a

import (
	"net/url"
	"strings"

	"agentsite/internal/ident"
)

// ProposeName makes a name that ident.CheckName accepts from a title or, if the title has no usable
// letters, from the host of address.
func ProposeName(title, address string) string {
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = u.Hostname()
	}
	for _, s := range []string{makeSlug(title), makeSlug(host), "remote-agent"} {
		if s == "" {
			continue
		}
		for _, name := range []string{s, s + "-agent", "agent-" + s} {
			name = strings.Trim(name[:min(len(name), 40)], "-")
			if ident.CheckName(name) == nil {
				return name
			}
		}
	}
	return "remote-agent"
}

// makeSlug keeps a–z and 0–9 and puts one hyphen in each gap.
func makeSlug(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(s) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(r)
			continue
		}
		gap = true
	}
	return b.String()
}
