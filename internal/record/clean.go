package record

import (
	"strings"
	"unicode"
)

// CleanText returns s without the characters that records refuse in texts: control characters and those
// that change the direction of text. Line breaks stay.
func CleanText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\u2028', r == '\u2029':
			return '\n'
		case turns(r), unicode.IsControl(r) && !unicode.IsSpace(r):
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

// CleanLine returns CleanText(s) on one line, with runs of white space as one space.
func CleanLine(s string) string { return strings.Join(strings.Fields(CleanText(s)), " ") }

// CutLine returns CleanLine(s), cut to at most n bytes at a character boundary.
func CutLine(s string, n int) string {
	s = CleanLine(s)
	for len(s) > n {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:n], ""))
	}
	return s
}

// turns reports whether r is a Unicode control that changes the direction of text, which can disguise
// its content.
func turns(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }
