package wordsplit

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Base letters of the accented Latin letters from U+00C0 and from U+1E00 on, one byte a rune; a dot means the rune
// has no single base letter.
const (
	latinFrom = 0x00C0
	latinBase = "aaaaaa.ceeeeiiiidnooooo.ouuuuy..aaaaaa.ceeeeiiiidnooooo.ouuuuy.y" +
		"aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiii..jjkk.llllll." +
		".llnnnnnn.nnoooooo..rrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzz." +
		"b......................i........oo.............uu..............." +
		".............aaiioouuuuuuuuuu.aaaa....ggkkoooo..j...gg..nnaa...." +
		"aaaaeeeeiiiioooorrrruuuusstt..hh......aaeeooooooooyy............" +
		"................"
	vietFrom = 0x1E00
	vietBase = "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmm" +
		"mmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvv" +
		"wwwwwwwwwwxxxxyyzzzzzzhtwy......aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee" +
		"eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy......"
)

// Fold returns the lower-case letter without its diacritic, as one rune and, for ligatures (ß, æ, œ, þ), a
// second one; zero means no rune.
func Fold(r rune) (rune, rune) {
	if r < 0x80 {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r, 0
	}
	switch r {
	case 'ß', 'ẞ':
		return 's', 's'
	case 'æ', 'Æ':
		return 'a', 'e'
	case 'œ', 'Œ':
		return 'o', 'e'
	case 'þ', 'Þ':
		return 't', 'h'
	}
	if i := int(r) - latinFrom; i >= 0 && i < len(latinBase) && latinBase[i] != '.' {
		return rune(latinBase[i]), 0
	}
	if i := int(r) - vietFrom; i >= 0 && i < len(vietBase) && vietBase[i] != '.' {
		return rune(vietBase[i]), 0
	}
	if r >= 0xFF01 && r <= 0xFF5E { // full-width ASCII becomes ordinary ASCII
		return Fold(r - 0xFEE0)
	}
	if f := foldOther(r); f != r {
		return Fold(f) // a small letter may have an accent of its own: Ƀ, ƀ, b
	}
	return r, 0
}

// AppendFolded appends the lower-case letters and digits of r without diacritics, at most eight bytes: "viii" for Ⅷ and
// "12" for ⑫.
func AppendFolded(word []byte, r rune) []byte {
	if s := spell(r); s != "" {
		return append(word, s...)
	}
	a, b := Fold(r)
	word = utf8.AppendRune(word, a)
	if b != 0 {
		word = utf8.AppendRune(word, b)
	}
	return word
}

// isEnclosed reports whether r is a number or an eastern letter in a circle or in brackets, which is a word of its own.
func isEnclosed(r rune) bool {
	return r >= 0x2460 && (r <= 0x249B || r >= 0x24EA && r <= 0x24FF || r >= 0x2776 && r <= 0x2793 ||
		r >= 0x3220 && r <= 0x3247 || r >= 0x3251 && r <= 0x325F || r >= 0x3280 && r <= 0x32BF ||
		r >= 0x32D0 && r <= 0x32FE || r >= 0x1F100 && r <= 0x1F10A)
}

// isStyled reports whether r is a Roman numeral, a unit written as one character such as ㎏, or a letter or digit in a
// circle or of a mathematical typeface.
func isStyled(r rune) bool {
	return r >= 0x2160 && (r <= 0x217F || r >= 0x249C && r <= 0x24E9 || r >= 0x3380 && r <= 0x33DF || r >= 0x1D400 && r <= 0x1D7FF ||
		r >= 0x1F110 && r <= 0x1F149)
}

// spell returns the ordinary letters and digits of a character that isEnclosed or isStyled, "" of others.
func spell(r rune) string {
	if !isEnclosed(r) && !isStyled(r) {
		return ""
	}
	// Unicode has no ordinary form of these.
	for _, run := range [...]struct{ from, to, number rune }{{0x2776, 0x277F, 1}, {0x2780, 0x2789, 1},
		{0x278A, 0x2793, 1}, {0x24EB, 0x24F4, 11}, {0x24F5, 0x24FE, 1}, {0x24FF, 0x24FF, 0}} {
		if r >= run.from && r <= run.to {
			return strconv.Itoa(int(run.number + r - run.from))
		}
	}
	var out []byte
	for _, r := range norm.NFKC.String(string(r)) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			a, _ := Fold(r)
			out = utf8.AppendRune(out, a)
		}
	}
	return string(out)
}
