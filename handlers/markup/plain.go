package markup

import (
	"strings"
	"unicode"
)

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n",
	"\u2028", "\n", "\u2029", "\n")

// Clean removes control characters, and the Unicode marks that change the direction of text, because with
// them a text can look different from its content. Every form of a line's end becomes a newline.
func Clean(s string) string {
	s = lineEnds.Replace(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0xFEFF:
			return -1
		}
		return r
	}, s)
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\n", "<br>")

// plainHTML returns a cleaned text as escaped HTML with paragraphs and line breaks, and no other markup.
func plainHTML(source string) string {
	var b strings.Builder
	b.Grow(len(source) + len(source)/8)
	var par []string
	flush := func() {
		if len(par) > 0 {
			b.WriteString("<p>")
			escaper.WriteString(&b, strings.Join(par, "\n"))
			b.WriteString("</p>\n")
			par = par[:0]
		}
	}
	for line := range strings.SplitSeq(source, "\n") {
		if strings.TrimSpace(line) == "" {
			flush()
			continue
		}
		par = append(par, line)
	}
	flush()
	return b.String()
}
