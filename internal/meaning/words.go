package meaning

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizeText returns a text in compatibility forms and lower case, without the accents of Latin, Greek and Cyrillic.
func normalizeText(text string) string {
	ascii := true
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(text)
	}
	bare := strings.Map(func(r rune) rune {
		if r >= 0x300 && r <= 0x36F {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(strings.ToValidUTF8(text, "\uFFFD")))
	return norm.NFC.String(bare)
}

// spaceless are the scripts that write no spaces between words.
var spaceless = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0E00, Hi: 0x0EFF, Stride: 1}, // Thai, Lao
		{Lo: 0x1000, Hi: 0x109F, Stride: 1}, // Myanmar
		{Lo: 0x1780, Hi: 0x17FF, Stride: 1}, // Khmer
		{Lo: 0x3005, Hi: 0x3007, Stride: 1},
		{Lo: 0x3041, Hi: 0x30FF, Stride: 1}, // Kana
		{Lo: 0x31F0, Hi: 0x31FF, Stride: 1},
		{Lo: 0x3400, Hi: 0x4DBF, Stride: 1}, // Han
		{Lo: 0x4E00, Hi: 0x9FFF, Stride: 1},
		{Lo: 0xF900, Hi: 0xFAFF, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x20000, Hi: 0x3FFFF, Stride: 1}},
}

// A run is a sequence of letters, digits and marks of one kind: a word, or several of a script without spaces.
type run struct {
	text      string
	spaceless bool
}

// splitRuns yields the runs of a text.
func splitRuns(text string) iter.Seq[run] {
	return func(yield func(run) bool) {
		start, kind := -1, false
		for i, r := range text {
			letter := isLetter(r)
			now := letter && r >= 0x0E00 && unicode.Is(spaceless, r)
			if start >= 0 && (!letter || now != kind) {
				if !yield(run{text[start:i], kind}) {
					return
				}
				start = -1
			}
			if letter && start < 0 {
				start, kind = i, now
			}
		}
		if start >= 0 {
			yield(run{text[start:], kind})
		}
	}
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z'
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M)
}

// A piece is a row of the model and its share in the text.
type piece struct {
	row   int
	share float32
}

// pieces yields the longest pieces that the model knows of a run, from left to right. What it does not know is
// skipped.
func (m *Model) pieces(r run) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		share := float32(1)
		if !r.spaceless {
			if row, size := m.findLongest(r.text); size == len(r.text) {
				yield(piece{row, share})
				return
			}
			share = pieceShare
		}
		for rest := r.text; rest != ""; {
			span := rest
			if r.spaceless {
				span = firstRunes(rest, maxSpanRunes)
			}
			row, size := m.findLongest(span)
			if size == 0 || !r.spaceless && size < minPieceBytes {
				_, width := utf8.DecodeRuneInString(rest)
				rest = rest[width:]
				continue
			}
			if !yield(piece{row, share}) {
				return
			}
			rest = rest[size:]
		}
	}
}

func firstRunes(text string, count int) string {
	for i := range text {
		if count == 0 {
			return text[:i]
		}
		count--
	}
	return text
}
