package plaintext

import (
	"unicode"
	"unicode/utf8"
)

// IsEmoji reports whether a text is one emoji: a picture with its modifiers and joined pictures, a flag,
// or a keycap. It may accept a few invalid sequences; its purpose is to refuse words as reactions.
func IsEmoji(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	const joiner, keycap, picture = 0x200D, 0x20E3, 0xFE0F
	r := []rune(s)
	// keycap emoji: a digit, # or *, an optional variation selector, and U+20E3
	if len(r) >= 2 && r[len(r)-1] == keycap {
		return len(r) <= 3 && (r[0] >= '0' && r[0] <= '9' || r[0] == '#' || r[0] == '*') && (len(r) == 2 || r[1] == picture)
	}
	flag := func(c rune) bool { return c >= 0x1F1E6 && c <= 0x1F1FF }
	if flag(r[0]) {
		return len(r) == 2 && flag(r[1])
	}
	base := false // The previous rune is a picture or a modifier of it; a joiner is valid only there.
	for _, c := range r {
		switch {
		case c == joiner:
			if !base {
				return false
			}
			base = false
		case c == picture, c >= 0x1F3FB && c <= 0x1F3FF, c >= 0xE0020 && c <= 0xE007F:
			if !base {
				return false
			}
		case !base && isPicture(c):
			base = true
		default:
			return false
		}
	}
	return base
}

func isPicture(c rune) bool {
	switch {
	case c >= 0x1F000 && c <= 0x1FAFF:
		return true
	case c == 0xA9 || c == 0xAE || c == 0x2122 || c == 0x203C || c == 0x2049 || c == 0x2139 || c == 0x3030 || c == 0x303D:
		return true
	case c >= 0x2190 && c <= 0x2BFF || c == 0x3297 || c == 0x3299:
		return unicode.In(c, unicode.So, unicode.Sm)
	}
	return false
}
