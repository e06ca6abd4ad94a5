// Package wordsplit divides texts into words for the searches of agents and of messages, for every script in the
// same way. Both engines of the database and the index of agents get words that are divided and folded here.
package wordsplit

import (
	"iter"
	"strings"
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
	case r == '\'' || r == '’' || r == '\u00AD' || r == nonJoiner || r == '\u200D' || r == '\u0640':
		return Inside // U+0640 only stretches an Arabic word
	case r < 0x80:
		return Space
	case isEnclosed(r):
		return Alone
	case isStyled(r):
		return Part
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
	// Tail is the word behind an elided one, as eau in l'eau, "" without one.
	Tail string
	// Whole is set for the second and later parts of a compound, whose parts a hyphen, low line or dot divides, or a
	// zero-width non-joiner in Arabic and Persian: the parts up to this one, written together. People write co-operate
	// also as cooperate. It is at most MaxBytes long, "" otherwise.
	Whole string
}

// nonJoiner is the zero-width non-joiner, which divides parts of Persian words. In other scripts it only changes the
// form of letters.
const nonJoiner = '\u200C'

// elided are the words that French, Italian and Catalan write before an apostrophe without their last vowel.
const elided = " c d j l m n s t v qu jusqu lorsqu puisqu quoiqu un all dall dell nell sull coll quell quest "

// Elides reports whether a folded word before an apostrophe is one of its own.
func Elides(word string) bool { return strings.Contains(elided, " "+word+" ") }

// Split returns the words of text in their order.
func Split(text string) iter.Seq[Word] {
	return func(yield func(Word) bool) {
		var word []byte
		at, joined, tail := 0, false, 0
		whole := ""
		end := func() bool {
			if len(word) == 0 {
				return true
			}
			w := Word{Text: string(word), At: at, Joined: joined}
			if tail > 0 && len(word)-tail > 1 {
				w.Tail = w.Text[tail:]
			}
			if whole != "" && len(whole)+len(word) <= MaxBytes {
				w.Whole = whole + w.Text
			}
			word, joined, tail, whole = word[:0], true, 0, ""
			return yield(w)
		}
		text := Compose(text)
		for i, r := range text {
			kind := KindOf(r)
			if dividesCompound(word, r, text[i:]) {
				before := whole + string(word)
				before = before[:min(len(before), MaxBytes+1)] // too long stays too long
				if !end() {
					return
				}
				whole, joined = before, false
				continue
			}
			if kind == Inside {
				if (r == '\'' || r == '’') && Elides(string(word)) {
					tail = len(word)
				}
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
	return AppendFolded(word, r)
}
