package chats

import (
	"slices"
	"strings"
	"unicode/utf8"

	"agentsite/internal/wordsplit"
	"agentsite/store/rows"
)

const (
	maxQueryWords  = 12
	maxPhraseWords = 60
	snippetRunes   = 200
	leadRunes      = 60 // runes of a snippet before the found word
)

// roomWords returns a text for the index, "" if it has no words. Each word begins with the id of the
// conversation, so that the index has a list of its own for a word in a conversation: a search reads the
// lists of the member's conversations and none of others, however many contain the word.
func roomWords(room, text string) string {
	var b strings.Builder
	add := func(word string) {
		b.WriteByte(' ')
		b.WriteString(room)
		b.WriteString(word)
	}
	for word := range wordsplit.Split(text) {
		if word.Whole != "" {
			add(word.Whole) // before its last part, behind which a phrase may go on
		}
		add(word.Text)
		for _, form := range wordsplit.Detach(word.Text) {
			add(form)
		}
		if word.Tail != "" {
			add(word.Tail)
		}
	}
	return strings.TrimPrefix(b.String(), " ")
}

// queryWords returns the words of a search text. Adjacent characters in scripts without spaces form
// one phrase in this order. With joined the parts of compounds are written together, as in cooperate for co-operate.
func queryWords(query string, joined bool) []string {
	var out []string
	n := 0 // words of the last phrase
	for word := range wordsplit.Split(query) {
		switch {
		case joined && word.Whole != "" && n == 1:
			out[len(out)-1] = word.Whole
		case word.Joined && n == maxPhraseWords:
		case word.Joined:
			out[len(out)-1] += " " + word.Text
			n++
		case len(out) == maxQueryWords:
			return out
		default:
			out, n = append(out, wordsplit.Base(word.Text)), 1
		}
	}
	return out
}

// around returns a snippet of the text on one line: around the first place of one of the words, or else
// the beginning.
func around(text string, words []string) string {
	line := wordsplit.Compose(strings.Join(strings.Fields(rows.ClipText(text, maxWordBytes)), " "))
	runes := []rune(line)
	at := utf8.RuneCountInString(line[:max(firstMatch(line, words), 0)])
	from := max(min(at-leadRunes, len(runes)-snippetRunes), 0)
	to := min(from+snippetRunes, len(runes))
	for i := from; from > 0 && i < at; i++ { // Begin the snippet with a whole word.
		if runes[i] == ' ' {
			from = i + 1
			break
		}
	}
	out := strings.TrimSpace(string(runes[from:to]))
	if from > 0 {
		out = "…" + out
	}
	if to < len(runes) {
		out += "…"
	}
	return out
}

// firstMatch returns the index in bytes of the first place of one of the phrases in text, or -1. The last word of a
// phrase matches as the beginning of a word.
func firstMatch(text string, phrases []string) int {
	list := slices.Collect(wordsplit.Split(text))
	wanted := make([][]string, len(phrases))
	for i, p := range phrases {
		wanted[i] = strings.Fields(p)
	}
	for i, w := range list {
		if slices.ContainsFunc(wanted, func(p []string) bool { return beginsWith(list[i:], p) }) {
			return w.At
		}
	}
	return -1
}

func beginsWith(list []wordsplit.Word, phrase []string) bool {
	last := len(phrase) - 1
	if last < 0 || len(list) <= last {
		return false
	}
	for i, w := range phrase[:last] {
		if list[i].Text != w {
			return false
		}
	}
	word := list[last].Text
	return strings.HasPrefix(word, phrase[last]) || strings.HasPrefix(list[last].Tail, phrase[last]) ||
		strings.HasPrefix(list[last].Whole, phrase[last]) ||
		slices.ContainsFunc(wordsplit.Detach(word), func(w string) bool { return strings.HasPrefix(w, phrase[last]) })
}
