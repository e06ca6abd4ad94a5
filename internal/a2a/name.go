package a2a

import (
	"net/url"
	"strings"

	"agentsite/internal/ident"
)

// ProposeName returns a name that ident.CheckName accepts, made from a title or, if the title has no
// usable letters, from the host of address. The name may be taken already.
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

// makeSlug returns the letters a–z and digits of s in lower case, with one hyphen in place of each run
// of other characters, and no hyphen at either end.
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
