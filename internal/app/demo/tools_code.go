package demo

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// explainRegex explains a regular expression piece by piece.
func explainRegex(in string) (string, error) {
	in = strings.Trim(strings.TrimSpace(in), "`")
	if in == "" {
		return "", errEmpty
	}
	re, err := syntax.Parse(in, syntax.Perl)
	if err != nil {
		return "", sorryf("That is not a regular expression: %s.", err)
	}
	var b strings.Builder
	b.WriteString("It matches, in this order:\n\n")
	explain(&b, re, 0)
	return b.String(), nil
}

// explain writes one piece and its parts, as a list.
func explain(b *strings.Builder, re *syntax.Regexp, depth int) {
	say := func(format string, args ...any) {
		fmt.Fprintf(b, "%s- %s\n", strings.Repeat("  ", depth), fmt.Sprintf(format, args...))
	}
	inner := func() {
		for _, sub := range re.Sub {
			explain(b, sub, depth+1)
		}
	}
	greedy := ""
	if re.Flags&syntax.NonGreedy != 0 {
		greedy = ", as few as possible"
	}
	switch re.Op {
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			explain(b, sub, depth)
		}
	case syntax.OpLiteral:
		fold := ""
		if re.Flags&syntax.FoldCase != 0 {
			fold = ", in capitals or not"
		}
		say("the text `%s`%s", string(re.Rune), fold)
	case syntax.OpCharClass:
		say("one character of `%s`", re)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		say("any one character")
	case syntax.OpBeginLine, syntax.OpBeginText:
		say("the beginning")
	case syntax.OpEndLine, syntax.OpEndText:
		say("the end")
	case syntax.OpWordBoundary:
		say("the edge of a word")
	case syntax.OpNoWordBoundary:
		say("a place that is no edge of a word")
	case syntax.OpCapture:
		name := ""
		if re.Name != "" {
			name = " called " + re.Name
		}
		say("group %d%s, which is remembered:", re.Cap, name)
		inner()
	case syntax.OpStar:
		say("any number of times, also never%s:", greedy)
		inner()
	case syntax.OpPlus:
		say("once or more%s:", greedy)
		inner()
	case syntax.OpQuest:
		say("once or not at all%s:", greedy)
		inner()
	case syntax.OpRepeat:
		switch {
		case re.Max < 0:
			say("%d times or more%s:", re.Min, greedy)
		case re.Min == re.Max:
			say("exactly %d times:", re.Min)
		default:
			say("%d to %d times%s:", re.Min, re.Max, greedy)
		}
		inner()
	case syntax.OpAlternate:
		say("one of these:")
		inner()
	default:
		say("nothing at all")
	}
}

// formatJSON indents JSON, or says where it is broken.
func formatJSON(in string) (string, error) {
	in = unfenced(in)
	if in == "" {
		return "", errEmpty
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(in), "", "  "); err != nil {
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			before := in[:min(int(s.Offset), len(in))]
			line := strings.Count(before, "\n") + 1
			return "", sorryf("That is not JSON: %s, in line %d, character %d.", s, line, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]))
		}
		return "", sorryf("That is not JSON: %s.", err)
	}
	return "```json\n" + out.String() + "\n```", nil
}

// unfenced takes text out of a block of code.
func unfenced(s string) string {
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "```"); ok {
		_, rest, _ = strings.Cut(rest, "\n")
		s = strings.TrimSpace(strings.TrimSuffix(rest, "```"))
	}
	return s
}

// dissectURL takes an address apart.
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
			fmt.Fprintf(&b, "| %s | %s |\n", name, cell(value))
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

// cell makes a text fit for a cell of a table.
func cell(s string) string {
	return "`" + strings.NewReplacer("|", "\\|", "\n", " ", "`", "'").Replace(s) + "`"
}

var threeDigits = regexp.MustCompile(`\b[1-5][0-9][0-9]\b`)

