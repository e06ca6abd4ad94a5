package translate

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// Caps returns the capabilities of an agent: the tags of its skills in the form of records, without
// duplicates. If there are too many, those of the first skills are returned.
func Caps(a hub.Agent) []string {
	var out []string
	for _, t := range a.Tags() {
		if c, ok := Cap(t); ok {
			out = append(out, c)
		}
	}
	return sortUnique(out, record.MaxCaps)
}

// Cap converts a typed tag to the form of a capability: in lower case, accents dropped, white space
// as "-". ok is false for a tag with any character that a capability cannot have: c# is not c.
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
