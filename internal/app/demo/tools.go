package demo

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentsite/internal/team/handover"
)

// instruction is the beginning of a request that has the text to work on after a colon.
var instruction = regexp.MustCompile(
	`(?is)^\s*(?:please\s+)?(?:sort|order|count|measure|format|check|tidy|encode|decode)\b[^:\n]*:\s*(.+)$`)

// aboutText returns a function that works on the text of a request: that after the colon of an instruction, else the
// results that came with the task of a team, else all of it.
func aboutText(do work) work {
	return func(in string) (string, error) {
		text, results := handover.Split(in)
		if m := instruction.FindStringSubmatch(text); m != nil {
			return do(m[1])
		}
		if results != "" {
			return do(stripBlock(results))
		}
		return do(text)
	}
}

// block is the first Markdown code block in a text.
var block = regexp.MustCompile("(?s)```[a-z]*\n(.*?)\n?```")

// stripBlock returns the content of the first code block of a text, the whole text without one.
func stripBlock(s string) string {
	if m := block.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return s
}

// aboutMatch returns a function that works on the first match of pattern in the task, or in the results that came with
// it; on the whole task without one.
func aboutMatch(pattern *regexp.Regexp, do work) work {
	return func(in string) (string, error) {
		text, results := handover.Split(in)
		for _, s := range []string{text, results} {
			if at := pattern.FindStringIndex(s); at != nil {
				return do(s[at[0]:])
			}
		}
		return do(text)
	}
}

// aboutNumber returns a function that works on the task if it has a number, else on the value of the results.
func aboutNumber(do work) work {
	return func(in string) (string, error) {
		text, results := handover.Split(in)
		if results != "" && !integer.MatchString(text) {
			return do(handover.Number(handover.Value(results)))
		}
		return do(text)
	}
}

var webAddress = regexp.MustCompile(`https?://\S+`)

// firstField returns a function that works on the beginning of a text up to the first space.
func firstField(do work) work {
	return func(in string) (string, error) {
		if list := strings.Fields(in); len(list) > 0 && webAddress.MatchString(list[0]) {
			return do(strings.TrimRight(list[0], ".,;:!?)"))
		}
		return do(in)
	}
}

// formatJSON returns JSON indented, or a sentence with the place of the first error.
func formatJSON(in string) (string, error) {
	in = stripFence(in)
	if in == "" {
		return "", errEmpty
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(in), "", "  "); err != nil {
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			before := in[:min(int(s.Offset), len(in))]
			line := strings.Count(before, "\n") + 1
			return "", sorryf(
				"That is not JSON: %s, in line %d, character %d.",
				s,
				line,
				utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]),
			)
		}
		return "", sorryf("That is not JSON: %s.", err)
	}
	return "```json\n" + out.String() + "\n```", nil
}

// stripFence returns the content of a Markdown code block, and other text trimmed.
func stripFence(s string) string {
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "```"); ok {
		_, rest, _ = strings.Cut(rest, "\n")
		s = strings.TrimSpace(strings.TrimSuffix(rest, "```"))
	}
	return s
}

// dissectURL returns a table of the parts of a URL.
func dissectURL(in string) (string, error) {
	in = strings.TrimSpace(in)
	u, err := url.Parse(in)
	if err != nil || u.Host == "" {
		return "", sorryf("Send me a whole address, like https://example.org/a?b=c#d.")
	}
	var b strings.Builder
	b.WriteString("| part | |\n|---|---|\n")
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", name, tableCell(value))
		}
	}
	row("scheme", u.Scheme)
	row("host", u.Hostname())
	row("port", u.Port())
	row("path", u.Path)
	for _, pair := range strings.Split(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name, err = url.QueryUnescape(name); err != nil || name == "" {
			continue
		}
		if value, err = url.QueryUnescape(value); err == nil {
			row("parameter "+strings.NewReplacer("|", "\\|", "\n", " ").Replace(name), value)
		}
	}
	row("fragment", u.Fragment)
	if u.User != nil {
		b.WriteString("\nIt carries a user name: never share such an address.")
	}
	return b.String(), nil
}

// tableCell returns a text as inline code that is safe inside a cell of a Markdown table.
func tableCell(s string) string {
	return "`" + strings.NewReplacer("|", "\\|", "\n", " ", "`", "'").Replace(s) + "`"
}

