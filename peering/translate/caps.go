package translate

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// Caps are the capabilities of an agent: the tags of its skills as records
// write them, those of the first skills when there are too many.
func Caps(a hub.Agent) []string {
	var out []string
	for _, t := range a.Tags() {
		if c, ok := Cap(t); ok {
			out = append(out, c)
		}
	}
	return ordered(out, record.MaxCaps)
}

// Cap returns a tag that somebody typed as the tag of a capability: in lower
// case, accents dropped, white space as "-". A tag with anything in it that
// the tag of a capability cannot have makes none: c# is not c.
func Cap(typed string) (string, bool) {
	var b strings.Builder
	space := false
	for _, r := range norm.NFKD.String(strings.ToLower(strings.TrimSpace(typed))) {
		switch {
		case unicode.Is(unicode.Mn, r):
			continue
		case unicode.IsSpace(r):
			space = true
			continue
		}
		if s := b.String(); space && !strings.HasSuffix(s, "/") && r != '/' {
			b.WriteByte('-')
		}
		space = false
		b.WriteRune(r)
	}
	s := b.String()
	return s, record.ValidTag(s, record.MaxCap)
}