// explainStatus explains an HTTP status.
func explainStatus(in string) (string, error) {
	code, _ := strconv.Atoi(threeDigits.FindString(in))
	text := http.StatusText(code)
	if text == "" {
		return "", sorryf("Send me a status of HTTP, like 404 or 503.")
	}
	class := map[int]string{1: "It is not over yet: the answer comes later.", 2: "All is well.", 3: "Look elsewhere, or use what you have.",
		4: "The request is wrong: sending it again unchanged does not help.", 5: "The server is at fault: trying later may help."}[code/100]
	return fmt.Sprintf("**%d %s**. %s", code, text, class), nil
}

// toBase64 encodes, fromBase64 decodes.
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

// hashes are the usual check sums of a text.
func hashes(in string) (string, error) {
	if in == "" {
		return "", errEmpty
	}
	b := []byte(in)
	return fmt.Sprintf("| sum | of %s |\n|---|---|\n| SHA-256 | `%x` |\n| MD5, no longer safe | `%x` |\n| CRC-32 | `%08x` |\n", plural(len(b), "byte"), sha256.Sum256(b), md5.Sum(b), crc32.ChecksumIEEE(b)), nil
}

// network describes an address range.
func network(in string) (string, error) {
	var p netip.Prefix
	for _, w := range strings.Fields(in) {
		w = strings.Trim(w, ",;?!`")
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
	return fmt.Sprintf("| | |\n|---|---|\n| network | `%s` |\n| first | `%s` |\n| last | `%s` |\n| addresses | %s |\n| kind | %s |\n", p.Masked(), a, last(p), count, kind), nil
}

// last is the last address of a range.
func last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// passwordStrength estimates how long guessing takes. It keeps nothing.
func passwordStrength(in string) (string, error) {
	in = strings.TrimSpace(in)
	if in == "" {
		return "", errEmpty
	}
	pool, notes := 0, []string(nil)
	for _, c := range []struct {
		chars string
		size  int
	}{{"abcdefghijklmnopqrstuvwxyz", 26}, {"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 26}, {"0123456789", 10}, {" !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", 33}} {
		if strings.ContainsAny(in, c.chars) {
			pool += c.size
		}
	}
	if strings.IndexFunc(in, func(r rune) bool { return r > 126 }) >= 0 {
		pool += 100
	}
	bits := float64(utf8.RuneCountInString(in)) * math.Log2(float64(max(pool, 2)))
	lower := strings.ToLower(in)
	for _, known := range []string{"password", "qwerty", "letmein", "welcome", "admin", "iloveyou", "dragon", "12345", "abc"} {
		if strings.Contains(lower, known) {
			bits /= 3
			notes = append(notes, "It holds “"+known+"”, which is tried first.")
		}
	}
	if len(frequencies(strings.Split(lower, ""))) <= utf8.RuneCountInString(in)/2 {
		bits /= 2
		notes = append(notes, "It repeats itself.")
	}
	if len(notes) == 0 && bits < 60 {
		notes = append(notes, "Length counts most: four unrelated words beat one strange one.")
	}
	verdict := "strong"
	switch {
	case bits < 28:
		verdict = "very weak"
	case bits < 45:
		verdict = "weak"
	case bits < 70:
		verdict = "fair"
	}
	return fmt.Sprintf("**%s**: about %.0f bits, %s at ten thousand million guesses a second. %s\n\nNever send anybody a password that you use.", title(verdict), bits, long(math.Exp2(bits-1)/1e10), strings.Join(notes, " ")), nil
}

// long says so many seconds in the largest fitting unit.
func long(seconds float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{31557600e3, "thousand years"}, {31557600, "years"}, {86400, "days"}, {3600, "hours"}, {60, "minutes"}} {
		if v := seconds / u.size; v >= 1 {
			if v > 1e6 {
				return "longer than anybody waits"
			}
			return fmt.Sprintf("%.0f %s", v, u.name)
		}
	}
	if seconds < 1 {
		return "less than a second"
	}
	return fmt.Sprintf("%.0f seconds", seconds)
}
