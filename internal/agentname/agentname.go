// Package agentname proposes names for agents that are registered without one.
package agentname

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mozillazg/go-unidecode"
	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"agentsite/internal/ident"
)

// Propose returns a name that ident.CheckName accepts, made from a title in any script or, if the
// title has no letters, from the host of address. The name may be taken already.
func Propose(title, address string) string {
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = u.Hostname()
		if wide, err := idna.Lookup.ToUnicode(host); err == nil {
			host = wide
		}
	}
	for _, s := range []string{Slug(title), Slug(host), "remote-agent"} {
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

// Accents that letters of Latin and Greek lose.
const firstAccent, lastAccent = 0x300, 0x36f

// Slug returns s in the letters a–z and digits, with one hyphen in place of each run of other
// characters, and no hyphen at either end. Letters with accents lose these, compatible forms such as
// half-width ones are made plain, and letters of other scripts are transliterated.
func Slug(s string) string {
	var b strings.Builder
	gap := false
	write := func(r rune) {
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		b.WriteRune(r)
	}
	wide := false // the character before is a word of its own, as in Chinese
	for _, r := range norm.NFKC.String(s) {
		if r >= firstAccent && r <= lastAccent || unicode.Is(unicode.Cf, r) {
			continue
		}
		// In other scripts a mark is a sound of its own, as in が, й and ि.
		if unicode.In(r, unicode.Latin, unicode.Greek) {
			r, _ = utf8.DecodeRuneInString(norm.NFD.String(string(r)))
		}
		plain := strings.ToLower(unidecode.Unidecode(string(r)))
		if plain == "" && unicode.IsMark(r) {
			continue // ends a consonant, and no word
		}
		word := unicode.In(r, unicode.Han)
		gap = gap || word || wide
		wide = word
		if r != '\'' && r != '’' {
			for _, c := range plain {
				if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
					write(c)
				} else if (c != '\'' && c != '`' || r < unicode.MaxASCII) && !unicode.IsMark(r) {
					gap = true
				}
			}
		}
		if plain == "" && !unicode.IsLetter(r) {
			gap = true
		}
	}
	return b.String()
}
