package demo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// errEmpty is the answer of every agent to an empty message.
var errEmpty = sorryf("Send me something to work on.")

// textStatistics counts the parts of a text.
func textStatistics(in string) (string, error) {
	words := wordsOf(in)
	if len(words) == 0 {
		return "", errEmpty
	}
	longest := slices.MaxFunc(words, func(a, b string) int { return cmp.Compare(utf8.RuneCountInString(a), utf8.RuneCountInString(b)) })
	var b strings.Builder
	fmt.Fprintf(&b, "| what | how many |\n|---|---|\n| characters | %d |\n| words | %d |\n| different words | %d |\n| sentences | %d |\n| lines | %d |\n",
		utf8.RuneCountInString(in), len(words), len(frequencies(words)), sentences(in), strings.Count(strings.TrimSpace(in), "\n")+1)
	fmt.Fprintf(&b, "\nThe longest word is **%s**. Reading it aloud takes about %s.\n", longest, readingTime(len(words)))
	return b.String(), nil
}

// keywords names the words that carry a text.
func keywords(in string) (string, error) {
	var words []string
	for _, w := range wordsOf(in) {
		if w = strings.ToLower(w); utf8.RuneCountInString(w) > 2 && !slices.Contains(smallWords, w) {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return "", errEmpty
	}
	counts := frequencies(words)
	list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var b strings.Builder
	b.WriteString("The words that carry this text:\n\n")
	for _, w := range list[:min(8, len(list))] {
		fmt.Fprintf(&b, "- **%s**, %s\n", w, times(counts[w]))
	}
	return b.String(), nil
}

// smallWords are left out of keywords.
var smallWords = strings.Fields("the and for are was were that this with from have has had not but you your they them their its our out all can will would what when where which who how why than then there here into over under about been more most some such only also very just any each one two")

// readability is the Flesch reading ease of an English text.
func readability(in string) (string, error) {
	words := wordsOf(in)
	if len(words) < 5 {
		return "", sorryf("Send me at least five words of English; a paragraph is better.")
	}
	syllables := 0
	for _, w := range words {
		syllables += syllablesOf(w)
	}
	n := float64(len(words))
	score := 206.835 - 1.015*n/float64(sentences(in)) - 84.6*float64(syllables)/n
	level := "very hard: for specialists"
	for _, l := range []struct {
		least float64
		name  string
	}{{90, "very easy: a child of eleven reads it"}, {70, "easy: like a conversation"}, {60, "plain English"}, {50, "fairly hard: like a newspaper of record"}, {30, "hard: like a university text"}} {
		if score >= l.least {
			level = l.name
			break
		}
	}
	return fmt.Sprintf("Flesch reading ease **%.1f**: %s.\n\n%.1f words to a sentence, %.2f syllables to a word.", score, level, n/float64(sentences(in)), float64(syllables)/n), nil
}

// caseForms writes a name in the ways programs spell names.
func caseForms(in string) (string, error) {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words, word = append(words, strings.ToLower(string(word))), nil
		}
	}
	var before rune
	for _, r := range in {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && unicode.IsLower(before):
			end()
			word = append(word, r)
		default:
			word = append(word, r)
		}
		before = r
	}
	if end(); len(words) == 0 {
		return "", errEmpty
	}
	pascal := ""
	for _, w := range words {
		pascal += title(w)
	}
	first, size := utf8.DecodeRuneInString(pascal)
	return fmt.Sprintf("| form | |\n|---|---|\n| camel | `%s` |\n| Pascal | `%s` |\n| snake | `%s` |\n| constant | `%s` |\n| kebab, good in addresses | `%s` |\n",
		string(unicode.ToLower(first))+pascal[size:], pascal, strings.Join(words, "_"), strings.ToUpper(strings.Join(words, "_")), strings.Join(words, "-")), nil
}

