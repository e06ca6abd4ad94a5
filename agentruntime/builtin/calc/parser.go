package calc

import (
	"math/big"
	"slices"
	"time"
)

// Binding powers of operators: of two operators the one with the higher power is computed first.
const (
	bindConversion = 2
	bindRelation   = 5 // from, before, off
	bindSum        = 10
	bindProduct    = 20
	bindSign       = 25
	bindPower      = 30
)

// parser is a Pratt parser (precedence climbing). It computes while it reads, without a syntax tree.
type parser struct {
	tokens []token // the last is an endToken
	pos    int
	depth  int
	today  time.Time
	// inList is true while reading the arguments of a function: "and" then separates them, and does not
	// join "1 hour and 5 minutes".
	inList bool
}

func (p *parser) peek(n int) token { return p.tokens[min(p.pos+n, len(p.tokens)-1)] }

// accept consumes the next token if it has one of the names, and reports whether it did.
func (p *parser) accept(names ...string) bool {
	if p.peek(0).is(names...) {
		p.pos++
		return true
	}
	return false
}

// unexpected returns the Invalid fault for the next token. wanted names the possible tokens in its
// place.
func (p *parser) unexpected(wanted string) error {
	t := p.peek(0)
	switch {
	case t.kind == endToken:
		return refuse(exampleNumber, "The question ends at character %d where %s should follow.", t.at, wanted)
	case t.is(","):
		return refuse("1,234.5 + 1", "I did not understand the comma at character %d: decimals take a point.", t.at)
	case t.kind == wordToken && p.pos > 0 && (p.peek(-1).kind == numberToken || wanted == "a unit"):
		return refuse(
			exampleUnit,
			"I did not understand %q at character %d. I know units of length, weight, temperature, volume, time, "+
				"speed, area and data.",
			t.text,
			t.at,
		)
	}
	return refuse(exampleNumber, "I did not understand %q at character %d; expected %s.", t.text, t.at, wanted)
}

// parseAll reads one expression. Tokens after its end are an error.
func (p *parser) parseAll() (value, error) {
	v, err := p.expression(0)
	if err == nil && p.peek(0).kind != endToken {
		err = p.unexpected("an operator")
	}
	return v, err
}

// expression reads an operand with all following operators of a binding power above least.
func (p *parser) expression(least int) (value, error) {
	if p.depth++; p.depth > maxNesting {
		return value{}, refuse(
			"(1 + 2) * 3",
			"The question is nested more than %d levels deep at character %d.",
			maxNesting,
			p.peek(0).at,
		)
	}
	defer func() { p.depth-- }()
	left, err := p.operand()
	for err == nil {
		var more bool
		if left, more, err = p.postfix(left, least); more || err != nil {
			continue
		}
		if left, more, err = p.infix(left, least); !more {
			break
		}
	}
	return left, err
}

// postfix applies one sign after an operand, such as ! or %; false if the next token is none.
func (p *parser) postfix(v value, least int) (value, bool, error) {
	var err error
	switch t := p.peek(0); {
	case t.is("!"):
		p.pos++
		v, err = factorial(v)
	case t.is("squared", "cubed"):
		p.pos++
		v, err = power(v, plainNumber(big.NewRat(map[string]int64{"squared": 2, "cubed": 3}[t.name], 1)))
	case t.is("%") && !p.startsOperand(1):
		p.pos++
		p.accept("vat", "tax", "gst", "tip", "interest", "discount")
		if err = v.requireNumber("A percentage"); err == nil {
			v = value{num: new(big.Rat).Quo(v.num, big.NewRat(100, 1)), percent: true, approximate: v.approximate}
		}
	case t.is("ago") && least < bindRelation:
		p.pos++
		v, err = addValues(value{kind: date, day: p.today}, v, -1)
	case t.is("in", "to", "as") && least < bindConversion:
		p.pos++
		v, err = p.conversion(v)
	default:
		return v, false, nil
	}
	return v, true, err
}

// startsOperand reports whether the token n ahead begins an operand: then % is
// the remainder (17 % 5), otherwise a percentage (17% + 5).
func (p *parser) startsOperand(n int) bool {
	t := p.peek(n)
	return t.kind == numberToken || t.is("(", "pi") || isFunction(t)
}

// infix applies one operator with its right operand; false if the next operator binds no stronger than
// least.
func (p *parser) infix(left value, least int) (value, bool, error) {
	t := p.peek(0)
	bind, right := 0, 0
	switch {
	case t.is("+", "-"):
		bind, right = bindSum, bindSum
	case t.is("*", "/", "mod", "%", "per", "of"):
		bind, right = bindProduct, bindProduct
	case t.is("^"):
		bind, right = bindPower, bindPower-1 // The power is right-associative: 2^3^2 is 2^9.
	case t.is("from", "after", "before", "off"):
		bind, right = bindRelation, bindRelation-1
	case t.is("(", "pi"), isFunction(t): // a product without a sign, such as 2(3+4) or 2 pi
		bind, right = bindProduct, bindProduct
	}
	shared := left.percent || left.kind == number && left.num != nil && !left.num.IsInt()
	// "20 of 80" is a question for a share; "of" multiplies only after a percentage or fraction.
	if bind <= least || t.is("of") && !shared {
		return left, false, nil
	}
	if !t.is("(", "pi") && !isFunction(t) {
		p.pos++
	}
	r, err := p.expression(right)
	if err != nil {
		return value{}, false, err
	}
	v, err := applyOperator(t, left, r)
	return v, err == nil, err
}

