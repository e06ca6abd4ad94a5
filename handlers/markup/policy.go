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
	allowMath(p)
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

// allowMath adds the elements of formulas. None of them loads, links or runs anything, or has a style.
func allowMath(p *bluemonday.Policy) {
	p.AllowNoAttrs().OnElements("math", "semantics", "annotation", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msub", "msup",
		"msubsup", "munder", "mover", "munderover", "mfrac", "msqrt", "mroot", "mstyle", "mphantom", "mtable", "mtr", "mtd")
	length, truth := regexp.MustCompile(`^(0|-?[0-9.]{1,6}em)$`), regexp.MustCompile(`^(true|false)$`)
	p.AllowAttrs("display").Matching(regexp.MustCompile(`^block$`)).OnElements("math")
	p.AllowAttrs("encoding").Matching(regexp.MustCompile(`^application/x-tex$`)).OnElements("annotation")
	p.AllowAttrs("mathvariant").Matching(regexp.MustCompile(`^normal$`)).OnElements("mi")
	p.AllowAttrs("stretchy", "fence", "movablelimits", "largeop").Matching(truth).OnElements("mo")
	p.AllowAttrs("form").Matching(regexp.MustCompile(`^(prefix|infix|postfix)$`)).OnElements("mo")
	p.AllowAttrs("lspace", "rspace", "minsize", "maxsize").Matching(length).OnElements("mo")
	p.AllowAttrs("width").Matching(length).OnElements("mspace")
	p.AllowAttrs("accent").Matching(truth).OnElements("mover")
	p.AllowAttrs("accentunder").Matching(truth).OnElements("munder")
	p.AllowAttrs("linethickness").Matching(length).OnElements("mfrac")
	p.AllowAttrs("displaystyle").Matching(truth).OnElements("mfrac", "mstyle", "mtable")
	p.AllowAttrs("scriptlevel").Matching(regexp.MustCompile(`^[0-2]$`)).OnElements("mstyle")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^math-boxed$`)).OnElements("mrow")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^math-(left|right)$`)).OnElements("mtd")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^` + mathClass + `-block$`)).OnElements("p")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^` + mathClass + `-(block|long)$`)).OnElements("span")
}
