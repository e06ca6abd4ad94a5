package chat

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentsite/internal/task"
)

// TitleOf returns the title, at most 60 characters, that a conversation without one gets from its first message.
func TitleOf(parts []task.Part) string { return snippet(titleText(parts), 60) }

// branchPrefix begins the title of a branch, before the title of the original.
const branchPrefix = "Branch of "

// NamedAfter reports whether title was derived from the message title titleOf (see TitleOf), directly or
// by one or more branches of that conversation.
func NamedAfter(title, titleOf string) bool {
	for titleOf != "" {
		if title == titleOf {
			return true
		}
		if !strings.HasPrefix(title, branchPrefix) {
			return false
		}
		next := snippet(branchPrefix+titleOf, MaxTitleRunes)
		if next == titleOf { // Truncation makes every further branch title the same.
			return false
		}
		titleOf = next
	}
	return false
}

// titleText returns the text that a title is made of: the text parts, else the called tool or the first file name.
func titleText(parts []task.Part) string {
	var words []string
	for _, p := range parts {
		if p.Text != "" {
			words = append(words, p.Text)
		}
	}
	if len(words) > 0 {
		return strings.Join(words, " ")
	}
	var call struct {
		Tool string `json:"tool"`
	}
	for _, p := range parts {
		if json.Unmarshal(p.Data, &call) == nil && call.Tool != "" {
			return "Use of " + call.Tool
		}
		if p.Filename != "" {
			return p.Filename
		}
	}
	return task.PlainText(parts)
}

// snippet returns text on one line, cut to the given number of runes with an ellipsis.
func snippet(text string, runes int) string {
	text = oneLine(text)
	if utf8.RuneCountInString(text) <= runes {
		return text
	}
	r := []rune(text)[:runes-1]
	return strings.TrimSpace(string(r)) + "…"
}

func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || bidi(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// bidi reports whether r is a Unicode control that changes the direction of text; titles are stored
// without these, because they can disguise text.
func bidi(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}

func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
