// Package plain makes texts of strangers fit to be shown and signed: no control
// characters, nothing that turns the order of characters around, valid UTF-8.
// It knows no meaning of any text.
package plain

import (
	"strings"
	"unicode"
)

// Text is s without what records refuse in texts: lines stay.
func Text(s string) string {
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

// Line is Text on one line.
func Line(s string) string { return strings.Join(strings.Fields(Text(s)), " ") }

// Cut is Line of whole characters of at most n bytes.
func Cut(s string, n int) string {
	s = Line(s)
	for len(s) > n {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:n], ""))
	}
	return s
}

// turns reports whether a character turns the order of those around it.
func turns(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }
