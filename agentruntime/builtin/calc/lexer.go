package calc

import (
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agentsite/internal/fault"
)

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenNumber
	tokenWord
	tokenOp
	tokenDate
	tokenClock
)

// token is one piece of the question. at counts characters from 1, the way a
// person counts, so that an error can point at the place.
type token struct {
	kind tokenKind
	text string // as typed, for messages and for units where case matters
	low  string // lower case; for tokenOp the symbol it stands for
	num  *big.Rat
	day  time.Time
	at   int
	// glued means no space stood before it: "m2" is a square metre, "m 2" not.
	glued bool
	// fraction marks numbers like "half" and "½", after which "of" multiplies
	// and which add to a whole number before them.
	fraction bool
}

func (t token) isOp(s string) bool   { return t.kind == tokenOp && t.low == s }
func (t token) isWord(s string) bool { return t.kind == tokenWord && t.low == s }

// symbols maps every accepted sign to the one the parser knows.
var symbols = map[rune]string{
	'+': "+", '-': "-", '−': "-", '–': "-", '*': "*", '×': "*", '·': "*", '⋅': "*", '∙': "*",
	'/': "/", '÷': "/", '⁄': "/", ':': ":", '^': "^", '%': "%", '!': "!", '(': "(", ')': ")",
	'[': "(", ']': ")", ',': ",", ';': ";", '=': "=", '?': "?", '.': ".",
}

var superscripts = map[rune]int64{'²': 2, '³': 3}

var vulgarFractions = map[rune][2]int64{'½': {1, 2}, '¼': {1, 4}, '¾': {3, 4}, '⅓': {1, 3}, '⅔': {2, 3}, '⅛': {1, 8}}

type lexer struct {
	src    []rune
	pos    int
	tokens []token
	// calls has one entry per open parenthesis and says how commas read there.
	calls []commaRule
}

type commaRule int

const (
	commaGroups    commaRule = iota // "1,000" is one number
	commaSeparates                  // "max(1,200)" has two arguments
)

// lex splits the question. Errors are characters no question uses, and
// numbers or dates that cannot be.
func lex(question string) ([]token, error) {
	l := &lexer{src: []rune(question)}
	for {
		start := l.pos
		for l.pos < len(l.src) && (unicode.IsSpace(l.src[l.pos]) || l.src[l.pos] == '\u200b') {
			l.pos++
		}
		glued := l.pos == start && start > 0
		if l.pos >= len(l.src) {
			l.tokens = append(l.tokens, token{kind: tokenEnd, at: l.pos + 1})
			return l.tokens, nil
		}
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		t.glued = glued
		l.tokens = append(l.tokens, t)
	}
}

