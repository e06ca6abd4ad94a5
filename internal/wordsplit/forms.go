package wordsplit

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Compose returns text with one form of each character: accents and Korean letters put together, and half-width
// Japanese and the presentation forms of Arabic, Hebrew and Latin as ordinary letters. Split does so itself.
func Compose(text string) string {
	if !norm.NFC.IsNormalString(text) {
		text = norm.NFC.String(text)
	}
	if strings.IndexFunc(text, isForm) < 0 {
		return text
	}
	var b strings.Builder
	for text != "" {
		from := strings.IndexFunc(text, isForm)
		if from < 0 {
			from = len(text)
		}
		b.WriteString(text[:from])
		text = text[from:]
		to := strings.IndexFunc(text, func(r rune) bool { return !isForm(r) })
		if to < 0 {
			to = len(text)
		}
		b.WriteString(norm.NFKC.String(text[:to]))
		text = text[to:]
	}
	return norm.NFC.String(b.String())
}

// isForm reports whether r is another form of ordinary letters: a ligature, a presentation form or a half-width one.
func isForm(r rune) bool {
	return r >= 0xFB00 && (r <= 0xFDFF || r >= 0xFE70 && r <= 0xFEFC || r >= 0xFF61 && r <= 0xFFDC)
}

// Prefixes that Arabic and Hebrew write without a space before a word. Each is tried in its order.
var (
	arabicArticles = []string{"وال", "فال", "بال", "كال", "ولل", "ال", "لل"}
	arabicLetters  = []string{"و", "ف", "ب", "ك", "ل"}
	hebrewLetters  = []string{"ו", "ה", "ב", "ל", "מ", "ש", "כ"}
	// Persian particles, which are written with a zero-width non-joiner, a space or nothing between them and the word.
	// The last are also Arabic.
	persianBefore = []string{"نمي", "مي"}
	persianAfter  = []string{"هايمان", "هايشان", "هايتان", "هايي", "هايم", "هايت", "هايش", "هاي", "ها"}
)

const (
	minDetached = 3 // letters of a word without its prefix
	maxDetached = 3 // prefixes of one word that are taken off
)

// Detach returns the forms of a folded word without the prefixes that may be attached to it: for والكتاب those of
// الكتاب and كتاب. A letter that belongs to the word gives one form too many, which does no harm in an index.
func Detach(word string) []string {
	r, _ := utf8.DecodeRuneInString(word)
	var prefixes []string
	switch {
	case unicode.Is(unicode.Arabic, r):
		prefixes = append(arabicArticles[:len(arabicArticles):len(arabicArticles)], arabicLetters...)
	case r >= 0x05D0 && r <= 0x05EA:
		prefixes = hebrewLetters
	default:
		return nil
	}
	var forms []string
	last := []string{word}
	for range maxDetached {
		var next []string
		for _, w := range last {
			for _, p := range prefixes {
				if rest, ok := strings.CutPrefix(w, p); ok && utf8.RuneCountInString(rest) >= minDetached {
					next = append(next, rest)
				}
			}
		}
		for _, w := range next {
			if !contains(forms, w) {
				forms = append(forms, w)
			}
		}
		last = next
	}
	for _, w := range append([]string{word}, forms...) {
		for _, part := range persianParts(w) {
			if !contains(forms, part) {
				forms = append(forms, part)
			}
		}
	}
	return forms
}

// persianParts returns the parts of a folded word with a Persian particle written to it, nil without one.
func persianParts(word string) []string {
	for _, p := range persianBefore {
		if rest, ok := strings.CutPrefix(word, p); ok && utf8.RuneCountInString(rest) >= minDetached {
			return []string{p, rest}
		}
	}
	for _, p := range persianAfter {
		if rest, ok := strings.CutSuffix(word, p); ok && utf8.RuneCountInString(rest) >= minDetached {
			return []string{rest, p}
		}
	}
	return nil
}

// dividesCompound reports whether r, with which text begins, divides two parts of a compound, the first of which is a
// folded word: a hyphen, low line or dot between letters, or a zero-width non-joiner in the Arabic script.
func dividesCompound(word []byte, r rune, text string) bool {
	switch r {
	case '-', '_', '.', '\u2010', '\u2011', nonJoiner:
	default:
		return false
	}
	next, _ := utf8.DecodeRuneInString(text[utf8.RuneLen(r):])
	if r != nonJoiner {
		return len(word) > 0 && KindOf(next) == Part
	}
	before, _ := utf8.DecodeLastRune(word)
	return unicode.Is(unicode.Arabic, before) && unicode.Is(unicode.Arabic, next)
}

// Base returns a folded word without the article in front of it, for words of a query: only articles
// and the Hebrew ה are taken off, because other letters often belong to the word.
func Base(word string) string {
	for _, p := range arabicArticles {
		if rest, ok := strings.CutPrefix(word, p); ok && utf8.RuneCountInString(rest) >= minDetached {
			return rest
		}
	}
	if rest, ok := strings.CutPrefix(word, "ה"); ok && utf8.RuneCountInString(rest) >= minDetached {
		return rest
	}
	return word
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// foldOther folds a letter or digit beyond Latin: variants of Arabic letters, accents of Greek, the Cyrillic ё, and
// the digits of every script.
func foldOther(r rune) rune {
	switch r {
	case 'آ', 'أ', 'إ', 'ٱ':
		return 'ا'
	case 'ؤ':
		return 'و'
	case 'ئ', 'ى', 'ی', 'ې', 'ے':
		return 'ي'
	case 'ة', 'ۀ', 'ۂ', 'ہ', 'ھ', 'ە':
		return 'ه' // written so in Persian, Urdu and Kurdish
	case 'ک':
		return 'ك'
	case 'ё', 'Ё':
		return 'е'
	case 'ς':
		return 'σ'
	}
	if r >= 0x0370 && r <= 0x03FF || r >= 0x1F00 && r <= 0x1FFF {
		if base, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r))); unicode.IsLetter(base) {
			return unicode.ToLower(base)
		}
	}
	if unicode.Is(unicode.Nd, r) {
		return '0' + digitOf(r)
	}
	return unicode.ToLower(r)
}

// digitOf returns the value of a decimal digit. Unicode has the ten digits of a script one after the other.
func digitOf(r rune) rune {
	for _, t := range unicode.Nd.R16 {
		if r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	return 0
}
