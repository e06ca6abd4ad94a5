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
		// cut inside a word if the last space is in the first two thirds of the text
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

// cutPoint returns the last position up to byte n of s at which a cut splits no character. It searches at
// most far bytes.
func cutPoint(s string, n int) int {
	const far = 64 // no real character is longer, but hostile text can be
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

// isJoined reports whether a cut before byte n of s would split a character as displayed (letter with
// accents, emoji sequence), as far as this can be decided without Unicode tables.
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
