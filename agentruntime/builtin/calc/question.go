package calc

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// introductions may precede a question without changing it, such as "what is".
var introductions = splitPhrases(
	"what is",
	"what's",
	"what date is",
	"what date",
	"what will",
	"how much is",
	"how much",
	"calculate",
	"compute",
	"please",
	"convert",
	"tell me",
	"can you",
	"could you",
	"work out",
	"solve",
	"give me",
	"calc",
	"hello",
	"hi",
	"=",
	",",
	"is",
	"date",
	"take",
)

func splitPhrases(list ...string) (out [][]string) {
	for _, s := range list {
		out = append(out, strings.Fields(s))
	}
	return out
}

// trimQuestion removes the introduction and the end of a question. howMany is true if it asks "how
// many", which allows unitForms.
func trimQuestion(tokens []token) (rest []token, howMany bool) {
	last := len(tokens) - 1
	end := tokens[last]
	for last > 0 && tokens[last-1].is("?", "=", ".", ",", "please", "equals", "thanks", "be") {
		last--
	}
	body := tokens[:last]
next:
	for {
		if hasWords(body, []string{"how", "many"}) {
			body, howMany = body[2:], true
			continue
		}
		for _, words := range introductions {
			// "take 15% off 80" begins with an introduction, but "take 5 from 20" is a subtraction.
			isForm := words[0] == "take" && findWord(body, 0, []string{"from"}) > 0
			if hasWords(body, words) && !isForm {
				body = body[len(words):]
				continue next
			}
		}
		return append(slices.Clone(body), end), howMany
	}
}

// form is the pattern of a whole question. In it "_" stands for an expression and "UNIT" for a unit; a
// word that ends with "?" is optional, and "a|b" matches either word.
type form struct {
	pattern string
	answer  formAnswer
}

// formAnswer is the computation of a form; a and b are the values of its first and second expression,
// unit is its UNIT.
type formAnswer int

const (
	sumOfBoth     formAnswer = iota // a + b
	difference                      // a - b
	product                         // a * b
	quotient                        // a / b
	shareOfSecond                   // a in percent of b
	shareOfFirst                    // b in percent of a
	changeToB                       // (b - a) in percent of a
	distance                        // from a to b, in the unit
	timeUntil                       // from today to a, in the unit
	timeSince                       // from a to today, in the unit
	weekdayOf                       // the weekday of a
	afterToday                      // today + a
	inUnit                          // a in the unit
)

var forms = []form{
	{"add _ to _", sumOfBoth},
	{"subtract|take _ from _", difference},
	{"multiply _ by _", product},
	{"divide _ by _", quotient},
	{"increase _ by _", sumOfBoth},
	{"decrease _ by _", difference},
	{"increase|decrease from _ to _", changeToB},
	{"_ is what % of _", shareOfSecond},
	{"_ as a? % of _", shareOfSecond},
	{"what % is _ of _", shareOfSecond},
	{"what % of _ is _", shareOfFirst},
	{"difference between _ and _", distance},
	{"time between _ and _", distance},
	{"UNIT is? between _ and _", distance},
	{"UNIT is? from _ to|until _", distance},
	{"UNIT is? it? until _", timeUntil},
	{"UNIT is? it? since _", timeSince},
	{"what? weekday is|of|on|will? it? be? is? on? _", weekdayOf},
	{"in _", afterToday},
}

// unitForms are the forms that are allowed after "how many", such as "km are in 5 miles".
var unitForms = []form{{"UNIT is? in _", inUnit}, {"UNIT is _", inUnit}}

// compute answers a question of the form. v holds the values of its expressions; u is nil if the form
// has no unit.
func (f form) compute(v []value, u *unit, today time.Time) (value, error) {
	a, b, now := v[0], v[len(v)-1], value{kind: date, day: today}
	if strings.HasPrefix(f.pattern, "add") || strings.HasPrefix(f.pattern, "subtract") {
		a, b = b, a // The number comes second in these forms: "add 19% to 250" is 250 + 19%.
	}
	switch f.answer {
	case sumOfBoth:
		return addValues(a, b, 1)
	case difference:
		return addValues(a, b, -1)
	case product, quotient:
		return multiply(a, b, f.answer == quotient)
	case shareOfSecond:
		return share(a, b, false)
	case shareOfFirst, changeToB:
		return share(b, a, f.answer == changeToB)
	case distance:
		return measureDistance(a, b, u, false)
	case timeUntil:
		return measureDistance(now, a, u, true)
	case timeSince:
		return measureDistance(a, now, u, true)
	case afterToday:
		return addToDate(today, a, 1)
	case inUnit:
		return convertTo(a, u)
	}
	if a.kind != date {
		return value{}, refuse("weekday of 2026-12-24", "A weekday is that of a date, not of %s.", a.describe())
	}
	return value{kind: text, text: a.day.Weekday().String()}, nil
}

// answerQuestion computes a question that fits a form, or else an expression. The first form that fits
// wins.
func answerQuestion(tokens []token, today time.Time) (value, error) {
	tokens, howMany := trimQuestion(tokens)
	if len(tokens) == 1 {
		return value{}, refuse(exampleNumber, "There is no question.")
	}
	list := forms
	if howMany {
		list = slices.Concat(forms, unitForms)
	}
	for _, f := range list {
		slots, u, ok := f.match(tokens)
		if !ok {
			continue
		}
		var values []value
		for _, slot := range slots {
			v, err := (&parser{tokens: slot, today: today}).parseAll()
			if err != nil {
				return value{}, err
			}
			values = append(values, v)
		}
		return f.compute(values, u, today)
	}
	return (&parser{tokens: tokens, today: today}).parseAll()
}

