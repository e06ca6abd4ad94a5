package calc

import (
	"math/big"
	"slices"
	"strings"
)

// phrases maps English words to the symbol or word that replaces them; "" drops them. Of two that begin
// alike the longer is tried first.
var phrases = sortPhrases(map[string]string{
	"plus": "+", "minus": "-", "less": "-", "times": "*", "x": "*", "multiplied by": "*", "divided by": "/",
	"over":            "/",
	"to the power of": "^", "raised to": "^", "per cent": "%", "percent": "%", "percentage": "%", "pct": "%",
	"modulo": "mod", "square root of": "sqrt", "square root": "sqrt", "root of": "sqrt", "absolute value of": "abs",
	"average of": "average", "avg": "average", "mean of": "average", "mean": "average", "sum of": "sum",
	"total of": "sum",
	"maximum":  "max", "largest of": "max", "minimum": "min", "smallest of": "min", "ceiling": "ceil", "π": "pi",
	"working day": "workday", "working days": "workday", "business day": "workday", "business days": "workday",
	"workdays": "workday", "nautical mile": "nmi", "nautical miles": "nmi", "fl oz": "floz", "fluid ounce": "floz",
	"fluid ounces": "floz", "degrees celsius": "°c", "deg c": "°c", "degrees c": "°c", "° c": "°c",
	"degrees fahrenheit": "°f", "deg f": "°f", "degrees f": "°f", "° f": "°f",
	"sq": "square", "day of the week": "weekday",
	"what day": "weekday", "what day of the week": "weekday", "till": "until", "decimal places": "decimals",
	"decimal place": "decimals", "decimal": "decimals",
	"digits": "decimals", "now": "today", "the": "", "is there": "is", "are there": "is", "are": "is", "was": "is",
	"falls on": "is", "into": "in", "hence": "from today", "raise": "increase", "change": "increase",
	"percent change": "increase",
	"decrease":       "decrease", "reduce": "decrease", "lower": "decrease",
})

type phrase struct {
	words []string
	to    string
}

// sortPhrases returns phrases by their first word, the longest first.
func sortPhrases(table map[string]string) map[string][]phrase {
	byWord := make(map[string][]phrase)
	for from, to := range table {
		words := strings.Fields(from)
		byWord[words[0]] = append(byWord[words[0]], phrase{words, to})
	}
	for _, list := range byWord {
		slices.SortFunc(list, func(a, b phrase) int { return len(b.words) - len(a.words) })
	}
	return byWord
}

func hasWords(tokens []token, words []string) bool {
	if len(tokens) < len(words) {
		return false
	}
	for i, w := range words {
		if !tokens[i].is(w) {
			return false
		}
	}
	return true
}

// replacePhrases returns tokens with the words of phrases replaced. A replacement keeps the position of
// the first word.
func replacePhrases(tokens []token) []token {
	var out []token
next:
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		for _, p := range phrases[t.name] {
			if t.kind != wordToken || !hasWords(tokens[i:], p.words) {
				continue
			}
			for _, word := range strings.Fields(p.to) {
				u := token{kind: wordToken, text: t.text, name: word, at: t.at, glued: t.glued}
				if strings.ContainsAny(word, "+-*/^%") {
					u.kind = symbolToken
				}
				if len(p.words) > 1 {
					u.text = word
				}
				out = append(out, u)
			}
			i += len(p.words) - 1
			continue next
		}
		out = append(out, t)
	}
	return out
}

var (
	smallNumbers = map[string]int64{
		"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
		"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
		"seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
		"sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
	}
	// multiples are words that multiply the number before them: "1.5 million", "two thirds".
	multiples = map[string]*big.Rat{
		"dozen": big.NewRat(
			12,
			1,
		), "hundred": big.NewRat(100, 1), "thousand": big.NewRat(1e3, 1), "million": big.NewRat(1e6, 1),
		"billion": big.NewRat(1e9, 1), "half": big.NewRat(1, 2), "third": big.NewRat(1, 3), "thirds": big.NewRat(1, 3),
		"quarter": big.NewRat(
			1,
			4,
		), "quarters": big.NewRat(1, 4), "fifth": big.NewRat(1, 5), "tenth": big.NewRat(1, 10),
	}
)

// replaceNumberWords returns tokens with "two", "twenty-one", "a third" and "half a dozen" replaced by
// numbers.
func replaceNumberWords(tokens []token) []token {
	var out []token
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		n, small := smallNumbers[t.name]
		switch {
		case t.kind != wordToken:
		case small:
			next := i + 1
			if tokens[next].is("-") && tokens[next].glued {
				next++ // skip the hyphen of twenty-one
			}
			if ones := smallNumbers[tokens[min(next, len(tokens)-1)].name]; n >= 20 && ones > 0 && ones < 10 {
				n, i = n+ones, next
			}
			t.kind, t.num = numberToken, big.NewRat(n, 1)
		case t.is("a", "an") && (multiples[tokens[i+1].name] != nil || len(out) > 0 &&
			out[len(out)-1].kind == numberToken):
			continue // "a" or "half" before a number word, as in a third, half a dozen, half an hour
		case multiples[t.name] != nil:
			t.kind, t.num = numberToken, multiples[t.name]
			if last := len(out) - 1; last >= 0 && out[last].kind == numberToken {
				out[last].num = new(big.Rat).Mul(out[last].num, t.num)
				continue
			}
		}
		out = append(out, t)
	}
	return out
}
