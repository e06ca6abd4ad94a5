package a2a

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line cleans text of remote agents for display on one line: at most max runes, without control,
// bidirectional or invisible characters, white space collapsed.
func Line(s string, max int) string {
	return cutRunes(strings.Join(strings.Fields(dropInvisible(s)), " "), max)
}

// Text is Line for text that keeps its line breaks.
func Text(s string, max int) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return cutRunes(strings.TrimSpace(dropInvisible(s)), max)
}

// dropInvisible removes characters that are invisible but change the display of the others. Joiners
// stay, because scripts and emoji need them.
func dropInvisible(s string) string {
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

func cutRunes(s string, max int) string {
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