var threeDigits = regexp.MustCompile(`\b[1-5][0-9][0-9]\b`)

// explainStatus explains the first number in a text that looks like an HTTP status.
func explainStatus(in string) (string, error) {
	code, _ := strconv.Atoi(threeDigits.FindString(in))
	text := http.StatusText(code)
	if text == "" {
		return "", sorryf("Send me a status of HTTP, like 404 or 503.")
	}
	class := map[int]string{1: "It is not over yet: the answer comes later.", 2: "All is well.",
		3: "Look elsewhere, or use what you have.",
		4: "The request is wrong: sending it again unchanged does not help.",
		5: "The server is at fault: trying later may help."}[code/100]
	return fmt.Sprintf("**%d %s**. %s", code, text, class), nil
}

// toBase64 returns a text in base64, as inline code. fromBase64 is its inverse and accepts the URL
// alphabet too.
func toBase64(in string) (string, error) {
	if in == "" {
		return "", errEmpty
	}
	return "`" + base64.StdEncoding.EncodeToString([]byte(in)) + "`", nil
}

func fromBase64(in string) (string, error) {
	in = strings.TrimRight(strings.Trim(strings.TrimSpace(in), "`"), "=")
	b, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(in))
	if err != nil || len(b) == 0 {
		return "", sorryf("That is not base64.")
	}
	if !utf8.Valid(b) {
		return fmt.Sprintf("%s that are no text: `% x`", plural(len(b), "byte"), b[:min(32, len(b))]), nil
	}
	return string(b), nil
}

// describeRange describes the first IP address or address range in a text.
func describeRange(in string) (string, error) {
	var p netip.Prefix
	for _, w := range strings.Fields(in) {
		w = strings.Trim(w, ".,;?!`")
		if q, err := netip.ParsePrefix(w); err == nil {
			p = q
			break
		}
		if a, err := netip.ParseAddr(w); err == nil {
			p = netip.PrefixFrom(a, a.BitLen())
			break
		}
	}
	if !p.IsValid() {
		return "", sorryf("Send me an address range, like 10.1.2.0/22.")
	}
	a := p.Masked().Addr()
	kind := "public"
	switch {
	case a.IsLoopback():
		kind = "loopback: this machine only"
	case a.IsPrivate():
		kind = "private: not routed on the internet"
	case a.IsLinkLocalUnicast():
		kind = "link-local: this cable only"
	case a.IsMulticast():
		kind = "multicast"
	}
	count := fmt.Sprintf("2^%d", a.BitLen()-p.Bits())
	if free := a.BitLen() - p.Bits(); free < 53 {
		count = fmt.Sprintf("%.0f", math.Exp2(float64(free)))
	}
	return fmt.Sprintf(
		"| | |\n|---|---|\n| network | `%s` |\n| first | `%s` |\n| last | `%s` |\n| addresses | %s |\n| kind | %s |\n",
		p.Masked(),
		a,
		lastAddress(p),
		count,
		kind,
	), nil
}

// lastAddress returns the last address of a range: all host bits are set.
func lastAddress(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

var (
	numeral = regexp.MustCompile(`(?i)\b[MDCLXVI]+\b`)
	integer = regexp.MustCompile(`[0-9][0-9_,' ]*[0-9]|[0-9]`)
)

// wholeIn returns the first whole number in a text; false if there is none or it exceeds 64 bits.
// Commas, apostrophes, underscores and spaces may separate its digits.
func wholeIn(in string) (uint64, bool) {
	s := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, integer.FindString(in))
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

var romans = []struct {
	value uint64
	text  string
}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"},
	{9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}}

func romanNumeral(n uint64) string {
	var b strings.Builder
	for _, r := range romans {
		for ; n >= r.value; n -= r.value {
			b.WriteString(r.text)
		}
	}
	return b.String()
}

