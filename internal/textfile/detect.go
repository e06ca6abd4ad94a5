package textfile

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// Bounds of the detection.
const (
	maxSample   = 64 << 10 // bytes by which an encoding is detected
	verySure    = 0.9      // confidence from which chardet decides between readings that are all possible
	leastHan    = 0.3      // share of common characters in a text of Chinese or Korean; wrong readings have about 0.05
	leastCommon = 4        // different common characters that a text of Chinese or Korean must have
	leastWord   = 0.08     // share of common words in a sentence; texts with a lower one are lists, or read wrongly
	clearly     = 1.5      // factor between the shares of common words of the best reading and of the next one
)

// reading is the text of bytes in one encoding, and the share of its words or characters that are common in the
// language which fits best.
type reading struct {
	encoding encoding.Encoding
	text     string
	share    float64
}

// detect returns the encoding in which b is text of a language: its letters are those of one language, and among
// several such readings one has clearly more common words. It returns nil if that is not certain, because a wrong
// encoding changes the text without a sign of it.
func detect(b []byte) encoding.Encoding {
	b = sample(b)
	readings := allReadings(b)
	if len(readings) == 0 {
		return nil
	}
	best := readings[0]
	for _, r := range readings[1:] {
		if r.share > best.share {
			best = r
		}
	}
	unsure := best.share == 0 && !isList(best.text, best.encoding)
	for _, r := range readings {
		unsure = unsure || r.text != best.text && (best.share == 0 || best.share < clearly*r.share)
	}
	if !unsure {
		return best.encoding
	}
	sure := chardet.Detect(b)
	if e, err := htmlindex.Get(sure.Encoding); err == nil && sure.Confidence >= verySure {
		s, _ := decodeAs(e, b, true)
		for _, r := range readings {
			if r.text == s {
				return r.encoding
			}
		}
	}
	return nil
}

// sample returns the first lines of b with bytes beyond ASCII, at most maxSample bytes.
func sample(b []byte) (out []byte) {
	for line := range bytes.Lines(b) {
		if bytes.ContainsFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }) {
			if out = append(out, line...); len(out) >= maxSample {
				return out[:maxSample]
			}
		}
	}
	return out
}

// allReadings returns the possible readings of b.
func allReadings(b []byte) (out []reading) {
	for _, f := range families {
		for _, e := range f.encodings {
			text, err := decodeAs(e, b, true)
			if err != nil {
				continue
			}
			r := reading{e, text, -1}
			for name := range strings.FieldsSeq(f.languages) {
				if fitsAlphabet(text, alphabets[name]) {
					r.share = max(r.share, shareOfWords(text, name))
				}
			}
			if r.share < leastWord {
				r.share = min(r.share, 0)
			}
			if r.share >= 0 {
				out = append(out, r)
			}
		}
	}
	for _, one := range []struct {
		e      encoding.Encoding
		common string
	}{
		{simplifiedchinese.GB18030, commonOf["simplified"]}, {traditionalchinese.Big5, commonOf["traditional"]},
		{korean.EUCKR, commonOf["korean"]}, {japanese.ShiftJIS, ""}, {japanese.EUCJP, ""},
	} {
		text, err := decodeAs(one.e, b, true)
		if err != nil {
			continue
		}
		share, least := shareOfCommon(text, one.common), leastHan
		if one.common == "" {
			share, least = shareOfKana(text), halfWidth
		}
		if share >= least {
			out = append(out, reading{one.e, text, share})
		}
	}
	return out
}

// commonSigns are the signs that texts of all languages have; those in joining may stand within a word.
const (
	commonSigns = "«»‹›„“”‚‘’–—…•°§€£©®™·×±²³½¼¾µ÷†\u00a0\u00ad"
	joining     = "’·…\u00a0\u00ad\u200c\u200d"
)

// fitsAlphabet reports whether the characters beyond ASCII in text are letters of the language and common signs,
// where words have them. A few in a hundred may be foreign.
func fitsAlphabet(text string, language alphabet) bool {
	all, foreign := 0, 0
	before := ' '
	most := len(text) / 50
	runes := []rune(text)
	for i, r := range runes {
		next := ' '
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		if r >= utf8.RuneSelf {
			all++
			if !fitsRune(before, r, next, language) {
				foreign++
			}
		} else if isLetter(before) && before >= utf8.RuneSelf && unicode.IsDigit(r) {
			foreign++
		} else if before >= utf8.RuneSelf && isLetter(r) && isLetter(before) &&
			(!language.latin || unicode.IsLower(before) && unicode.IsUpper(r)) {
			foreign++
		}
		if before = r; foreign > most {
			return false
		}
	}
	return foreign*50 <= all
}

func fitsRune(before, r, next rune, language alphabet) bool {
	switch {
	case !isLetter(r):
		switch inside := isLetter(before) && isLetter(next); {
		case strings.ContainsRune("²³", r):
			return before == 'm' && !isLetter(next)
		case strings.ContainsRune("ºª", r):
			return strings.ContainsRune(language.signs, r) &&
				(unicode.IsDigit(before) || strings.ContainsRune("nN.", before))
		case strings.ContainsRune("¿¡", r):
			return strings.ContainsRune(language.signs, r) && isLetter(next) && !isLetter(before)
		case strings.ContainsRune(language.signs, r):
			return !inside
		case strings.ContainsRune("„‚", r):
			return !isLetter(before)
		case strings.ContainsRune("–—", r):
			return !inside || unicode.IsUpper(next)
		case strings.ContainsRune(commonSigns, r):
			return !inside || strings.ContainsRune(joining, r)
		}
		return false
	case !strings.ContainsRune(language.letters, unicode.ToLower(r)):
		return r == 'İ' && strings.ContainsRune(language.letters, 'ı')
	case unicode.IsLower(before) && unicode.IsUpper(r):
		return false
	case !language.latin && isLetter(before) && before < utf8.RuneSelf:
		return false
	}
	return true
}

