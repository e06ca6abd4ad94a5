package markup

import (
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
)

// newPolicy is the allow-list of untrusted HTML. Nothing in it loads, acts, looks like a form or can be addressed
// by an id.
func newPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h3", "h4", "h5", "h6", "em", "strong", "del", "code", "pre", "blockquote",
		"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "span")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(language-[A-Za-z0-9+#._-]{1,40}|` + mathClass +
		`)$`)).OnElements("code")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^` + mathClass + `$`)).OnElements("pre")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^hl-(keyword|string|number|comment|name)$`)).OnElements("span")
	p.AllowAttrs("data-lang").Matching(languageName).OnElements("pre")
	p.AllowAttrs("href").Matching(regexp.MustCompile(`^(https?://[^/]|mailto:|/(` + strings.Join(ownPages,
		"|") + `)([/?#]|$))`)).OnElements("a")
	p.AllowAttrs("rel").Matching(regexp.MustCompile(`^` + linkRel + `$`)).OnElements("a")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(true) // of ours: the pattern above lets no others through
	p.AllowURLSchemes("http", "https", "mailto")
	return p
}