// sortLines sorts lines and says which stood there more than once.
func sortLines(in string) (string, error) {
	lines := strings.FieldsFunc(in, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) < 2 {
		lines = strings.Split(in, ",")
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	if len(lines) < 2 {
		return "", sorryf("Send me some lines, or words with commas between them.")
	}
	counts := frequencies(lines)
	list := slices.Sorted(maps.Keys(counts))
	out := "```\n" + strings.ReplaceAll(strings.Join(list, "\n"), "```", "'''") + "\n```\n"
	if n := len(lines) - len(list); n > 0 {
		out += fmt.Sprintf("\n%s stood there more than once and %s left out.", plural(n, "line"), isAre(n))
	}
	return out, nil
}

// morse codes a text; a text of dots and dashes is read.
func morse(in string) (string, error) {
	in = strings.TrimSpace(in)
	if in == "" {
		return "", errEmpty
	}
	if strings.Trim(in, ".-/ \n") == "" {
		var out strings.Builder
		for _, code := range strings.Fields(strings.ReplaceAll(in, "/", " / ")) {
			if code == "/" {
				out.WriteByte(' ')
				continue
			}
			i := slices.Index(morseCodes, code)
			if i < 0 {
				return "", sorryf("%q is no letter of Morse's.", code)
			}
			out.WriteByte(morseLetters[i])
		}
		return "It says **" + out.String() + "**.", nil
	}
	var out []string
	left := 0
	for _, r := range strings.ToUpper(in) {
		switch i := strings.IndexRune(morseLetters, r); {
		case i >= 0:
			out = append(out, morseCodes[i])
		case unicode.IsSpace(r):
			out = append(out, "/")
		default:
			left++
		}
	}
	s := "`" + strings.Join(out, " ") + "`"
	if left > 0 {
		s += fmt.Sprintf("\n\nI left out %s that Morse has no code for.", plural(left, "character"))
	}
	return s, nil
}

const morseLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,?/"

var morseCodes = strings.Fields(".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.. ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----. .-.-.- --..-- ..--.. -..-.")

// rot13 turns letters by half the alphabet, there and back.
func rot13(in string) (string, error) {
	if strings.TrimSpace(in) == "" {
		return "", errEmpty
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, in), nil
}

// runes lists the characters of a short text as Unicode numbers them.
func runes(in string) (string, error) {
	if in = strings.TrimSpace(in); in == "" {
		return "", errEmpty
	}
	var b strings.Builder
	b.WriteString("| character | code point | UTF-8 | sort |\n|---|---|---|---|\n")
	n := 0
	for _, r := range in {
		if n++; n > 24 {
			fmt.Fprintf(&b, "\nand %d more", utf8.RuneCountInString(in)-24)
			break
		}
		shown := "`" + string(r) + "`"
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == '`' || r == '|' {
			shown = ""
		}
		fmt.Fprintf(&b, "| %s | U+%04X | % X | %s |\n", shown, r, string(r), sortOf(r))
	}
	return b.String(), nil
}

func sortOf(r rune) string {
	for _, s := range []struct {
		name string
		in   *unicode.RangeTable
	}{{"upper-case letter", unicode.Lu}, {"lower-case letter", unicode.Ll}, {"letter", unicode.L}, {"mark", unicode.M}, {"digit", unicode.Nd}, {"number", unicode.N},
		{"punctuation", unicode.P}, {"symbol", unicode.S}, {"space", unicode.Z}, {"control", unicode.C}} {
		if unicode.Is(s.in, r) {
			return s.name
		}
	}
	return "unassigned"
}

func wordsOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’' })
}

func frequencies(list []string) map[string]int {
	counts := make(map[string]int)
	for _, s := range list {
		counts[s]++
	}
	return counts
}

// sentences counts ends of sentences; a text has at least one.
func sentences(s string) int {
	n, ended := 0, true
	for _, r := range s {
		switch {
		case strings.ContainsRune(".!?…", r):
			if !ended {
				n++
			}
			ended = true
		case unicode.IsLetter(r), unicode.IsDigit(r):
			ended = false
		}
	}
	if !ended {
		n++
	}
	return max(n, 1)
}

// syllablesOf counts groups of vowels, without a silent e at the end.
func syllablesOf(word string) int {
	n, vowel := 0, false
	word = strings.ToLower(word)
	for _, r := range word {
		is := strings.ContainsRune("aeiouyäöüáéíóú", r)
		if is && !vowel {
			n++
		}
		vowel = is
	}
	if n > 1 && strings.HasSuffix(word, "e") && !strings.HasSuffix(word, "le") {
		n--
	}
	return max(n, 1)
}

// readingTime is how long so many words take at 130 a minute.
func readingTime(words int) string {
	if s := words * 60 / 130; s < 90 {
		return plural(max(s, 1), "second")
	}
	return plural((words+65)/130, "minute")
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func title(w string) string {
	r, size := utf8.DecodeRuneInString(w)
	return string(unicode.ToUpper(r)) + w[size:]
}
