package bm25

import (
	"unicode"
	"unicode/utf8"

	"agentsite/internal/wordsplit"
)

// Bounds of the text that is read, so that a hostile text costs no more than an ordinary long one.
const (
	maxWordBytes  = wordsplit.MaxBytes
	maxFieldWords = 2000 // further words of a field are not indexed
	maxParts      = 8    // a compound of more parts is not joined
	maxPlainWord  = maxWordBytes - 2*utf8.UTFMax
)

// token is one word of a text: the bytes buf[from:to] of the tokenizer.
type token struct {
	from, to uint32
	// joined is true for a compound written together; its token follows those of its parts.
	joined bool
}

// tokenizer splits text into lower-case words without diacritics. A compound (real-time, node.js, openAI) gives its
// parts, followed by the compound written together. The zero value is ready; reset allows reuse.
type tokenizer struct {
	buf  []byte
	toks []token
}

func (t *tokenizer) reset() { t.buf, t.toks = t.buf[:0], t.toks[:0] }

func (t *tokenizer) tokenText(k token) []byte { return t.buf[k.from:k.to] }

// class is the effect of a rune on the current word.
type class uint8

const (
	space  class = iota // ends the word and the compound
	lower               // a letter or digit
	upper               // a capital letter, which may start the next part of a compound
	joiner              // ends the word, but not the compound if letters are on both sides
	inside              // dropped if letters are on both sides, as the apostrophe in it's; also combining marks
	alone               // a word of its own, for scripts written without spaces
)

func classOf(r rune) class {
	switch {
	case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
		return lower
	case r >= 'A' && r <= 'Z':
		return upper
	case r == '-' || r == '_' || r == '.' || r == '\u2010' || r == '\u2011' ||
		r == '\u200C': // between the parts of a Persian word
		return joiner
	}
	switch wordsplit.KindOf(r) {
	case wordsplit.Alone:
		return alone
	case wordsplit.Inside:
		return inside
	case wordsplit.Part:
		if unicode.IsUpper(r) {
			return upper
		}
		return lower
	}
	return space
}

// addWords appends at most limit words of s to toks and returns their number, which excludes joined compounds.
func (t *tokenizer) addWords(s string, limit int) int {
	s = wordsplit.Compose(s)
	words := 0
	var (
		first    = len(t.toks) // index of the current compound's first part
		start    = len(t.buf)  // start of the current word in buf
		prev     = space
		prevPrev = space
	)
	endWord := func() {
		if len(t.buf) > start && words < limit {
			t.toks = append(t.toks, token{from: uint32(start), to: uint32(len(t.buf))})
			words++
		}
		start = len(t.buf)
	}
	endCompound := func() {
		endWord()
		if n := len(t.toks) - first; n > 1 && n <= maxParts {
			from := len(t.buf)
			for _, k := range t.toks[first:] {
				t.buf = append(t.buf, t.tokenText(k)...)
			}
			if len(t.buf)-from <= maxWordBytes {
				t.toks = append(t.toks, token{from: uint32(from), to: uint32(len(t.buf)), joined: true})
			} else {
				t.buf = t.buf[:from]
			}
		}
		first, start = len(t.toks), len(t.buf)
	}
	for i := 0; i < len(s) && words < limit; {
		if prev == space && len(t.buf) == start {
			if n := plainWord(s[i:]); n > 0 {
				// Fast path: most words are plain letters followed by a space.
				t.buf = append(t.buf, s[i:i+n]...)
				t.buf[start] |= 0x20
				t.toks = append(t.toks, token{from: uint32(start), to: uint32(len(t.buf))})
				words++
				first, start, prevPrev = len(t.toks), len(t.buf), space
				i += n
				continue
			}
		}
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		next := i + size
		c := classOf(r)
		if prev == upper && r >= '0' && r <= '9' {
			c = upper // so that GPT4 is one word
		}
		switch c {
		case lower:
			if prev == upper && prevPrev == upper && !lastS(s[i:]) {
				t.splitLast(&start, endWord) // HTTPServer gives http, server
			}
			t.writeRune(r, start)
		case upper:
			if prev == lower {
				endWord()
			}
			t.writeRune(r, start)
		case alone:
			endCompound()
			t.writeRune(r, start)
			endCompound()
		case inside:
			if (r == '\'' || r == '’') && wordsplit.Elides(string(t.buf[start:])) {
				endWord() // l'eau gives l, eau
			}
			i = next
			continue // prev stays, so that it's becomes its
		case joiner:
			if prev != lower && prev != upper {
				c = space
				endCompound()
			} else {
				endWord()
			}
		case space:
			endCompound()
		}
		prevPrev, prev = prev, c
		i = next
	}
	endCompound()
	return words
}

// addDetached adds, to the tokens from an index on, the forms of Arabic and Hebrew words without attached prefixes, so
// that the beginning of a word finds it. They stand beside the text as compounds written together do.
func (t *tokenizer) addDetached(from int) {
	for _, k := range t.toks[from:] {
		if k.joined || t.buf[k.from] < utf8.RuneSelf {
			continue
		}
		for _, w := range wordsplit.Detach(string(t.tokenText(k))) {
			at := len(t.buf)
			t.buf = append(t.buf, w...)
			t.toks = append(t.toks, token{from: uint32(at), to: uint32(len(t.buf)), joined: true})
		}
	}
}

// plain marks bytes with 1 if they can be in a plain word (see plainWord), and with 2 if they end one. A
// full stop is checked separately, because it ends a word only if no word follows directly.
var plain = func() (t [256]uint8) {
	for c := range utf8.RuneSelf { // bytes of longer runes stay 0
		switch classOf(rune(c)) {
		case lower:
			t[c] = 1
		case space:
			t[c] = 2
		}
	}
	return t
}()

// plainWord returns the length of the word at the start of s if it needs no special treatment: ASCII
// lower-case letters and digits, possibly a capital first letter, and not part of a compound. It returns
// 0 for all other words.
func plainWord(s string) int {
	n := 0
	if c := s[0]; c >= 'A' && c <= 'Z' {
		if len(s) < 2 || s[1] < 'a' || s[1] > 'z' {
			return 0
		}
		n = 1
	}
	for n < len(s) && plain[s[n]] == 1 {
		n++
	}
	switch {
	case n == 0 || n > maxPlainWord:
		return 0
	case n == len(s) || plain[s[n]] == 2:
		return n
	case s[n] == '.' && (n+1 == len(s) || plain[s[n+1]] == 2):
		return n
	}
	return 0
}

// writeRune appends the folded rune to the current word, which begins at start, unless the word has maxWordBytes.
func (t *tokenizer) writeRune(r rune, start int) {
	if len(t.buf)-start > maxPlainWord {
		return
	}
	t.buf = wordsplit.AppendFolded(t.buf, r)
}

// splitLast ends the current word before its last rune, which becomes the first of the next word.
func (t *tokenizer) splitLast(start *int, endWord func()) {
	_, size := utf8.DecodeLastRune(t.buf[*start:])
	at := len(t.buf) - size
	if at <= *start {
		return
	}
	var tail [utf8.UTFMax]byte
	n := copy(tail[:], t.buf[at:])
	t.buf = t.buf[:at]
	endWord()
	t.buf = append(t.buf, tail[:n]...)
}

// lastS reports whether s starts with the plural s of an abbreviation, as in APIs: an s followed by no letter.
func lastS(s string) bool {
	if s[0] != 's' {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[1:])
	return len(s) == 1 || classOf(r) != lower && classOf(r) != upper
}
