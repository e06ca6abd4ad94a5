package translate

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// shorten returns s, or as much of its beginning as fits into max bytes with an ellipsis: whole
// words if possible, never a part of a character. If max is less than an ellipsis, it returns "".
func shorten(s string, max int) string {
	if len(s) <= max {
		return s
	}
	n := max - len(ellipsis)
	if n <= 0 {
		return ""
	}
	n = cutPoint(s, n)
	cut := s[:n]
	if r, _ := utf8.DecodeRuneInString(s[n:]); !unicode.IsSpace(r) {
		// A word that is longer than a third of the text is cut in the middle.
		if i := strings.LastIndexFunc(cut, unicode.IsSpace); i > n*2/3 {
			cut = cut[:i]
		}
	}
	cut = strings.TrimRightFunc(cut, func(r rune) bool {
		return unicode.IsSpace(r) ||
			strings.ContainsRune(".,;:–—-", r)
	})
	if cut == "" {
		return ""
	}
	return cut + ellipsis
}

// cutPoint returns the last position up to byte n of s, and not far before it, that does not split
// a character.
func cutPoint(s string, n int) int {
	const far = 64 // no real character has more bytes, but hostile text can
	for i := n; i > max(n-far, 0); i-- {
		if !isJoined(s, i) {
			return i
		}
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// isJoined reports whether the text before and after byte n of s is one character on the screen, as
// far as this can be decided without tables.
func isJoined(s string, n int) bool {
	if !utf8.RuneStart(s[n]) {
		return true
	}
	const joiner = '\u200d'
	before, _ := utf8.DecodeLastRuneInString(s[:n])
	after, _ := utf8.DecodeRuneInString(s[n:])
	return before == joiner || after == joiner || unicode.In(after, unicode.M, unicode.Variation_Selector) ||
		after >= 0x1F3FB && after <= 0x1F3FF || isFlag(before) && isFlag(after)
}

func isFlag(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }
