package record

import (
	"strings"
	"unicode"
)

// CleanText returns s without the characters that records refuse in texts:
// control characters and those that change the direction of text. Lines stay.
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

// CleanLine returns CleanText on one line.
func CleanLine(s string) string { return strings.Join(strings.Fields(CleanText(s)), " ") }

// CutLine returns CleanLine, cut to whole characters of at most n bytes.
func CutLine(s string, n int) string {
	s = CleanLine(s)
	for len(s) > n {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:n], ""))
	}
	return s
}

// turns reports whether a character turns the order of those around it.
func turns(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }
