package calc

import (
	"math/big"
	"slices"
	"strings"
)

// phrase replaces a run of words by the one token it stands for.
type phrase struct {
	words []string
	kind  tokenKind
	to    string // "" drops the words
}

// phrases is tried longest first at every token. A phrase that would shadow a
// shorter one with another meaning must be longer than it.
var phrases = func() []phrase {
	var list []phrase
	add := func(kind tokenKind, to string, forms ...string) {
		for _, f := range forms {
			list = append(list, phrase{strings.Fields(f), kind, to})
		}
	}
	add(tokenOp, "+", "plus")
	add(tokenOp, "-", "minus", "less")
	add(tokenOp, "*", "times", "multiplied by", "x")
	add(tokenOp, "/", "divided by", "over")
	add(tokenOp, "^", "to the power of", "to the power", "raised to the power of", "raised to")
	add(tokenWord, "percent", "percent", "per cent", "pct", "percentage", "percents")
	add(tokenWord, "mod", "modulo", "modulus")
	add(tokenWord, "sqrt", "square root", "squareroot", "root")
	add(tokenWord, "cbrt", "cube root", "cubic root", "third root")
	add(tokenWord, "abs", "absolute value", "absolute")
	add(tokenWord, "gcd", "greatest common divisor", "greatest common factor", "gcf", "hcf")
	add(tokenWord, "lcm", "least common multiple", "lowest common multiple")
	add(tokenWord, "avg", "average", "mean")
	add(tokenWord, "sum", "total")
	add(tokenWord, "max", "maximum", "largest", "biggest")
	add(tokenWord, "min", "minimum", "smallest")
	add(tokenWord, "ceil", "ceiling")
	add(tokenWord, "ln", "natural log", "natural logarithm")
	add(tokenWord, "log", "logarithm")
	add(tokenWord, "sin", "sine")
	add(tokenWord, "cos", "cosine")
	add(tokenWord, "tan", "tangent")
	add(tokenWord, "pi", "π")
	add(tokenWord, "workday", "working day", "working days", "business day", "business days", "workdays")
	add(tokenWord, "nmi", "nautical mile", "nautical miles")
	add(tokenWord, "floz", "fl oz", "fluid ounce", "fluid ounces")
	add(tokenWord, "impgal", "imperial gallon", "imperial gallons")
	add(tokenWord, "imppt", "imperial pint", "imperial pints")
	add(tokenWord, "tonne", "metric ton", "metric tons")
	add(tokenWord, "deg", "°")
	add(tokenWord, "c", "degrees celsius", "degree celsius", "deg c", "degrees c", "° c")
	add(tokenWord, "f", "degrees fahrenheit", "degree fahrenheit", "deg f", "degrees f", "° f")
	add(tokenWord, "sq", "square")
	add(tokenWord, "weekday", "day of the week", "day of week", "week day")
	add(tokenWord, "until", "till")
	add(tokenWord, "decimals", "decimal places", "decimal place", "decimal digits", "places", "digits", "dp", "decimal")
	add(tokenWord, "today", "now")
	add(tokenWord, "", "the")
	slices.SortStableFunc(list, func(a, b phrase) int { return len(b.words) - len(a.words) })
	return list
}()

// phraseStarts indexes phrases by first word, so that folding stays linear.
var phraseStarts = func() map[string][]phrase {
	m := make(map[string][]phrase)
	for _, p := range phrases {
		m[p.words[0]] = append(m[p.words[0]], p)
	}
	return m
}()

// foldPhrases replaces English operators and multi-word names, and joins
// "9 am" to a clock time.
func foldPhrases(tokens []token) []token {
	out := make([]token, 0, len(tokens))
next:
	for i := 0; i < len(tokens); {
		t := tokens[i]
		if half, ok := halfDay(t); ok && len(out) > 0 {
			if c, ok := onHalfDay(out[len(out)-1], half); ok {
				out[len(out)-1] = c
				i++
				continue
			}
		}
		if t.kind == tokenWord {
			for _, p := range phraseStarts[t.low] {
				if !wordsAt(tokens[i:], p.words) {
					continue
				}
				if p.to != "" {
					text := t.text
					if len(p.words) > 1 {
						text = strings.Join(p.words, " ")
					}
					out = append(out, token{kind: p.kind, text: text, low: p.to, at: t.at, glued: t.glued})
				}
				i += len(p.words)
				continue next
			}
		}
		out = append(out, t)
		i++
	}
	return out
}

func wordsAt(tokens []token, words []string) bool {
	if len(tokens) < len(words) {
		return false
	}
	for i, w := range words {
		if !tokens[i].isWord(w) {
			return false
		}
	}
	return true
}

func halfDay(t token) (offsetHours int64, ok bool) {
	switch {
	case t.isWord("am"):
		return 0, true
	case t.isWord("pm"):
		return 12, true
	}
	return 0, false
}

// onHalfDay turns "9" or "9:30" before am or pm into a clock time.
func onHalfDay(t token, offsetHours int64) (token, bool) {
	hour := new(big.Rat)
	switch t.kind {
	case tokenNumber:
		if !t.num.IsInt() {
			return t, false
		}
		hour.Mul(t.num, big.NewRat(3600, 1))
	case tokenClock:
		hour.Set(t.num)
	default:
		return t, false
	}
	if hour.Cmp(big.NewRat(3600, 1)) < 0 || hour.Cmp(big.NewRat(13*3600, 1)) >= 0 {
		return t, false
	}
	if hour.Cmp(big.NewRat(12*3600, 1)) >= 0 {
		hour.Sub(hour, big.NewRat(12*3600, 1)) // 12 am is midnight, 12 pm noon
	}
	hour.Add(hour, big.NewRat(offsetHours*3600, 1))
	t.kind, t.num = tokenClock, hour
	return t, true
}

var smallNumbers = map[string]int64{
	"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
	"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
	"seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fourty": 40,
	"fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

var scaleWords = map[string]int64{
	"dozen": 12, "dozens": 12, "score": 20, "hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
}

var fractionWords = map[string]int64{
	"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fifth": 5, "fifths": 5,
	"sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10, "hundredth": 100,
}

// foldNumberWords replaces runs like "two hundred and five", "twenty-one",
// "half a dozen", "1.5 million" and "two thirds" by one number token.
func foldNumberWords(tokens []token) []token {
	out := make([]token, 0, len(tokens))
	for i := 0; i < len(tokens); {
		t, n := numberWords(tokens[i:])
		if n == 0 {
			t, n = tokens[i], 1
		}
		out = append(out, t)
		i += n
	}
	return out
}

// numberWords reads one number at the start of tokens and says how many
// tokens it took; zero means there are no number words here.
func numberWords(tokens []token) (token, int) {
	first := tokens[0]
	result := token{kind: tokenNumber, at: first.at, glued: first.glued}
	i := 0
	// total holds finished thousands, group what is being read below them.
	total, group := new(big.Rat), new(big.Rat)
	words, article := 0, false
	switch {
	case first.kind == tokenNumber:
		group.Set(first.num)
		i = 1
	case first.isWord("a") || first.isWord("an"):
		// "a" is a number only before what can be counted.
		if len(tokens) < 2 {
			return first, 0
		}
		_, scale := scaleWords[tokens[1].low]
		_, part := fractionWords[tokens[1].low]
		_, unit := lookupUnit(tokens[1].text)
		if tokens[1].kind != tokenWord || !(scale || part || unit) {
			return first, 0
		}
		group.SetInt64(1)
		i, words, article = 1, 1, true
	}
	for lastSmall := int64(-1); i < len(tokens); i++ {
		t := tokens[i]
		if t.isOp("-") && t.glued && lastSmall >= 20 && i+1 < len(tokens) && tokens[i+1].glued {
			if n, ok := smallNumbers[tokens[i+1].low]; ok && n > 0 && n < 10 {
				continue // the hyphen of twenty-one
			}
		}
		if t.isWord("and") && words > 0 && lastSmall < 0 && i+1 < len(tokens) && tokens[i-1].kind == tokenWord && scaleWords[tokens[i-1].low] >= 100 {
			if _, ok := smallNumbers[tokens[i+1].low]; ok {
				continue // two hundred and five
			}
		}
		if t.kind != tokenWord {
			break
		}
		if n, ok := smallNumbers[t.low]; ok {
			if first.kind == tokenNumber && words == 0 || article && words == 1 || lastSmall >= 0 && !(lastSmall >= 20 && n > 0 && n < 10) {
				break
			}
			group.Add(group, big.NewRat(n, 1))
			lastSmall = n
			words++
			continue
		}
		if n, ok := scaleWords[t.low]; ok && i > 0 {
			lastSmall = -1
			if n < 1000 {
				group.Mul(group, big.NewRat(n, 1))
			} else {
				total.Add(total, group.Mul(group, big.NewRat(n, 1)))
				group = new(big.Rat)
			}
			words++
			continue
		}
		break
	}
	value := total.Add(total, group)
	if i < len(tokens) && tokens[i].kind == tokenWord {
		if d, ok := fractionWords[tokens[i].low]; ok && (i == 0 || value.IsInt()) {
			if i == 0 {
				value.SetInt64(1)
			}
			value.Quo(value, big.NewRat(d, 1))
			result.fraction = true
			i++
			words++
			// "half a dozen", "half an hour"
			if i+1 < len(tokens) && (tokens[i].isWord("a") || tokens[i].isWord("an")) {
				if n, ok := scaleWords[tokens[i+1].low]; ok {
					value.Mul(value, big.NewRat(n, 1))
					i += 2
				} else if _, ok := lookupUnit(tokens[i+1].text); ok {
					i++
				}
			}
		} else if i+2 < len(tokens) && i > 0 && tokens[i].low == "and" && tokens[i+1].isWord("a") && fractionWords[tokens[i+2].low] > 0 {
			value.Add(value, big.NewRat(1, fractionWords[tokens[i+2].low])) // two and a half
			i += 3
			words++
		}
	}
	if words == 0 {
		return first, 0
	}
	if i == 1 && first.isWord("a") { // "a mile": the article alone
		result.text = "1"
	}
	result.num = value
	if result.text == "" {
		result.text = first.text
	}
	return result, i
}

// framing lists what may stand before a question without changing it.
var framing = func() [][]string {
	var list [][]string
	for _, f := range []string{
		"what is", "what's", "whats", "what are", "what date is", "what date was", "what date will", "which date is", "what will", "what was",
		"how much is", "how much are", "how much", "calculate", "compute", "evaluate", "please", "convert", "tell me",
		"can you", "could you", "work out", "find", "solve", "give me", "calc", "hi", "hello", "hey", "result of", "value of",
		"date", "is",
	} {
		list = append(list, strings.Fields(f))
	}
	return list
}()

// stripFraming removes polite and interrogative words around the question and
// reports whether it began with "how many", which turns "feet in a mile" into
// a conversion.
func stripFraming(tokens []token) (rest []token, howMany bool) {
	end := tokens[len(tokens)-1]
	body := tokens[:len(tokens)-1]
trim:
	for len(body) > 0 {
		last := body[len(body)-1]
		for _, s := range []string{"?", "=", "."} {
			if last.isOp(s) {
				body = body[:len(body)-1]
				continue trim
			}
		}
		for _, s := range []string{"please", "equals", "equal", "thanks", "be"} {
			if last.isWord(s) {
				body = body[:len(body)-1]
				continue trim
			}
		}
		if last.isOp(",") { // "…, please"
			body = body[:len(body)-1]
			continue
		}
		break
	}
lead:
	for len(body) > 0 {
		if body[0].isOp("=") || body[0].isOp(",") || body[0].isOp(":") {
			body = body[1:]
			continue
		}
		if wordsAt(body, []string{"how", "many"}) {
			body, howMany = body[2:], true
			continue
		}
		for _, f := range framing {
			if wordsAt(body, f) {
				body = body[len(f):]
				continue lead
			}
		}
		break
	}
	return append(slices.Clone(body), end), howMany
}
