package bm25

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a query, so that hostile queries stay cheap.
const (
	maxQueryBytes = 1024
	maxQueryWords = 16 // searched words, also in phrases; as many excluded words are allowed
)

// query is the parsed text of a query; the zero value matches everything.
type query struct {
	clauses []clause
}

// clause is one word, a compound such as "real-time", or a quoted phrase.
type clause struct {
	parts   []string // the words in order
	joined  string   // the words of a compound written together, else ""
	phrase  bool     // true if quoted: must occur exactly as written
	exclude bool     // true if preceded by -: must not occur
}

// parseQuery parses any text; there is no invalid query. Words beyond the bounds are ignored.
func parseQuery(text string) query {
	if len(text) > maxQueryBytes {
		cut := maxQueryBytes
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	var q query
	var wanted, excluded int
	var t tokenizer
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if unicode.IsSpace(r) {
			text = text[size:]
			continue
		}
		exclude := false
		if r == '-' && len(text) > size {
			if next, _ := utf8.DecodeRuneInString(text[size:]); !unicode.IsSpace(next) {
				exclude = true
				text = text[size:]
				r, size = utf8.DecodeRuneInString(text)
			}
		}
		var piece string
		phrase := false
		if isQuote(r) {
			text = text[size:]
			end, endSize := closingQuote(text)
			if end < 0 {
				if exclude { // an excluded phrase that is still being typed
					break
				}
				continue // a quotation mark without a closing one is ignored
			}
			piece, text, phrase = text[:end], text[end+endSize:], true
		} else {
			end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || isQuote(r) })
			if end < 0 {
				end = len(text)
			}
			piece, text = text[:end], text[end:]
		}
		t.reset()
		t.addWords(piece, maxQueryWords)
		for _, c := range makeClauses(&t, phrase, exclude) {
			n := &wanted
			if exclude {
				n = &excluded
			}
			if *n += max(1, len(c.parts)); *n <= maxQueryWords {
				q.clauses = append(q.clauses, c)
			}
		}
	}
	return q
}

// makeClauses converts the tokens of a phrase into one clause, and other tokens into one clause for each
// word or compound: "a,b" gives two clauses.
func makeClauses(t *tokenizer, phrase, exclude bool) []clause {
	var list []clause
	var open clause
	pending := 0 // number of last clauses that may be parts of a compound
	for _, k := range t.toks {
		word := string(t.tokenText(k))
		switch {
		case phrase && !k.joined:
			open.parts = append(open.parts, word)
		case phrase:
		case k.joined:
			// The token of a compound follows those of its parts: take as many clauses as make up its text.
			c := clause{joined: word, exclude: exclude}
			for n := 0; n < len(word) && pending > 0; pending-- {
				last := list[len(list)-1]
				list = list[:len(list)-1]
				c.parts = append(last.parts, c.parts...)
				n += len(last.parts[0])
			}
			pending = 0
			list = append(list, c)
		default:
			list = append(list, clause{parts: []string{word}, exclude: exclude})
			pending++
		}
	}
	if phrase && len(open.parts) > 0 {
		open.phrase, open.exclude = true, exclude
		list = append(list, open)
	}
	return list
}

func isQuote(r rune) bool {
	switch r {
	case '"', '“', '”', '„', '«', '»':
		return true
	}
	return false
}

// closingQuote returns the offset and byte size of the next quotation mark in s; the offset is -1 if none is left.
func closingQuote(s string) (int, int) {
	for i, r := range s {
		if isQuote(r) {
			return i, utf8.RuneLen(r)
		}
	}
	return -1, 0
}
