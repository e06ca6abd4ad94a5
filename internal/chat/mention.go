package chat

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentsite/internal/ident"
	"agentsite/internal/weborigin"
)

// mentionedMembers returns the members that a text mentions as @name or @name@portal, in the order of the text. A
// name without a portal selects the member of this portal or, without one, the only member of that name.
func mentionedMembers(members []Member, text, portal string) []Member {
	var out []Member
	for _, h := range findMentions(text, portal) {
		i := slices.IndexFunc(members, func(m Member) bool { return m.Handle == h })
		if i < 0 && !strings.Contains(h, "@") && !strings.Contains(strings.ToLower(text), "@"+h+"@") {
			i = onlyNamed(members, h)
		}
		if i >= 0 && !hasMember(out, members[i]) {
			out = append(out, members[i])
		}
	}
	return out
}

// mentionedPeople returns the ids of the people among members that a text mentions, without the author.
func mentionedPeople(members []Member, text, portal, author string) (ids []string) {
	for _, m := range mentionedMembers(members, text, portal) {
		if m.Kind == "person" && m.ID != author {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// onlyNamed returns the index of the only member with that name, -1 if none or several have it.
func onlyNamed(members []Member, name string) int {
	at := -1
	for i, m := range members {
		if own, _, _ := strings.Cut(m.Handle, "@"); own != name {
			continue
		}
		if at >= 0 {
			return -1
		}
		at = i
	}
	return at
}

// findMentions returns the handles written as @name or @name@portal at the start of a word, in order,
// without those in quotes and code.
func findMentions(text, portal string) []string {
	if !strings.Contains(text, "@") {
		return nil
	}
	text = proseOf(text)
	var out []string
	for i := 0; i < len(text); i++ {
		if text[i] != '@' {
			continue
		}
		if i > 0 {
			if r, _ := utf8.DecodeLastRuneInString(text[:i]); unicode.IsLetter(r) || unicode.IsDigit(r) || r == '\\' || r == '/' {
				continue
			}
		}
		end := i + 1
		for end < len(text) && strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-@.:", text[end]) >= 0 {
			end++
		}
		end = hostEnd(text, i+1, end)
		word := strings.TrimRight(text[i+1:end], ".:-@")
		if h, ok := ident.ParseHandle(word, portal); ok && !slices.Contains(out, h.String()) {
			if out = append(out, h.String()); len(out) >= MaxMembers {
				break
			}
		}
		i = end - 1
	}
	return out
}

// hostEnd returns the end of a mention that begins at begin and whose ASCII characters end at end. A host in another
// script goes on behind them; but where a whole host stands before end, the rest is text without a space.
func hostEnd(text string, begin, end int) int {
	name, host, found := strings.Cut(text[begin:end], "@")
	if !found || name == "" || strings.Contains(strings.TrimRight(host, "."), ".") {
		return end
	}
	far := end
	for far < len(text) {
		r, n := utf8.DecodeRuneInString(text[far:])
		ascii := r < utf8.RuneSelf && (r == '-' || r == '.' || r == ':')
		if !ascii && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			break
		}
		far += n
	}
	if whole := strings.TrimRight(text[begin+len(name)+1:far], ".:-"); weborigin.ASCIIHost(whole) == whole {
		return end // no name of DNS
	}
	return far
}

// proseOf returns a Markdown text without block quotes and code, so that names in these do not count as
// mentions. A space takes the place of the removed text.
func proseOf(text string) string {
	var out, para strings.Builder
	end := func() { // end closes a paragraph; code spans cannot extend beyond it.
		out.WriteString(withoutSpans(para.String()))
		out.WriteByte('\n')
		para.Reset()
	}
	fence, blank, list := "", true, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		bare := strings.TrimLeft(line, " \t")
		wide := strings.ReplaceAll(line[:len(line)-len(bare)], "\t", "    ")
		switch {
		case fence != "":
			if run := leading(bare, fence[0]); len(wide) < 4 && len(run) >= len(fence) && strings.TrimSpace(bare[len(run):]) == "" {
				fence = ""
			}
			continue
		case bare == "":
			end()
			blank = true
			continue
		case len(wide) >= 4 && blank && !list:
			// indented code block; the line after it may be one as well, so blank stays true
			continue
		case bare[0] == '>':
			end()
			blank = false
			continue
		}
		if run := leading(bare, bare[0]); (bare[0] == '`' || bare[0] == '~') && len(run) >= 3 && (bare[0] == '~' || !strings.Contains(bare[len(run):], "`")) {
			end()
			fence, blank = run, true
			continue
		}
		if len(wide) < 4 {
			list = isItem(bare)
		}
		blank = false
		para.WriteString(line)
		para.WriteByte('\n')
	}
	end()
	return out.String()
}

// leading returns the longest prefix of s that consists of c only.
func leading(s string, c byte) string {
	n := 0
	for n < len(s) && s[n] == c {
		n++
	}
	return s[:n]
}

// isItem reports whether a line begins a Markdown list item, because indented text in a list is no code.
func isItem(s string) bool {
	n := 0
	for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n > 0 {
		return n+1 < len(s) && (s[n] == '.' || s[n] == ')') && s[n+1] == ' '
	}
	return len(s) > 1 && strings.IndexByte("-*+", s[0]) >= 0 && s[1] == ' '
}

// withoutSpans removes code spans (CommonMark): text between two runs of the same number of backticks.
func withoutSpans(s string) string {
	if !strings.Contains(s, "`") {
		return s
	}
	// Index the backtick runs by length first, so that each length is searched once and hostile input stays linear.
	at := make(map[int][]int)
	for i := 0; i < len(s); i++ {
		if s[i] == '`' {
			n := len(leading(s[i:], '`'))
			at[n] = append(at[n], i)
			i += n - 1
		}
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '`' {
			out.WriteByte(s[i])
			i++
			continue
		}
		n := len(leading(s[i:], '`'))
		rest := at[n]
		for len(rest) > 0 && rest[0] <= i {
			rest = rest[1:]
		}
		at[n] = rest
		if len(rest) == 0 {
			out.WriteString(s[i : i+n])
			i += n
			continue
		}
		out.WriteByte(' ')
		i = rest[0] + n
	}
	return out.String()
}