func applyOperator(t token, left, right value) (value, error) {
	switch t.name {
	case "+":
		return addValues(left, right, 1)
	case "-":
		return addValues(left, right, -1)
	case "/", "per":
		return multiply(left, right, true)
	case "mod", "%":
		return modulo(left, right)
	case "^":
		return power(left, right)
	case "from", "after":
		return addValues(right, left, 1)
	case "before", "off":
		return addValues(right, left, -1)
	}
	return multiply(left, right, false)
}

// operand reads a number with its unit, a date, a clock time, a group, a
// function, or one of these after a sign.
func (p *parser) operand() (value, error) {
	t := p.peek(0)
	switch {
	case t.is("-"):
		p.pos++
		v, err := p.expression(bindSign)
		if err == nil && v.kind != number {
			err = refuse(exampleDate, "%s has no negative.", v.describe())
		}
		if err != nil {
			return value{}, err
		}
		v.num, v.parts = new(big.Rat).Neg(v.num), nil
		return v, nil
	case t.is("+"):
		p.pos++
		return p.expression(bindSign)
	case t.is("("):
		p.pos++
		inList := p.inList
		p.inList = false
		v, err := p.expression(0)
		p.inList = inList
		if err == nil && !p.accept(")") {
			err = p.unexpected("a closing parenthesis")
		}
		if err != nil || v.kind != number || v.unit != nil {
			return v, err
		}
		return p.attachUnit(v), nil
	case t.kind == numberToken:
		return p.readNumber()
	case t.kind == dateToken:
		p.pos++
		return value{kind: date, day: t.day}, nil
	case t.kind == clockToken:
		p.pos++
		return value{kind: clock, num: t.num}, nil
	case t.is("today", "tomorrow", "yesterday"):
		p.pos++
		return value{
			kind: date,
			day:  p.today.AddDate(0, 0, map[string]int{"tomorrow": 1, "yesterday": -1}[t.name]),
		}, nil
	case t.is("pi"):
		p.pos++
		return value{num: piNumber, approximate: true}, nil
	case isFunction(t):
		return p.call()
	case monthNames[t.name] > 0 && p.peek(1).kind == numberToken:
		p.pos++
		return p.readMonth(monthNames[t.name], p.peek(0))
	case t.is("a", "an"):
		p.pos++
	}
	if u, ok := p.readUnit(); ok {
		return value{num: big.NewRat(1, 1), unit: u}, nil
	}
	if slices.Contains(knownOmissions, t.name) {
		return value{}, refuse(
			"sqrt(2) * 3^4",
			"I do not compute %q. I know + - * / ^ %% and sqrt, abs, round, floor, ceil, min, max, sum, average.",
			t.text,
		)
	}
	return value{}, p.unexpected("a number, a unit, a date or a function")
}

// knownOmissions are functions that calculators have and calc does not, so that the error can say so.
var knownOmissions = []string{
	"sin",
	"cos",
	"tan",
	"log",
	"ln",
	"exp",
	"e",
	"gcd",
	"lcm",
	"cbrt",
	"cube",
	"logarithm",
	"sine",
	"cosine",
	"tangent",
}

var piNumber = mustRat("3.1415926535897932384626433832795028841971693993751058209749445923078164")

// readNumber reads a number with its unit and further quantities of the same
// dimension ("3 h 25 min"), or a date.
func (p *parser) readNumber() (value, error) {
	t := p.peek(0)
	p.pos++
	if month := p.monthAhead(); month > 0 {
		return p.readMonth(month, t)
	}
	v := plainNumber(t.num)
	if slash, below := p.peek(0), p.peek(1); slash.is("/") && slash.glued && below.kind == numberToken && below.glued &&
		below.num.Sign() != 0 {
		ahead := parser{tokens: p.tokens, pos: p.pos + 2}
		if _, ok := ahead.readUnit(); ok { // "1/2 hour" is half an hour, not 1 divided by 2 hours
			p.pos += 2
			v.num = new(big.Rat).Quo(t.num, below.num)
		}
	}
	v = p.attachUnit(v)
	parts := []value{v}
	for v.unit != nil && !v.unit.hasOffset() {
		mark := p.pos
		if !p.inList {
			p.accept("and")
		}
		n := p.peek(0)
		p.pos++
		if n.kind != numberToken || monthNames[p.peek(0).name] > 0 {
			p.pos = mark
			break
		}
		q := p.attachUnit(plainNumber(n.num))
		if q.unit == nil || q.unit.dim != v.unit.dim {
			p.pos = mark
			break
		}
		sum, err := addValues(v, q, 1)
		if err != nil {
			return value{}, err
		}
		v, parts = sum, append(parts, q)
	}
	if len(parts) > 1 {
		v.parts = parts
	}
	return limit(v)
}

