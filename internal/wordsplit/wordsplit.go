// Package wordsplit divides texts into words for the searches of agents and of messages, for every script in the
// same way. Both engines of the database and the index of agents get words that are divided and folded here.
package wordsplit

import (
	"iter"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxBytes is the length of a word in bytes. Longer words are cut, so that a hostile text costs no more than an
// ordinary one.
const MaxBytes = 48

// Kind is the effect of a rune on the current word.
type Kind uint8

const (
	Space  Kind = iota // ends the word
	Part               // belongs to the word: letters, numbers, and vowel signs of scripts that need them
	Alone              // is a word of its own
	Inside             // is left out of the word: the apostrophe in it's, accents, vowel points
)

// KindOf returns the kind of r. A script that puts no spaces between words is taken apart into its characters, as is
// Korean, which writes endings without a space.
func KindOf(r rune) Kind {
	switch {
	case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z':
		return Part
	case r == '\'' || r == '’' || r == '\u00AD' || r == '\u200D' || r == '\u0640':
		return Inside // U+0640 only stretches an Arabic word
	case r < 0x80:
		return Space
	case unicode.Is(unicode.M, r):
		// Marks without a combining class are vowels of Indic scripts, in which words differ by them.
		if unicode.In(r, unicode.Me, unicode.Variation_Selector) || standsAlone(r) || norm.NFD.PropertiesString(string(r)).CCC() != 0 {
			return Inside
		}
		return Part
	case standsAlone(r):
		return Alone
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		return Part
	}
	return Space
}

func standsAlone(r rune) bool {
	return r >= 0x0E00 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai,
		unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Javanese, unicode.Balinese, unicode.Tai_Tham, unicode.Tai_Viet,
		unicode.Tai_Le, unicode.New_Tai_Lue, unicode.Bopomofo, unicode.Yi) || r == 'ー' || r == '〆')
}

// Word is a word of a text, folded (see Fold) and at most MaxBytes long.
type Word struct {
	Text string
	// At is the index in bytes at which the word begins in the composed text, see Compose.
	At int
	// Joined is true if no space is between the word and the one before.
	Joined bool
}

// Split returns the words of text in their order.
func Split(text string) iter.Seq[Word] {
	return func(yield func(Word) bool) {
		var word []byte
		at, joined := 0, false
		end := func() bool {
			if len(word) == 0 {
				return true
			}
			w := Word{string(word), at, joined}
			word, joined = word[:0], true
			return yield(w)
		}
		for i, r := range Compose(text) {
			kind := KindOf(r)
			if kind == Inside {
				continue
			}
			if kind != Part && !end() {
				return
			}
			if kind == Space {
				joined = false
				continue
			}
			if len(word) == 0 {
				at = i
			}
			word = appendRune(word, r)
			if kind == Alone && !end() {
				return
			}
		}
		end()
	}
}

// appendRune appends the folded r, unless the word is as long as it may be.
func appendRune(word []byte, r rune) []byte {
	if len(word) > MaxBytes-2*utf8.UTFMax {
		return word
	}
	a, b := Fold(r)
	word = utf8.AppendRune(word, a)
	if b != 0 {
		word = utf8.AppendRune(word, b)
	}
	return word
}
