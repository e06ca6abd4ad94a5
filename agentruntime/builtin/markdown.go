package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuoted is the maximum length of a quoted text of others, in characters.
const maxQuoted = 160

// quoteText makes text of others safe within a Markdown line: one line, bounded, every special
// character escaped, and nothing that a renderer would turn into a link or a conversation into a
// mention. An opening parenthesis stays, because a backslash before it would begin a formula; it makes no link,
// since the bracket before it is escaped.
func quoteText(s string, most int) string {
	s = boundLine(s, most)
	var b strings.Builder
	for i, r := range s {
		switch r {
		case '[': // with a backslash it begins a formula
			b.WriteString("&#91;")
			continue
		case '\\', '`', '*', '_', ']', '<', '>', '#', '|', '~', '&', '!', ')', '{', '}', '$', '@':
			b.WriteByte('\\')
		case ':':
			if strings.HasPrefix(s[i:], "://") || strings.HasSuffix(strings.ToLower(s[:i]), "mailto") ||
				strings.HasSuffix(strings.ToLower(s[:i]), "xmpp") {
				b.WriteByte('\\')
			}
		case '.':
			if i >= 3 && strings.EqualFold(s[i-3:i], "www") {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// boundLine returns s on one line, without invisible or reordering characters, cut after a word at most
// characters.
func boundLine(s string, most int) string {
	s = cutBytes(s, most*8) // Cut first, so that the work is bounded for any input.
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != '\u200D', r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	cut := string([]rune(s)[:most-1])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:.") + "…"
}

// firstSentence returns the start of a description up to its first full stop or line break, or the whole
// description.
func firstSentence(s string) string {
	s = strings.TrimSpace(cutBytes(s, 2000))
	if i := strings.IndexByte(s, '\n'); i > 0 {
		s = s[:i]
	}
	for i := 0; i+1 < len(s); i++ {
		if (s[i] == '.' || s[i] == '!' || s[i] == '?') && s[i+1] == ' ' && i > 20 {
			return s[:i+1]
		}
	}
	return s
}

// cutExcerpt returns the first blocks of a Markdown text, at most most characters of them, and whether
// that is all. Code blocks and tables stay whole or are cut between lines, with the fence closed.
func cutExcerpt(text string, most int) (string, bool) {
	list := splitBlocks(text)
	var out []string
	left := most
	for i, b := range list {
		n := utf8.RuneCountInString(b) + 2
		if n <= left {
			out = append(out, b)
			left -= n
			continue
		}
		if i == 0 || left > most/2 && isTable(b) || i == 1 && strings.HasSuffix(out[0], ":") {
			if part := cutBlock(b, left); part != "" {
				out = append(out, part)
			}
		}
		// Drop a sentence that ends with a colon, because the block it announces was cut off.
		if n := len(out); n > 1 && strings.HasSuffix(out[n-1], ":") {
			out = out[:n-1]
		}
		return strings.Join(out, "\n\n"), false
	}
	return strings.Join(out, "\n\n"), true
}

func isTable(block string) bool { return strings.HasPrefix(block, "|") }

// cutBlock returns the first lines of one block, at most most characters, with an open code fence
// closed.
func cutBlock(block string, most int) string {
	lines := strings.Split(block, "\n")
	fence := ""
	if strings.HasPrefix(lines[0], "```") || strings.HasPrefix(lines[0], "~~~") {
		fence = lines[0][:3]
		most -= 4
	}
	n := 0
	var out []string
	for _, l := range lines {
		if n += utf8.RuneCountInString(l) + 1; n > most {
			break
		}
		out = append(out, l)
	}
	switch {
	case fence != "" && len(out) < 2, isTable(block) && len(out) < 3:
		return ""
	case fence != "" && len(out) < len(lines):
		out = append(out, fence)
	case len(out) == 0:
		return boundLine(block, max(most, 2))
	}
	return strings.Join(out, "\n")
}

// splitBlocks splits Markdown at blank lines outside of fenced code.
func splitBlocks(text string) []string {
	var list []string
	var open []string
	fence := ""
	flush := func() {
		if len(open) > 0 {
			list = append(list, strings.Join(open, "\n"))
			open = nil
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case fence != "":
			open = append(open, line)
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
				fence = ""
				flush()
			}
			continue
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
			flush()
		case line == "":
			flush()
			continue
		}
		open = append(open, line)
	}
	flush()
	return list
}