func (l *lexer) peek(n int) rune {
	if l.pos+n < len(l.src) && l.pos+n >= 0 {
		return l.src[l.pos+n]
	}
	return 0
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func (l *lexer) next() (token, error) {
	r, at := l.src[l.pos], l.pos+1
	afterNumber := len(l.tokens) > 0 && l.tokens[len(l.tokens)-1].kind == tokenNumber
	switch {
	case isDigit(r) || r == '.' && isDigit(l.peek(1)):
		if t, ok, err := l.isoDate(); ok || err != nil {
			return t, err
		}
		if t, ok, err := l.clock(); ok || err != nil {
			return t, err
		}
		return l.number()
	case unicode.IsLetter(r) || r == '°' || r == 'µ':
		return l.word(), nil
	case strings.ContainsRune("$€£¥", r):
		l.pos++
		return token{kind: tokenWord, text: string(r), low: string(r), at: at}, nil
	case afterNumber && (r == '\'' || r == '′'):
		l.pos++
		return token{kind: tokenWord, text: "ft", low: "ft", at: at}, nil
	case afterNumber && (r == '"' || r == '″'):
		l.pos++
		return token{kind: tokenWord, text: "inch", low: "inch", at: at}, nil
	}
	if n, ok := superscripts[r]; ok {
		// Two tokens: the power sign here, its number in place of the sign.
		l.tokens = append(l.tokens, token{kind: tokenOp, text: string(r), low: "^", at: at, glued: true})
		l.pos++
		return token{kind: tokenNumber, text: string(r), num: big.NewRat(n, 1), at: at}, nil
	}
	if f, ok := vulgarFractions[r]; ok {
		l.pos++
		return token{kind: tokenNumber, text: string(r), num: big.NewRat(f[0], f[1]), at: at, fraction: true}, nil
	}
	if r == '√' {
		l.pos++
		return token{kind: tokenWord, text: "√", low: "sqrt", at: at}, nil
	}
	if r == '*' && l.peek(1) == '*' {
		l.pos += 2
		return token{kind: tokenOp, text: "**", low: "^", at: at}, nil
	}
	s, ok := symbols[r]
	if !ok {
		return token{}, fault.New(fault.Invalid, "The character %s at position %d has no meaning here. Use numbers, words and + - * / ^ ( ), for example: %s",
			strconv.QuoteRune(r), at, exampleNumber)
	}
	l.pos++
	switch s {
	case "(":
		rule := commaGroups
		if n := len(l.tokens); n > 0 && namesFunction(l.tokens[n-1]) {
			rule = l.argumentRule()
		}
		l.calls = append(l.calls, rule)
	case ")":
		if n := len(l.calls); n > 0 {
			l.calls = l.calls[:n-1]
		}
	}
	return token{kind: tokenOp, text: string(r), low: s, at: at}, nil
}

// namesFunction is isFunction before phrases are folded: "average(" counts too.
func namesFunction(t token) bool {
	if isFunction(t) {
		return true
	}
	for _, p := range phraseStarts[t.low] {
		if _, ok := functions[p.to]; ok && len(p.words) == 1 {
			return true
		}
	}
	return false
}

// argumentRule decides how commas read in the argument list that starts here.
// In "max(1,200)" they separate; where "; " or ", " shows what the writer uses
// as separator, as in "max(1,000, 2)", a tight comma groups digits.
func (l *lexer) argumentRule() commaRule {
	depth := 0
	for i := l.pos; i < len(l.src); i++ {
		switch r := l.src[i]; {
		case r == '(':
			depth++
		case r == ')':
			if depth == 0 {
				return commaSeparates
			}
			depth--
		case depth > 0:
		case r == ';', r == ',' && i+1 < len(l.src) && l.src[i+1] == ' ':
			return commaGroups
		}
	}
	return commaSeparates
}

// digits reads at least one digit, "_" allowed between digits.
func (l *lexer) digits(b *strings.Builder) int {
	n := 0
	for {
		r := l.peek(0)
		if isDigit(r) {
			b.WriteRune(r)
			n++
		} else if !(r == '_' && n > 0 && isDigit(l.peek(1))) {
			return n
		}
		l.pos++
	}
}

// groupFollows reports whether a separator and exactly three digits follow.
func (l *lexer) groupFollows(sep rune) bool {
	return l.peek(0) == sep && isDigit(l.peek(1)) && isDigit(l.peek(2)) && isDigit(l.peek(3)) && !isDigit(l.peek(4))
}

func (l *lexer) number() (token, error) {
	start := l.pos
	if base := unicode.ToLower(l.peek(1)); l.peek(0) == '0' && (base == 'x' || base == 'b') {
		if t, ok := l.radix(base); ok {
			return t, nil
		}
	}
	var b strings.Builder
	if n := l.digits(&b); n >= 1 && n <= 3 {
		seps := []rune{' ', '\u00a0', '\u202f', '\'', ','}
		if k := len(l.calls); k > 0 && l.calls[k-1] == commaSeparates {
			seps = seps[:len(seps)-1]
		}
		for _, sep := range seps {
			if !l.groupFollows(sep) {
				continue
			}
			// One kind of separator per number: "1 000,000" is two things.
			for l.groupFollows(sep) {
				l.pos++
				l.digits(&b)
			}
			break
		}
	}
	if l.peek(0) == '.' && isDigit(l.peek(1)) {
		l.pos++
		b.WriteByte('.')
		l.digits(&b)
	} else if l.peek(0) == '.' && b.Len() > 0 && l.pos+1 < len(l.src) && !unicode.IsSpace(l.peek(1)) && l.peek(1) != '?' {
		l.pos++ // "5.*2": a point without decimals
	}
	exponent := 0
	if e := l.peek(0); e == 'e' || e == 'E' {
		skip := 1
		if s := l.peek(1); s == '-' || s == '+' || s == '−' {
			skip = 2
		}
		if isDigit(l.peek(skip)) {
			negative := skip == 2 && l.peek(1) != '+'
			l.pos += skip
			var eb strings.Builder
			l.digits(&eb)
			n, err := strconv.Atoi(eb.String())
			if err != nil || n > maxResultDigits {
				return token{}, fault.New(fault.Invalid, "The exponent of %s at character %d is too large: at most %d digits are computed. Try: %s",
					quoted(string(l.src[start:l.pos])), start+1, maxResultDigits, `"1e30 / 7"`)
			}
			exponent = n
			if negative {
				exponent = -n
			}
		}
	}
	text := string(l.src[start:l.pos])
	if l.peek(0) == '.' && isDigit(l.peek(1)) {
		return token{}, fault.New(fault.Invalid, "The number at character %d has two decimal points. Write it like this: %s", start+1, `"1234.56 + 1"`)
	}
	r, ok := new(big.Rat).SetString(b.String())
	if !ok {
		return token{}, fault.New(fault.Invalid, "The number %s at character %d cannot be read. Write it like this: %s", quoted(text), start+1, `"1234.56 + 1"`)
	}
	if exponent != 0 {
		scale := new(big.Rat).SetInt(tenTo(abs(exponent)))
		if exponent > 0 {
			r.Mul(r, scale)
		} else {
			r.Quo(r, scale)
		}
	}
	return token{kind: tokenNumber, text: text, num: r, at: start + 1}, nil
}

// radix reads "0x1f" and "0b101".
func (l *lexer) radix(base rune) (token, bool) {
	const hexDigits, binDigits = "0123456789abcdef", "01"
	set, radix := hexDigits, 16
	if base == 'b' {
		set, radix = binDigits, 2
	}
	end := l.pos + 2
	for end < len(l.src) && strings.ContainsRune(set, unicode.ToLower(l.src[end])) {
		end++
	}
	if end == l.pos+2 || end < len(l.src) && (unicode.IsLetter(l.src[end]) || isDigit(l.src[end])) {
		return token{}, false
	}
	n, ok := new(big.Int).SetString(string(l.src[l.pos+2:end]), radix)
	if !ok {
		return token{}, false
	}
	t := token{kind: tokenNumber, text: string(l.src[l.pos:end]), num: new(big.Rat).SetInt(n), at: l.pos + 1}
	l.pos = end
	return t, true
}

// isoDate reads 2026-12-25. Only the full zero-padded form counts: nobody
// writes the subtraction 2026-12-25 that way.
func (l *lexer) isoDate() (token, bool, error) {
	const layout = "2006-01-02"
	if l.pos+len(layout) > len(l.src) || l.peek(4) != '-' || l.peek(7) != '-' || isDigit(l.peek(10)) || l.pos > 0 && isDigit(l.peek(-1)) {
		return token{}, false, nil
	}
	text := string(l.src[l.pos : l.pos+len(layout)])
	for i, r := range text {
		if i != 4 && i != 7 && !isDigit(r) {
			return token{}, false, nil
		}
	}
	day, err := time.Parse(layout, text)
	if err != nil || day.Year() < 1 {
		return token{}, false, fault.New(fault.Invalid, "There is no date %s (character %d). Dates are year-month-day, for example: %s", text, l.pos+1, exampleDate)
	}
	t := token{kind: tokenDate, text: text, day: day, at: l.pos + 1}
	l.pos += len(layout)
	return t, true, nil
}

// clock reads 09:30, 9:30 pm and 17:15:30; the number is seconds after
// midnight. "9 am" without a colon is made in foldPhrases.
func (l *lexer) clock() (token, bool, error) {
	i := l.pos
	for i < len(l.src) && isDigit(l.src[i]) {
		i++
	}
	if n := i - l.pos; n < 1 || n > 2 {
		return token{}, false, nil
	}
	fields := []int{atoi(l.src[l.pos:i])}
	for len(fields) < 3 && i+2 < len(l.src) && l.src[i] == ':' && isDigit(l.src[i+1]) && isDigit(l.src[i+2]) {
		fields = append(fields, atoi(l.src[i+1:i+3]))
		i += 3
	}
	if len(fields) < 2 || i < len(l.src) && isDigit(l.src[i]) {
		return token{}, false, nil
	}
	text, at := string(l.src[l.pos:i]), l.pos+1
	if fields[0] > 24 || fields[1] > 59 || len(fields) == 3 && fields[2] > 59 || fields[0] == 24 && fields[1] > 0 {
		return token{}, false, fault.New(fault.Invalid, "There is no clock time %s (character %d). Use hours and minutes, for example: %s",
			text, at, `"hours between 09:30 and 17:15"`)
	}
	seconds := fields[0]*3600 + fields[1]*60
	if len(fields) == 3 {
		seconds += fields[2]
	}
	l.pos = i
	return token{kind: tokenClock, text: text, num: big.NewRat(int64(seconds), 1), at: at}, true, nil
}

func atoi(digits []rune) int {
	n := 0
	for _, r := range digits {
		n = n*10 + int(r-'0')
	}
	return n
}

// word reads letters, an apostrophe inside ("what's"), a leading degree sign,
// and the digits of log10 and log2, the only names that have some.
func (l *lexer) word() token {
	start := l.pos
	l.pos++
	for l.pos < len(l.src) {
		r := l.src[l.pos]
		apostrophe := (r == '\'' || r == '’') && unicode.IsLetter(l.peek(1))
		if !unicode.IsLetter(r) && !apostrophe {
			break
		}
		l.pos++
	}
	text := string(l.src[start:l.pos])
	if strings.EqualFold(text, "log") {
		for _, suffix := range []string{"10", "2"} {
			if strings.HasPrefix(string(l.src[l.pos:min(len(l.src), l.pos+len(suffix)+1)]), suffix) && !isDigit(l.peek(len(suffix))) {
				text += suffix
				l.pos += len(suffix)
				break
			}
		}
	}
	low := strings.ReplaceAll(strings.ToLower(text), "’", "'")
	return token{kind: tokenWord, text: text, low: low, at: start + 1}
}

// quoted makes a piece of the question safe and short enough for a message.
func quoted(s string) string {
	const maxQuotedRunes = 40
	if utf8.RuneCountInString(s) > maxQuotedRunes {
		s = string([]rune(s)[:maxQuotedRunes]) + "…"
	}
	return strconv.Quote(s)
}
