package markup

import (
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// Bounds of the parsed source. Measured with goldmark 1.8.7: at 16 KiB of source nested markers take 155 ms, `[a](`
// repeated 88 ms, `_a*` repeated 77 ms, all of them quadratic. Within these bounds no text takes longer than a few
// ms.
const (
	maxSource  = 16 << 10
	maxMarkers = 8 // of quotes and lists at the beginning of one line
	// A block is the text between two empty lines.
	maxBrackets   = 1000 // [ in one block
	maxTargets    = 400  // ]( in one block
	maxDelimiters = 1500 // * _ ~ that may begin or end emphasis, in one block
	// maxCells bounds columns × lines of tables: short rows are filled up.
	maxCells = 20_000
	// maxDepth is how deep elements may be nested. Browsers and parsers of
	// HTML give up at 512.
	maxDepth = 64
)

// isBounded reports whether parsing source costs little.
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

// countMarkers counts the quotes and list items that begin on a line.
func countMarkers(line string) int {
	s := strings.TrimSpace(line)
	if strings.Trim(s, "- \t") == "" || strings.Trim(s, "* \t") == "" {
		return 0 // a line drawn across the page
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

// countRuns counts characters that may begin or end emphasis. An underscore inside
// a word, as code is full of, does neither.
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

// nestingDepth is how deep the nodes of a text are nested.
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
