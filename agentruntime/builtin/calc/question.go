package calc

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// introductions may stand before a question without changing it.
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

// trimQuestion removes the introduction and the end of a question, and reports
// whether it asks "how many".
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
			// "take 5 from 20" is a question, "take 15% off 80" has an introduction.
			isForm := words[0] == "take" && findWord(body, 0, []string{"from"}) > 0
			if hasWords(body, words) && !isForm {
				body = body[len(words):]
				continue next
			}
		}
		return append(slices.Clone(body), end), howMany
	}
}

// form is a whole question: words, "_" for an expression, "UNIT" for a unit.
// A word that ends with "?" may be missing, "a|b" is either.
type form struct {
	pattern string
	answer  func(v []value, u *unit, today time.Time) (value, error)
}

func forms() []form {
	pair := func(f func(a, b value) (value, error)) func([]value, *unit, time.Time) (value, error) {
		return func(v []value, _ *unit, _ time.Time) (value, error) { return f(v[0], v[1]) }
	}
	plus := func(a, b value) (value, error) { return addValues(a, b, 1) }
	minus := func(a, b value) (value, error) { return addValues(a, b, -1) }
	between := func(v []value, u *unit, _ time.Time) (value, error) { return measureDistance(v[0], v[1], u, false) }
	fromToday := func(sign bool) func([]value, *unit, time.Time) (value, error) {
		return func(v []value, u *unit, today time.Time) (value, error) {
			now := value{kind: date, day: today}
			if sign {
				return measureDistance(now, v[0], u, true)
			}
			return measureDistance(v[0], now, u, true)
		}
	}
	return []form{
		{"add _ to _", pair(func(a, b value) (value, error) { return plus(b, a) })},
		{"subtract|take _ from _", pair(func(a, b value) (value, error) { return minus(b, a) })},
		{"multiply _ by _", pair(func(a, b value) (value, error) { return multiply(a, b, false) })},
		{"divide _ by _", pair(func(a, b value) (value, error) { return multiply(a, b, true) })},
		{"increase _ by _", pair(plus)},
		{"decrease _ by _", pair(minus)},
		{"increase|decrease from _ to _", pair(func(a, b value) (value, error) { return share(b, a, true) })},
		{"_ is what % of _", pair(func(a, b value) (value, error) { return share(a, b, false) })},
		{"_ as a? % of _", pair(func(a, b value) (value, error) { return share(a, b, false) })},
		{"what % of _ is _", pair(func(a, b value) (value, error) { return share(b, a, false) })},
		{"what % is _ of _", pair(func(a, b value) (value, error) { return share(a, b, false) })},
		{"difference between _ and _", between},
		{"time between _ and _", between},
		{"UNIT is? between _ and _", between},
		{"UNIT is? from _ to|until _", between},
		{"UNIT is? it? until _", fromToday(true)},
		{"UNIT is? it? since _", fromToday(false)},
		{"what? weekday is|of|on|will? it? be? is? on? _", answerWeekday},
		{"in _", func(v []value, _ *unit, today time.Time) (value, error) { return addToDate(today, v[0], 1) }},
	}
}

// unitForms are the forms after "how many".
func unitForms() []form {
	convert := func(v []value, u *unit, _ time.Time) (value, error) { return convertTo(v[0], u) }
	return []form{{"UNIT is? in _", convert}, {"UNIT is _", convert}}
}

func answerWeekday(v []value, _ *unit, _ time.Time) (value, error) {
	if v[0].kind != date {
		return value{}, refuse("weekday of 2026-12-24", "A weekday is that of a date, not of %s.", v[0].describe())
	}
	return value{kind: text, text: v[0].day.Weekday().String()}, nil
}

// answerQuestion computes a question that fits a form, or else an expression.
func answerQuestion(tokens []token, today time.Time) (value, error) {
	tokens, howMany := trimQuestion(tokens)
	if len(tokens) == 1 {
		return value{}, refuse(exampleNumber, "There is no question.")
	}
	list := forms()
	if howMany {
		list = append(list, unitForms()...)
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
		return f.answer(values, u, today)
	}
	return (&parser{tokens: tokens, today: today}).parseAll()
}

// match returns the tokens of each expression, ended by an endToken.
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

// findWord returns where one of the names stands outside of parentheses, or 0.
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

// call reads max(1, 2), sqrt 16, "sum of 1, 2 and 3" and "round 2.567 to 2".
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
	v.approximate, v.parts = false, nil // the rounded number is exact
	return v, nil
}