// match returns the tokens of each expression of the form, each ended by an endToken; ok is false if
// tokens do not fit.
func (f form) match(tokens []token) (slots [][]token, u *unit, ok bool) {
	words, pos := strings.Fields(f.pattern), 0
	last := len(tokens) - 1
	for i, word := range words {
		name, optional := strings.CutSuffix(word, "?")
		names := strings.Split(name, "|")
		switch {
		case word == "UNIT":
			p := parser{tokens: tokens, pos: pos}
			if tokens[pos].is("in") {
				return nil, nil, false
			}
			if u, ok = p.readUnit(); !ok {
				return nil, nil, false
			}
			pos = p.pos
		case word == "_":
			end := last
			if i+1 < len(words) {
				end = findWord(tokens, pos, strings.Split(words[i+1], "|"))
			}
			if end <= pos {
				return nil, nil, false
			}
			slots = append(slots, append(slices.Clone(tokens[pos:end]), token{at: tokens[end].at}))
			pos = end
		case tokens[pos].is(names...):
			pos++
		case !optional:
			return nil, nil, false
		}
	}
	return slots, u, pos == last
}

// findWord returns the index of the first token, at from or later, that has one of the names and is outside of
// parentheses; 0 if there is none.
func findWord(tokens []token, from int, names []string) int {
	depth := 0
	for i := from; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		case depth == 0 && t.is(names...):
			return i
		}
	}
	return 0
}

func isFunction(t token) bool {
	switch t.name {
	case "sqrt", "abs", "round", "floor", "ceil", "min", "max", "sum", "average":
		return t.kind == wordToken || t.kind == symbolToken
	}
	return false
}

// call applies a function: max(1, 2), sqrt 16, "sum of 1, 2 and 3" or "round 2.567 to 2".
func (p *parser) call() (value, error) {
	name := p.peek(0).name
	p.pos++
	open := p.peek(0).is("(")
	inList := p.inList
	p.inList = true
	var args []value
	var err error
	switch many := slices.Contains([]string{"min", "max", "sum", "average"}, name); {
	case open:
		p.pos++
		args, err = p.arguments(0)
		if err == nil && !p.accept(")") {
			err = p.unexpected("a comma or a closing parenthesis")
		}
	case many:
		p.accept("of")
		args, err = p.arguments(bindSum)
	default:
		p.accept("of")
		args = make([]value, 1)
		args[0], err = p.expression(bindSign)
		if n := p.peek(1); name == "round" && p.peek(0).is("to") && n.kind == numberToken {
			args = append(args, plainNumber(n.num))
			p.pos += 2
			p.accept("decimals")
		}
	}
	p.inList = inList
	if err != nil {
		return value{}, err
	}
	v, err := callFunction(name, args)
	if err != nil {
		return value{}, err
	}
	return limit(v)
}

func (p *parser) arguments(least int) ([]value, error) {
	var list []value
	for {
		if t := p.peek(0); t.kind == numberToken && strings.Contains(t.text, ",") && least == 0 {
			return nil, refuse(
				"max(1, 200)",
				"In a list %q at character %d may be one number or two: write a space after the comma, or no comma.",
				t.text,
				t.at,
			)
		}
		v, err := p.expression(least)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		comma := p.accept(",")
		if !p.accept("and") && !comma {
			return list, nil
		}
	}
}

func callFunction(name string, args []value) (value, error) {
	first := args[0]
	if first.kind != number {
		return value{}, refuse("max(1, 2)", "%s is computed of numbers, not of %s.", name, first.describe())
	}
	single := len(args) == 1 || name == "round" && len(args) == 2
	switch name {
	case "sqrt", "abs", "round", "floor", "ceil":
		if !single {
			return value{}, refuse("sqrt(16)", "%s has too many arguments: "+strconv.Itoa(len(args))+".", name)
		}
	}
	switch name {
	case "sqrt":
		return squareRoot(first)
	case "abs":
		first.num = new(big.Rat).Abs(first.num)
		return first, nil
	case "round", "floor", "ceil":
		return roundNumber(name, args)
	}
	total := first
	for _, v := range args[1:] {
		same, err := convertTo(v, first.unit)
		if err != nil {
			return value{}, err
		}
		switch {
		case name == "sum" || name == "average":
			same.percent = total.percent && same.percent
			if total, err = addValues(total, same, 1); err != nil {
				return value{}, err
			}
		case (name == "max") == (same.num.Cmp(total.num) > 0):
			total = same
		}
	}
	if name == "average" {
		return multiply(total, plainNumber(big.NewRat(int64(len(args)), 1)), true)
	}
	return total, nil
}

func roundNumber(name string, args []value) (value, error) {
	v, places := args[0], int64(0)
	if len(args) == 2 {
		n := args[1].num
		if args[1].kind != number || args[1].unit != nil || !n.IsInt() || n.Num().CmpAbs(big.NewInt(maxDecimals)) > 0 {
			return value{}, refuse("round(2.567, 2)", "Numbers are rounded to at most %d decimal places.", maxDecimals)
		}
		places = n.Num().Int64()
	}
	scale := tenTo(int(max(places, -places)))
	if places < 0 {
		scale.Inv(scale)
	}
	scaled := new(big.Rat).Mul(v.num, scale)
	var whole *big.Int
	switch name {
	case "floor":
		whole = floor(scaled)
	case "ceil":
		whole = floor(scaled.Neg(scaled))
		whole.Neg(whole)
	default:
		whole = roundAway(scaled)
	}
	v.num = new(big.Rat).Quo(new(big.Rat).SetInt(whole), scale)
	v.approximate, v.parts = false, nil // A rounded number is exact and has no quantities of its own.
	return v, nil
}