func isLetter(r rune) bool {
	return unicode.IsLetter(r) && r != 'º' && r != 'ª' && r != 'µ' || unicode.IsMark(r)
}

// isList reports whether text in a Western encoding has letters beyond ASCII only within words of mostly ASCII, such as
// names in a table, which have no common words.
func isList(text string, e encoding.Encoding) bool {
	if e != charmap.Windows1252 {
		return false
	}
	found := false
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !isLetter(r) && r < utf8.RuneSelf }) {
		beyond := 0
		for i, r := range word {
			if r >= utf8.RuneSelf {
				beyond++
				if !isLetter(r) || i > 0 && unicode.IsUpper(r) {
					return false
				}
			}
		}
		if found = found || beyond > 0; utf8.RuneCountInString(word) < 3*beyond {
			return false
		}
	}
	return found
}

// shareOfWords returns the share of the words in text that are common in a language; of Thai, which has no spaces, the
// share of the letters in them.
func shareOfWords(text, language string) float64 {
	list := alphabets[language].words
	if language == thai {
		letters, rest := utf8.RuneCountInString(text), text
		for word := range strings.FieldsSeq(list) {
			rest = strings.ReplaceAll(rest, word, "")
		}
		return 1 - float64(utf8.RuneCountInString(rest))/float64(letters)
	}
	common := " " + list + " "
	all, found := 0, 0
	different := make(map[string]bool)
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !isLetter(r) }) {
		all++
		if word = strings.ToLower(word); strings.Contains(common, " "+word+" ") {
			found++
			different[word] = true
		}
	}
	if len(different) < 2 {
		return 0
	}
	return float64(found) / float64(max(all, 1))
}

// shareOfCommon returns the share of the Chinese and Korean characters in text that are in a list; 0 if a character
// beyond ASCII is of another script.
func shareOfCommon(text, list string) float64 {
	all, found := 0, 0
	different := make(map[rune]bool)
	for _, r := range text {
		switch {
		case r >= utf8.RuneSelf && strings.ContainsRune(list, r):
			all, found = all+1, found+1
			different[r] = true
		case isEastSign(r):
		case unicode.In(r, unicode.Han, unicode.Hangul):
			all++
		case r >= utf8.RuneSelf:
			all += 5
		}
	}
	if len(different) < leastCommon {
		return 0
	}
	return float64(found) / float64(max(all, 1))
}

// isEastSign reports whether r is a sign that Chinese, Japanese and Korean texts have.
func isEastSign(r rune) bool {
	return r >= 0x3000 && r <= 0x301f || r >= 0xff01 && r <= 0xff5e ||
		strings.ContainsRune("“”‘’…—·《》×°→←■●○★※①②③", r)
}

// halfWidth is the worth of a half-width kana. It is small, because Russian in KOI8-R has the same bytes.
const halfWidth = 0.1

// leastNarrow is the number of half-width kana that a text without others must have.
const leastNarrow = 8

var (
	wideKana   = regexp.MustCompile(`[\x{3041}-\x{30ff}]`)
	narrowKana = regexp.MustCompile(`[\x{ff66}-\x{ff9f}]`)
	// wrongKana matches a sound mark or small letter that cannot stand there.
	wrongKana = regexp.MustCompile(`(?:^|[^\x{ff73}\x{ff76}-\x{ff84}\x{ff8a}-\x{ff8e}])\x{ff9e}|` +
		`(?:^|[^\x{ff8a}-\x{ff8e}])\x{ff9f}|(?:^|[^\x{ff66}-\x{ff9f}])[\x{ff67}-\x{ff70}]|[A-Za-z\[\\^]` +
		`[\x{ff66}-\x{ff9f}]|(?:^|[^\x{3041}-\x{30ff}])[ァィゥェォッャュョぁぃぅぇぉっゃゅょー]|` +
		`(?:^|[^\x{3041}-\x{30ff}\p{Han}])ん`)
	soundMark = regexp.MustCompile(`[\x{ff67}-\x{ff70}\x{ff9e}\x{ff9f}]`)
)

// shareOfKana returns the share of kana in the characters of text beyond ASCII.
func shareOfKana(text string) float64 {
	all := 0
	for _, r := range text {
		switch {
		case isEastSign(r) || r >= 0xff61 && r <= 0xff65:
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー' || r >= 0xff66 && r <= 0xff9f:
			all++
		case r >= utf8.RuneSelf:
			all += 5
		}
	}
	narrow := len(narrowKana.FindAllString(text, -1))
	wide := len(wideKana.FindAllString(text, -1))
	if len(wrongKana.FindAllString(text, -1))*50 > narrow+wide ||
		wide < 3 && (narrow < leastNarrow || !soundMark.MatchString(text)) {
		return 0
	}
	return (float64(wide) + halfWidth*float64(narrow)) / float64(max(all, 1))
}
