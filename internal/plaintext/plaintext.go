// Package plaintext cleans texts of people and agents before others read them.
package plaintext

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean removes characters from a name or description that could deceive a reader: control
// characters, marks that reorder text on screen, and invisible characters, which can hide
// instructions to a model. Joiners stay, because scripts and emoji need them, and one variation
// selector after a character. A text without visible characters becomes "".
func Clean(s string) string {
	if isPlain(s, false) {
		return strings.TrimSpace(s)
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	var before rune
	selected, seen := false, false
	s = strings.Map(func(r rune) rune {
		// Supplementary variation selectors (above U+FFFF) stay only after Chinese characters, to
		// select their forms.
		again := selected || r > 0xFFFF && !unicode.Is(unicode.Han, before)
		selected, before = unicode.Is(unicode.Variation_Selector, r), r
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u2028', r == '\u2029':
			return '\n'
		case r == '\u200c', r == '\u200d':
			return r
		case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // a format character, but a visible one
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && !selected, selected && again:
			return -1
		}
		seen = seen || !unicode.IsSpace(r) && !selected
		return r
	}, s)
	if !seen {
		return ""
	}
	return strings.TrimSpace(s)
}

// OneLine returns Clean of s on one line, with single spaces.
func OneLine(s string) string {
	if isPlain(s, true) {
		return strings.TrimSpace(s)
	}
	return strings.Join(strings.Fields(Clean(s)), " ")
}

// isPlain reports whether s needs no cleaning besides trimming: it consists of printable ASCII, and
// of line ends and tabs unless line is set. With line set, two spaces in a row are not plain. Most
// texts are plain, so the check saves the slow path.
func isPlain(s string, line bool) bool {
	space := false
	for i := range len(s) {
		c := s[i]
		if c >= 0x7f || c < ' ' && (line || c != '\n' && c != '\t') || line && space && c == ' ' {
			return false
		}
		space = c == ' '
	}
	return true
}

// FirstSentence returns the first sentence of the first line of instructions, at most 300
// characters. It is the description of a prompt agent without a description of its own.
func FirstSentence(instructions string) string {
	s, _, _ := strings.Cut(strings.TrimSpace(instructions), "\n")
	for i, r := range s {
		if strings.ContainsRune(".!?", r) && (i+1 == len(s) || s[i+1] == ' ') {
			s = s[:i+1]
			break
		}
	}
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300])
	}
	return strings.TrimSpace(s)
}

// Cut returns s cut to at most n characters. A cut text ends with an ellipsis.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-1])) + "…"
}

// CleanList returns OneLine of each text, without empty and repeated ones, in lower case if lower
// is set. The result is never nil.
func CleanList(in []string, lower bool) []string {
	out := []string{}
	for _, s := range in {
		s = OneLine(s)
		if lower {
			s = strings.ToLower(s)
		}
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Slug returns s in lower case with each character that is no letter or digit replaced by a hyphen,
// and without hyphens at the ends. It may be empty.
func Slug(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return '-'
	}, s), "-")
}

// FilterFirst returns the texts for which ok holds, at most the first most of them; nil for none.
func FilterFirst(list []string, most int, ok func(string) bool) []string {
	var out []string
	for _, s := range list {
		if len(out) < most && ok(s) {
			out = append(out, s)
		}
	}
	return out
}
