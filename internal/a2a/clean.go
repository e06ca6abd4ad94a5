package a2a

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes foreign text fit for one line of ours: at most max runes, without
// control, bidirectional or invisible characters, white space collapsed.
func Line(s string, max int) string {
	return cut(strings.Join(strings.Fields(visible(s)), " "), max)
}

// Text is Line for text that keeps its line breaks.
func Text(s string, max int) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return cut(strings.TrimSpace(visible(s)), max)
}

// visible drops what does not show but changes how the rest is read. Joiners
// stay: scripts and emoji need them.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError, r == '\u2028', r == '\u2029':
			return ' '
		case r == '\u200c', r == '\u200d':
			return r
		case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r),
			unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
			return -1
		}
		return r
	}, s)
}

func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	n := 0
	for i := range s {
		if n == max-1 && utf8.RuneCountInString(s[i:]) > 1 {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
