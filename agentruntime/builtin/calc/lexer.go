package calc

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

type tokenKind int

const (
	endToken tokenKind = iota
	numberToken
	wordToken
	symbolToken
	dateToken
	clockToken
)

// token is one piece of a question, such as a word, a number or a sign.
type token struct {
	kind tokenKind
	text string    // the text as typed, because the case of units matters
	name string    // the text in lower case, or the symbol that replaced it
	num  *big.Rat  // value of a number; seconds since midnight of a clock time
	day  time.Time // value of a date
	at   int       // position of the first character, from 1, for error messages
	// glued is true when no space precedes the token: "m2" is a square metre, "m 2" is not.
	glued bool
}

func (t token) is(names ...string) bool {
	if t.kind != wordToken && t.kind != symbolToken {
		return false
	}
	for _, n := range names {
		if t.name == n {
			return true
		}
	}
	return false
}

var symbols = map[rune]string{
	'+': "+", '-': "-", '−': "-", '–': "-", '*': "*", '×': "*", '·': "*", '⋅': "*", '/': "/", '÷': "/",
	':': "/",
	'^': "^", '%': "%", '!': "!", '(': "(", ')': ")", '[': "(", ']': ")", ',': ",", ';': ",", '=': "=", '?': "?",
	'.': ".",
	'√': "sqrt",
}

var (
	powerRunes = map[rune]*big.Rat{'²': big.NewRat(2, 1), '³': big.NewRat(3, 1)}

	datePattern  = regexp.MustCompile(`^(\d{4})-(\d{1,2})-(\d{1,2})\b`)
	clockPattern = regexp.MustCompile(`^(\d{1,2}):(\d{2})(?::(\d{2}))?\b`)
	basePattern  = regexp.MustCompile(`^0[xX][0-9a-fA-F]+\b|^0[bB][01]+\b`)
	// groupPattern matches a number with separators between groups of three digits.
	groupPattern  = regexp.MustCompile(`^\d{1,3}(?:(?:,\d{3})+|(?:_\d{3})+|(?:[ \x{a0}\x{202f}]\d{3})+)(?:\.\d+)?\b`)
	numberPattern = regexp.MustCompile(`^(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?`)
	wordPattern   = regexp.MustCompile(`^(?:[\pLµ°]+(?:['’]\pL+)?)`)
	notDigits     = strings.NewReplacer(",", "", "_", "", " ", "", "\u00a0", "", "\u202f", "")
)

// scanTokens splits a question into tokens; the last is an endToken, so that the parser can always look
// ahead.
func scanTokens(question string) ([]token, error) {
	var list []token
	at, glued := 1, true
	for rest := question; ; {
		trimmed := strings.TrimLeft(rest, " \t\r\n\u00a0\u202f")
		at += utf8.RuneCountInString(rest[:len(rest)-len(trimmed)])
		glued, rest = len(trimmed) == len(rest), trimmed
		if rest == "" {
			return append(list, token{at: at}), nil
		}
		t, n, err := scanToken(rest, at, glued && len(list) > 0 && list[len(list)-1].kind == numberToken)
		if err != nil {
			return nil, err
		}
		t.at, t.glued = at, glued
		t.text = rest[:n]
		if t.name == "" {
			t.name = strings.ToLower(t.text)
		}
		list = append(list, t)
		if r := []rune(t.text); powerRunes[r[0]] != nil {
			list = append(list, token{kind: numberToken, text: t.text, num: powerRunes[r[0]], at: at, glued: true})
		}
		at += utf8.RuneCountInString(t.text)
		rest = rest[n:]
	}
}

// scanToken reads the token at the beginning of rest and returns its length in bytes. afterNumber is
// true when the previous token is a number.
func scanToken(rest string, at int, afterNumber bool) (token, int, error) {
	if m := datePattern.FindStringSubmatch(rest); m != nil {
		day, err := parseDay(m[1], m[2], m[3])
		return token{kind: dateToken, day: day}, len(m[0]), err
	}
	if m := clockPattern.FindStringSubmatch(rest); m != nil {
		seconds, err := parseClock(m)
		return token{kind: clockToken, num: seconds}, len(m[0]), err
	}
	if s := basePattern.FindString(rest); s != "" {
		n, _ := new(big.Int).SetString(s, 0)
		return token{kind: numberToken, num: new(big.Rat).SetInt(n)}, len(s), nil
	}
	s := groupPattern.FindString(rest)
	if s == "" {
		s = numberPattern.FindString(rest)
	}
	if s != "" {
		r, err := parseNumber(notDigits.Replace(s), at)
		if len(rest) > len(s)+1 && rest[len(s)] == '.' && rest[len(s)+1] >= '0' && rest[len(s)+1] <= '9' {
			return token{}, 0, refuse(exampleNumber, "The number at character %d has two decimal points.", at)
		}
		return token{kind: numberToken, num: r}, len(s), err
	}
	c, n := utf8.DecodeRuneInString(rest)
	switch {
	case powerRunes[c] != nil:
		return token{kind: symbolToken, name: "^"}, n, nil
	case strings.HasPrefix(rest, "**"):
		return token{kind: symbolToken, name: "^"}, 2, nil
	case strings.ContainsRune("$€£¥", c):
		return token{}, 0, refuse(
			"19% of 250",
			"Currencies are not units here: write the amount without %q.",
			string(c),
		)
	case afterNumber && (c == '\'' || c == '’' || c == '′'):
		return token{kind: wordToken, name: "ft"}, n, nil
	case afterNumber && (c == '"' || c == '″'):
		return token{kind: wordToken, name: "inch"}, n, nil
	}
	if name, ok := symbols[c]; ok {
		return token{kind: symbolToken, name: name}, n, nil
	}
	if s := wordPattern.FindString(rest); s != "" {
		return token{kind: wordToken}, len(s), nil
	}
	return token{}, 0, refuse(exampleNumber, "I did not understand %q at character %d.", string(c), at)
}

// parseNumber checks the exponent before it builds the number, because 1e999999999 would fill the
// memory.
func parseNumber(s string, at int) (*big.Rat, error) {
	if _, exponent, ok := strings.Cut(strings.ToLower(s), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n > maxDigits || n < -maxDigits {
			return nil, refuse(
				"1e6 * 2",
				"The number at character %d is too large or too small; at most %d digits are possible.",
				at,
				maxDigits,
			)
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, refuse(exampleNumber, "I did not understand the number at character %d.", at)
	}
	return r, nil
}
