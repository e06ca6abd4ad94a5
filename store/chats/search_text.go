package chats

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"agentsite/internal/plaintext"
	"agentsite/store/rows"
)

const (
	maxQueryWords = 12
	maxWordRunes  = 60
	snippetRunes  = 200
	leadRunes     = 60 // runes of a snippet before the found word
)

// inWord reports whether the index takes r as a part of a word.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r)
}

// searchable returns a text for the index, with characters of scripts without spaces separated; "" if it
// has no words.
func searchable(text string) string {
	var b strings.Builder
	some := false
	for _, r := range text {
		some = some || inWord(r)
		switch {
		case plaintext.StandsAlone(r):
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		case r == 0:
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	if !some {
		return ""
	}
	return b.String()
}

// inToken reports whether the tokenizer of the index continues a word with r. Of the marks it takes only the
// diacritics of Latin letters; other marks end a word.
func inToken(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || r >= 0x300 && r <= 0x331
}

// roomWords returns a text for the index, "" if it has no words. Each word begins with the id of the
// conversation, so that the index has a list of its own for a word in a conversation: a search reads the
// lists of the member's conversations and none of others, however many contain the word.
func roomWords(room, text string) string {
	var b strings.Builder
	in := false // the rune before belongs to the same word
	for _, r := range text {
		if !inToken(r) {
			in = false
			continue
		}
		if single := plaintext.StandsAlone(r); single || !in {
			b.WriteByte(' ')
			b.WriteString(room)
			in = !single
		}
		b.WriteRune(r)
	}
	return strings.TrimPrefix(b.String(), " ")
}

// queryWords returns the words of a search text. Adjacent characters in scripts without spaces form
// one phrase in this order.
func queryWords(query string) []string {
	var out []string
	for _, field := range strings.FieldsFunc(query, func(r rune) bool { return !inWord(r) }) {
		if len(out) == maxQueryWords {
			break
		}
		runes := []rune(field)
		if w := strings.Join(strings.Fields(searchable(string(runes[:min(len(runes), maxWordRunes)]))), " "); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// fold returns the lower-case base character of r, because the index treats characters that differ in
// case or accent as the same.
func fold(r rune) rune {
	if r >= utf8.RuneSelf {
		r, _ = utf8.DecodeRuneInString(norm.NFD.String(string(r)))
	}
	return unicode.ToLower(r)
}

func folded(s string) []rune {
	out := []rune(s)
	for i, r := range out {
		out[i] = fold(r)
	}
	return out
}

// around returns a snippet of the text on one line: around the first place of one of the words, or else
// the beginning.
func around(text string, words []string) string {
	runes := []rune(strings.Join(strings.Fields(rows.ClipText(text, maxWordBytes)), " "))
	plain := folded(string(runes))
	at := len(plain)
	for _, w := range words {
		if i := indexWord(plain, folded(strings.ReplaceAll(w, " ", ""))); i >= 0 {
			at = min(at, i)
		}
	}
	if at == len(plain) {
		at = 0
	}
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

// indexWord returns the index of the first word that begins with w, or -1.
func indexWord(text, w []rune) int {
	if len(w) == 0 {
		return -1
	}
next:
	for i := 0; i+len(w) <= len(text); i++ {
		if text[i] != w[0] || i > 0 && inWord(text[i-1]) && !plaintext.StandsAlone(text[i-1]) && !plaintext.StandsAlone(text[i]) {
			continue
		}
		for k, r := range w {
			if text[i+k] != r {
				continue next
			}
		}
		return i
	}
	return -1
}
