package wordsplit

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
	return foldOther(r), 0
}