// romanNumerals converts a number from 1 to 3999 in a text to Roman numerals, or Roman numerals to
// a number.
func romanNumerals(in string) (string, error) {
	if n, ok := wholeIn(in); ok {
		if n < 1 || n > 3999 {
			return "", sorryf("The Romans wrote 1 to 3999 with these letters.")
		}
		return fmt.Sprintf("%d is **%s**.", n, romanNumeral(n)), nil
	}
	// “I” is usually a word and not a number, so the longest candidate is used.
	var best string
	for _, s := range numeral.FindAllString(in, -1) {
		if len(s) > len(best) {
			best = s
		}
	}
	var n uint64
	rest := strings.ToUpper(best)
	for _, r := range romans {
		for strings.HasPrefix(rest, r.text) {
			n, rest = n+r.value, rest[len(r.text):]
		}
	}
	if best == "" || rest != "" || n > 3999 || romanNumeral(n) != strings.ToUpper(best) {
		return "", sorryf("Send me a number from 1 to 3999, or a Roman one like MCMXCIV.")
	}
	return fmt.Sprintf("%s is **%d**.", strings.ToUpper(best), n), nil
}

// maxFactored bounds the numbers that primeFactors accepts: trial division then takes a few
// milliseconds at most.
const maxFactored = 1_000_000_000_000

// primeFactors returns the prime factors of the first number in a text.
func primeFactors(in string) (string, error) {
	n, ok := wholeIn(in)
	if !ok || n < 2 || n > maxFactored {
		return "", sorryf("Send me a whole number from 2 to 1 000 000 000 000.")
	}
	var list []string
	rest := n
	for p := uint64(2); p*p <= rest; p++ {
		k := 0
		for ; rest%p == 0; rest /= p {
			k++
		}
		switch {
		case k == 1:
			list = append(list, fmt.Sprint(p))
		case k > 1:
			list = append(list, fmt.Sprintf("%d^%d", p, k))
		}
	}
	if rest == n {
		return fmt.Sprintf("%d is **prime**.", n), nil
	}
	if rest > 1 {
		list = append(list, fmt.Sprint(rest))
	}
	return fmt.Sprintf("%d = **%s**", n, strings.Join(list, " × ")), nil
}

// errEmpty is the answer of all agents to an empty message.
var errEmpty = sorryf("Send me something to work on.")

// textStatistics returns a table with the numbers of characters, words, sentences and lines of a
// text.
func textStatistics(in string) (string, error) {
	words := wordsOf(in)
	if len(words) == 0 {
		return "", errEmpty
	}
	longest := slices.MaxFunc(
		words,
		func(a, b string) int { return cmp.Compare(utf8.RuneCountInString(a), utf8.RuneCountInString(b)) },
	)
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"| what | how many |\n|---|---|\n| characters | %d |\n| words | %d |\n| different words | %d |\n| sentences | %d |\n| lines | %d |\n",
		utf8.RuneCountInString(
			in,
		),
		len(words),
		len(countWords(words)),
		countSentences(in),
		strings.Count(strings.TrimSpace(in), "\n")+1,
	)
	fmt.Fprintf(
		&b,
		"\nThe longest word is **%s**. Reading it aloud takes about %s.\n",
		longest,
		readingTime(len(words)),
	)
	return b.String(), nil
}

// sortLines returns the lines of a text, or its words between commas, sorted and each once.
func sortLines(in string) (string, error) {
	lines := strings.FieldsFunc(in, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) < 2 {
		lines = strings.Split(in, ",")
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	lines[len(lines)-1] = strings.TrimSuffix(lines[len(lines)-1], ".") // the end of the sentence
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	if len(lines) < 2 {
		return "", sorryf("Send me some lines, or words with commas between them.")
	}
	counts := countWords(lines)
	list := slices.Sorted(maps.Keys(counts))
	out := "```\n" + strings.ReplaceAll(strings.Join(list, "\n"), "```", "'''") + "\n```\n"
	if n := len(lines) - len(list); n > 0 {
		out += fmt.Sprintf("\n%s stood there more than once and %s left out.", plural(n, "line"), isAre(n))
	}
	return out, nil
}

func wordsOf(s string) []string {
	return strings.FieldsFunc(
		s,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’' },
	)
}

func countWords(list []string) map[string]int {
	counts := make(map[string]int)
	for _, s := range list {
		counts[s]++
	}
	return counts
}

// countSentences returns the number of sentences of a text, at least 1. Several marks in a row end
// one sentence.
func countSentences(s string) int {
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

// readingTime returns the time for reading words aloud, at 130 words per minute, as text.
func readingTime(words int) string {
	if s := words * 60 / 130; s < 90 {
		return plural(max(s, 1), "second")
	}
	return plural((words+65)/130, "minute")
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
