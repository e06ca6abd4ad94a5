package markup

import (
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// Bounds of the Markdown source, above which a text is not parsed. The parser takes quadratic time for
// some inputs: with goldmark 1.8.7, 16 KiB of nested list markers take 155 ms, repeated `[a](` 88 ms and
// repeated `_a*` 77 ms. Within the bounds every text takes a few ms at most.
const (
	maxSource  = 16 << 10
	maxMarkers = 8 // quote and list markers at the beginning of one line
	// The next three count within one block: the text between two empty lines.
	maxBrackets   = 1000 // occurrences of [
	maxTargets    = 400  // occurrences of ](
	maxDelimiters = 1500 // characters * _ ~ that may begin or end emphasis
	// maxCells bounds columns × lines of a table, because the parser fills up short rows.
	maxCells = 20_000
	// maxDepth bounds the nesting of HTML elements. Browsers and HTML parsers give up at 512.
	maxDepth = 64
)

// isBounded reports whether source is within the bounds, so that parsing is fast.
func isBounded(source string) bool {
	if len(source) > maxSource {
		return false
	}
	var brackets, targets, delimiters, lines, columns int
	for line := range strings.Lines(source) {
		lines++
		if strings.TrimSpace(line) == "" {
			brackets, targets, delimiters = 0, 0, 0
			continue
		}
		if countMarkers(line) > maxMarkers {
			return false
		}
		brackets += strings.Count(line, "[")
		targets += strings.Count(line, "](")
		delimiters += countRuns(line)
		if brackets > maxBrackets || targets > maxTargets || delimiters > maxDelimiters {
			return false
		}
		if n := strings.Count(line, "|"); n > 0 && strings.Trim(line, "|-: \t\r\n>*+.)0123456789") == "" {
			columns = max(columns, n+1)
		}
	}
	return columns*lines <= maxCells
}

// countMarkers returns the number of quote and list markers at the beginning of a line.
func countMarkers(line string) int {
	s := strings.TrimSpace(line)
	if strings.Trim(s, "- \t") == "" || strings.Trim(s, "* \t") == "" {
		return 0 // a thematic break such as "* * *", which nests nothing
	}
	n := 0
	for {
		s = strings.TrimLeft(s, " \t")
		digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
		switch {
		case strings.HasPrefix(s, ">"):
			s = s[1:]
		case digits > 0 && digits < len(s) && (s[digits] == '.' || s[digits] == ')') && endsMarker(s[digits+1:]):
			s = s[digits+1:]
		case s != "" && strings.IndexByte("-+*", s[0]) >= 0 && endsMarker(s[1:]):
			s = s[1:]
		default:
			return n
		}
		n++
	}
}

func endsMarker(s string) bool { return s == "" || s[0] == ' ' || s[0] == '\t' }

// countRuns returns the number of characters that may begin or end emphasis. An underscore between two
// letters, which is frequent in code, cannot.
func countRuns(line string) int {
	n := 0
	for i := range len(line) {
		switch line[i] {
		case '*', '~':
			n++
		case '_':
			if i == 0 || i+1 == len(line) || !wordByte(line[i-1]) || !wordByte(line[i+1]) {
				n++
			}
		}
	}
	return n
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

// nestingDepth returns the depth of the deepest node below doc. It does not recurse, because hostile
// texts nest deeply.
func nestingDepth(doc ast.Node) int {
	deepest, now := 0, 0
	for n := doc.FirstChild(); n != nil; {
		deepest = max(deepest, now+1)
		if c := n.FirstChild(); c != nil {
			n, now = c, now+1
			continue
		}
		for n != nil && n != doc && n.NextSibling() == nil {
			n, now = n.Parent(), now-1
		}
		if n == nil || n == doc {
			break
		}
		n = n.NextSibling()
	}
	return deepest
}
