package markup

import (
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
)

// newPolicy returns the allow-list for HTML of untrusted texts. The allowed elements load nothing, run
// nothing, do not look like forms, and have no ids that page scripts could confuse with their own.
func newPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h3", "h4", "h5", "h6", "em", "strong", "del", "code", "pre", "blockquote",
		"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "span")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowAttrs("value").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("li")
	p.AllowAttrs("dir").Matching(regexp.MustCompile(`^auto$`)).OnElements("ul", "ol", "blockquote", "table")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(language-[A-Za-z0-9+#._-]{1,40}|` + mathClass +
		`)$`)).OnElements("code")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^` + mathClass + `$`)).OnElements("pre")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^hl-(keyword|string|number|comment|name)$`)).OnElements("span")
	p.AllowAttrs("data-lang").Matching(languageName).OnElements("pre")
	p.AllowAttrs("href").Matching(regexp.MustCompile(`^(https?://[^/]|mailto:|/(` + strings.Join(ownPages,
		"|") + `)([/?#]|$))`)).OnElements("a")
	p.AllowAttrs("rel").Matching(regexp.MustCompile(`^` + linkRel + `$`)).OnElements("a")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^` + pictureClass + `$`)).OnElements("a")
	p.AllowAttrs("title").OnElements("a")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(true) // only paths of this portal, because the pattern above excludes others
	p.AllowURLSchemes("http", "https", "mailto")
	return p
}
