package formula

import "strings"

// typefaces are the commands that set their argument in another typeface, switches those that change the rest of the
// group.
var (
	typefaces = map[string]string{
		`\mathrm`: "normal", `\mathnormal`: "", `\mathbf`: "bold", `\mathit`: "italic", `\boldsymbol`: "bold-italic",
		`\bm`: "bold-italic", `\mathbb`: "double-struck", `\mathcal`: "script", `\mathscr`: "script",
		`\mathfrak`: "fraktur", `\mathsf`: "sans-serif", `\mathtt`: "monospace",
	}
	switches = map[string]string{`\rm`: "normal", `\bf`: "bold", `\it`: "italic", `\cal`: "script"}
)

// letterforms are the first capital, small letter and digit of a typeface in Unicode, 0 without one. Browsers know no
// typeface but by these letters.
var letterforms = map[string][3]rune{
	"bold": {0x1d400, 0x1d41a, 0x1d7ce}, "italic": {0x1d434, 0x1d44e, 0}, "bold-italic": {0x1d468, 0x1d482, 0x1d7ce},
	"script": {0x1d49c, 0x1d4b6, 0}, "fraktur": {0x1d504, 0x1d51e, 0}, "double-struck": {0x1d538, 0x1d552, 0x1d7d8},
	"sans-serif": {0x1d5a0, 0x1d5ba, 0x1d7e2}, "monospace": {0x1d670, 0x1d68a, 0x1d7f6},
}

// olderForms are letters that Unicode had before the others of their typeface.
var olderForms = map[string]map[rune]rune{
	"italic":        {'h': 'ℎ'},
	"script":        {'B': 'ℬ', 'E': 'ℰ', 'F': 'ℱ', 'H': 'ℋ', 'I': 'ℐ', 'L': 'ℒ', 'M': 'ℳ', 'R': 'ℛ', 'e': 'ℯ', 'g': 'ℊ', 'o': 'ℴ'},
	"fraktur":       {'C': 'ℭ', 'H': 'ℌ', 'I': 'ℑ', 'R': 'ℜ', 'Z': 'ℨ'},
	"double-struck": {'C': 'ℂ', 'H': 'ℍ', 'N': 'ℕ', 'P': 'ℙ', 'Q': 'ℚ', 'R': 'ℝ', 'Z': 'ℤ'},
}

// greekForms are the capital and the small alpha of the typefaces that have Greek letters.
var greekForms = map[string][2]rune{"bold": {0x1d6a8, 0x1d6c2}, "italic": {0x1d6e2, 0x1d6fc}, "bold-italic": {0x1d71c, 0x1d736}}

// styleText returns letters and digits in the typeface of the present group.
func (p *parser) styleText(s string) string { return styleLetters(s, p.variant) }

func styleLetters(s, typeface string) string {
	forms, ok := letterforms[typeface]
	if !ok {
		return s
	}
	greek := greekForms[typeface]
	entity := false // letters in &lt; and its like stay
	return strings.Map(func(c rune) rune {
		entity = c == '&' || entity && c != ';'
		older, isOlder := olderForms[typeface][c]
		switch {
		case entity:
		case isOlder:
			return older
		case c >= 'A' && c <= 'Z':
			return forms[0] + c - 'A'
		case c >= 'a' && c <= 'z':
			return forms[1] + c - 'a'
		case c >= '0' && c <= '9' && forms[2] != 0:
			return forms[2] + c - '0'
		case c >= 'Α' && c <= 'Ω' && greek[0] != 0:
			return greek[0] + c - 'Α'
		case c >= 'α' && c <= 'ω' && greek[1] != 0:
			return greek[1] + c - 'α'
		}
		return c
	}, s)
}
