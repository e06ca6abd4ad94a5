// Package plaintext cleans texts that people and agents wrote before others read them.
package plaintext

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean removes characters that must not reach a reader from a name or description: control
// characters, the marks that reorder text on screen, and invisible characters, which can hide
// instructions to a model. Joiners stay, as scripts and emoji need them, and so does one variation
// selector after a character.
func Clean(s string) string {
	if isPlain(s, false) {
		return strings.TrimSpace(s)
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	var before rune
	selected, seen := false, false
	s = strings.Map(func(r rune) rune {
		// Those of the supplement choose between forms of Chinese characters.
		again := selected || r > 0xFFFF && !unicode.Is(unicode.Han, before)
		selected, before = unicode.Is(unicode.Variation_Selector, r), r
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u2028', r == '\u2029':
			return '\n'
		case r == '\u200c', r == '\u200d':
			return r
		case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // of format, but shown
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

// OneLine returns Clean on one line.
func OneLine(s string) string {
	if isPlain(s, true) {
		return strings.TrimSpace(s)
	}
	return strings.Join(strings.Fields(Clean(s)), " ")
}

// isPlain reports whether s is nothing but printable ASCII, with line ends
// and tabs unless it is to be one line, where no two spaces follow each other:
// most texts are, and need no cleaning.
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

// FirstSentence is how instructions introduce their agent when nothing else
// does: the first sentence of their first line, at most 300 characters.
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

// Cut returns s, or its beginning within n characters, ending with an ellipsis.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-1])) + "…"
}

// CleanList returns the texts of in that are not empty, cleaned, each once, and in lower case if lower is set.
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

// Slug returns s with each character that is no letter and no digit as a hyphen, in lower case.
func Slug(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return '-'
	}, s), "-")
}

// FilterFirst returns the first of list, at most most, for which ok holds.
func FilterFirst(list []string, most int, ok func(string) bool) []string {
	var out []string
	for _, s := range list {
		if len(out) < most && ok(s) {
			out = append(out, s)
		}
	}
	return out
}