// monthAhead returns the month in "Dec" or "th of December" after a number, and consumes it; 0 if there
// is none.
func (p *parser) monthAhead() time.Month {
	mark := p.pos
	if p.peek(0).glued {
		p.accept("st", "nd", "rd", "th")
	}
	p.accept("of")
	if t := p.peek(0); t.kind == wordToken && monthNames[t.name] > 0 {
		p.pos++
		return monthNames[t.name]
	}
	p.pos = mark
	return 0
}

// readMonth reads the rest of "December 25, 2026" and "25 December 2026". Without a year it takes the
// present one.
func (p *parser) readMonth(month time.Month, day token) (value, error) {
	if p.peek(0).at == day.at {
		p.pos++
		if p.peek(0).glued {
			p.accept("st", "nd", "rd", "th")
		}
	}
	if !day.num.IsInt() || day.num.Cmp(big.NewRat(31, 1)) > 0 {
		return value{}, refuse(exampleDate, "There is no day %s in a month.", day.text)
	}
	year := p.today.Year()
	mark := p.pos
	p.accept(",")
	if y := p.peek(0); y.kind == numberToken && len(y.text) == 4 && y.num.IsInt() {
		p.pos++
		year = int(y.num.Num().Int64())
	} else {
		p.pos = mark
	}
	d, err := makeDay(year, month, int(day.num.Num().Int64()))
	return value{kind: date, day: d}, err
}

// attachUnit returns v with the unit that the next tokens name, or unchanged if they name none.
func (p *parser) attachUnit(v value) value {
	if p.peek(0).is("in") && !p.isInch() {
		return v
	}
	if u, ok := p.readUnit(); ok {
		v.unit = u
	}
	return v
}

// isInch reports whether "in" after a number is the unit inch ("5 in", "5 in to cm"); otherwise "in"
// begins a conversion ("5 m in cm").
func (p *parser) isInch() bool {
	if p.peek(1).is("in", "to", "as") {
		return true
	}
	ahead := parser{tokens: p.tokens, pos: p.pos + 1}
	if _, ok := ahead.readUnit(); ok {
		return false
	}
	return !p.peek(1).is("%", "a", "an", "fraction", "decimals", "(", "square", "cubic")
}

// readUnit consumes a unit such as km, m², m^2, m2, sq ft, km/h or km per hour; false if the next tokens
// are none.
func (p *parser) readUnit() (*unit, bool) {
	u, ok := p.readUnitFactor()
	if !ok {
		return nil, false
	}
	if p.peek(0).is("/", "per") && p.peek(1).kind == wordToken {
		mark := p.pos
		p.pos++
		if under, ok := p.readUnitFactor(); ok && divideUnits(u, under) != nil {
			return divideUnits(u, under), true
		}
		p.pos = mark
	}
	return u, true
}

func (p *parser) readUnitFactor() (*unit, bool) {
	mark, n := p.pos, 1
	switch {
	case p.accept("square"):
		n = 2
	case p.accept("cubic"):
		n = 3
	}
	t := p.peek(0)
	u := units[t.text]
	if u == nil {
		u = units[t.name]
	}
	if t.kind != wordToken || u == nil || isFunction(t) && p.peek(1).is("(") {
		p.pos = mark
		return nil, false
	}
	p.pos++
	isPower := func(t token) bool {
		return t.kind == numberToken && slices.Contains([]string{"2", "3", "²", "³"}, t.text)
	}
	switch next := p.peek(0); {
	case next.is("^") && isPower(p.peek(1)):
		n = int(p.peek(1).num.Num().Int64())
		p.pos += 2
	case next.glued && isPower(next):
		n = int(next.num.Num().Int64())
		p.pos++
	case p.accept("squared"):
		n = 2
	case p.accept("cubed"):
		n = 3
	}
	if n == 1 {
		return u, true
	}
	if u.dim != length {
		p.pos = mark
		return nil, false
	}
	return raiseUnit(u, n), true
}

// conversion reads the target of a conversion, such as "miles", "feet and inches", "percent" or "a
// fraction", and converts v.
func (p *parser) conversion(v value) (value, error) {
	p.accept("a", "an")
	if form := p.peek(0); form.is("%", "fraction", "decimals") {
		p.pos++
		if err := v.requireNumber("This conversion"); err != nil {
			return value{}, err
		}
		v.form, v.percent = form.name, form.name == "%"
		return v, nil
	}
	var targets []*unit
	for {
		u, ok := p.readUnit()
		if !ok {
			return value{}, p.unexpected("a unit")
		}
		targets = append(targets, u)
		mark := p.pos
		if !p.accept("and", ",") {
			break
		}
		if _, ok := p.readUnit(); !ok {
			p.pos = mark
			break
		}
		p.pos = mark + 1
	}
	if v.kind == number && v.unit == nil {
		return value{}, refuse(
			exampleUnit,
			"%s has no unit, so it cannot be converted to %s.",
			v.num.RatString(),
			targets[0].describe(),
		)
	}
	return convertToUnits(v, targets)
}
