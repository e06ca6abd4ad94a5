package calc

import (
	"math/big"
	"time"

	"agentsite/internal/fault"
)

type valueKind int

const (
	kindNumber valueKind = iota
	kindDate
	kindClock // num is seconds after midnight
	kindText  // a finished answer such as a weekday, no operand
)

// value is what an expression yields. A quantity keeps the number in the unit
// it was typed in, so that what needs no conversion shows none.
type value struct {
	kind   valueKind
	num    *big.Rat // never changed in place: values share it
	unit   unit
	digits int  // significant digits that hold; 0 means exact
	pct    bool // a percentage, num already divided by 100
	day    time.Time
	text   string
	// note is one sentence for the working line.
	note string
	// form is how a conversion asked to write the number.
	form target
}

func numberValue(r *big.Rat) value { return value{kind: kindNumber, num: r} }

// describe names v in an error.
func (v value) describe() string {
	switch v.kind {
	case kindDate:
		return "the date " + v.day.Format(dayLayout)
	case kindClock:
		return "the clock time " + clockText(v.num)
	case kindText:
		return "the answer " + quoted(v.text)
	}
	if len(v.unit) > 0 {
		return v.unit.name()
	}
	return "the number " + short(v.num)
}

// eval computes the tree. Its depth is bounded by the parser for nesting and
// by the length of the question for chains of operators.
func eval(n *node, today time.Time) (value, error) {
	if n.op == opLiteral {
		return checked(n.val)
	}
	if n.op == opAgo {
		return onDate(value{kind: kindDate, day: today}, n.kids[0], -1, today)
	}
	var storage [2]value
	args := storage[:0]
	for i, k := range n.kids {
		if i == 1 && args[0].kind == kindDate && (n.op == opAdd || n.op == opSubtract) {
			sign := 1
			if n.op == opSubtract {
				sign = -1
			}
			return onDate(args[0], k, sign, today)
		}
		v, err := eval(k, today)
		if err != nil {
			return value{}, err
		}
		args = append(args, v)
	}
	v, err := apply(n, args)
	if err != nil {
		return value{}, err
	}
	for _, a := range args { // a note on a part stays with the whole
		if v.note == "" {
			v.note = a.note
		}
	}
	return checked(v)
}

func checked(v value) (value, error) {
	if v.num == nil {
		return v, nil
	}
	var err error
	v.num, err = bounded(v.num, v.digits)
	return v, err
}

// onDate computes start ± the span, the one operation whose right side must
// not be summed up before it is applied: a compound such as 1 month 3 days
// moves the date part by part. A date minus a date is the days between.
func onDate(start value, spanNode *node, sign int, today time.Time) (value, error) {
	parts := []*node{spanNode}
	if spanNode.op == opCompound {
		parts = spanNode.kids
	}
	var span []value
	for _, k := range parts {
		v, err := eval(k, today)
		if err != nil {
			return value{}, err
		}
		if v.kind == kindDate && sign < 0 {
			days := big.NewRat(int64(daysBetween(v.day, start.day)), 1)
			return value{kind: kindNumber, num: days, unit: mustUnit("days")}, nil
		}
		span = append(span, v)
	}
	v, err := addToDate(start.day, span, sign)
	if v.note == "" {
		v.note = start.note
	}
	return v, err
}

func apply(n *node, a []value) (value, error) {
	switch n.op {
	case opConvert:
		if len(n.targets) > 1 {
			return splitValue(a[0], n.targets)
		}
		return convert(a[0], n.targets[0])
	case opBetween:
		return between(n, a[0], a[1])
	case opWeekday:
		if a[0].kind != kindDate {
			return value{}, fault.New(fault.Invalid, "A weekday belongs to a date, not to %s. Try: %s", a[0].describe(), `"what weekday is 2030-05-01"`)
		}
		return value{kind: kindText, text: a[0].day.Weekday().String(), note: a[0].note}, nil
	case opAdd, opSubtract:
		sign := 1
		if n.op == opSubtract {
			sign = -1
		}
		return add(a[0], a[1], sign)
	}
	for _, v := range a {
		if v.kind != kindNumber {
			return value{}, fault.New(fault.Invalid, "I cannot calculate with %s at character %d that way. Try: %s", v.describe(), n.at, exampleDate)
		}
	}
	switch n.op {
	case opNegate:
		v := a[0]
		v.num = new(big.Rat).Neg(v.num)
		return v, nil
	case opMultiply, opOf:
		return multiply(a[0], a[1], 1)
	case opDivide:
		return multiply(a[0], a[1], -1)
	case opModulo:
		return modulo(a[0], a[1])
	case opPower:
		return power(a[0], a[1])
	case opPercent:
		v := a[0]
		if err := wantPlain("A percentage", v); err != nil {
			return value{}, err
		}
		v.num = new(big.Rat).Quo(v.num, big.NewRat(100, 1))
		v.pct = true
		return v, nil
	case opFactorial:
		return factorialOf(a[0])
	case opUnit:
		v := a[0]
		if len(v.unit) > 0 {
			return value{}, fault.New(fault.Invalid, "The unit %s at character %d follows a number that already has the unit %s. Try: %s",
				n.unit.label(nil), n.at, v.unit.label(nil), exampleUnit)
		}
		v.unit, v.pct = n.unit, false
		return v, nil
	case opCompound:
		v := a[0]
		for _, b := range a[1:] {
			var err error
			if v, err = add(v, b, 1); err != nil {
				return v, err
			}
		}
		return v, nil
	case opShare, opChange:
		return share(n, a[0], a[1])
	case opCall:
		return functions[n.text].apply(a)
	}
	return value{}, fault.New(fault.Invalid, "I cannot calculate that. Try: %s", exampleNumber)
}

// errMismatch names both sides of an operation on unlike quantities.
func errMismatch(a, b unit, verb string) error {
	return fault.New(fault.Invalid, "%s and %s cannot be %s: they do not measure the same thing. Try: %s", a.name(), b.name(), verb, `"2 kg + 300 g" or "5 km in miles"`)
}

// sameUnit brings v to unit u, for adding and comparing.
func sameUnit(v value, u unit) (value, error) {
	if v.kind != kindNumber {
		return value{}, fault.New(fault.Invalid, "I cannot calculate with %s that way. Try: %s", v.describe(), exampleDate)
	}
	if v.unit.same(u) {
		return v, nil
	}
	if v.unit.dim() != u.dim() || (len(v.unit) == 0) != (len(u) == 0) {
		return value{}, errMismatch(u, v.unit, "added or compared")
	}
	return convert(v, target{unit: u})
}

// add computes a ± b. A percentage on the right of a number is a share of
// that number, as on every pocket calculator: 80 + 15% is 92.
func add(a, b value, sign int) (value, error) {
	if a.kind == kindClock && b.kind == kindNumber {
		return addToClock(a, b, sign)
	}
	if a.kind == kindClock && b.kind == kindClock && sign < 0 {
		v := value{kind: kindNumber, num: new(big.Rat).Sub(a.num, b.num), unit: secondUnit}
		return splitValue(v, []target{{unit: mustUnit("h")}, {unit: mustUnit("min")}})
	}
	if a.kind == kindNumber && b.kind == kindDate && sign > 0 {
		return addToDate(b.day, []value{a}, 1)
	}
	if a.kind != kindNumber || b.kind != kindNumber {
		return value{}, fault.New(fault.Invalid, "%s and %s cannot be added or subtracted. Try: %s", a.describe(), b.describe(), `"2026-11-20 + 45 days"`)
	}
	if b.pct && !a.pct {
		if a.unit.offset() != nil {
			return value{}, errOffset()
		}
		share := new(big.Rat).Mul(a.num, b.num)
		b = value{kind: kindNumber, num: share, unit: a.unit, digits: b.digits}
	}
	if a.unit.offset() != nil || b.unit.offset() != nil {
		return value{}, errOffset()
	}
	b, err := sameUnit(b, a.unit)
	if err != nil {
		return value{}, err
	}
	out := a
	out.form, out.pct = target{}, a.pct && b.pct
	out.digits = fewerDigits(a.digits, b.digits)
	if sign < 0 {
		out.num = new(big.Rat).Sub(a.num, b.num)
	} else {
		out.num = new(big.Rat).Add(a.num, b.num)
	}
	return out, nil
}

func errOffset() error {
	return fault.New(fault.Invalid, "Temperatures in °C and °F have an arbitrary zero, so they are converted but not calculated with. Convert to K first: %s", `"20 c in K"`)
}

func addToClock(a, b value, sign int) (value, error) {
	if b.unit.dim() != dimTime {
		return value{}, fault.New(fault.Invalid, "To a clock time a time can be added, not %s. Try: %s", b.describe(), `"09:30 + 8 h 15 min"`)
	}
	seconds := new(big.Rat).Mul(b.num, b.unit.factor())
	if sign < 0 {
		seconds.Neg(seconds)
	}
	seconds.Add(seconds, a.num)
	out, err := modRat(seconds, daySeconds)
	if err != nil {
		return value{}, err
	}
	v := value{kind: kindClock, num: out}
	if out.Cmp(seconds) != 0 {
		v.note = "That is on another day."
	}
	return v, nil
}

// multiply computes a × b^sign with their units.
func multiply(a, b value, sign int) (value, error) {
	if a.unit.offset() != nil {
		return value{}, errOffset()
	}
	if b.unit.offset() != nil {
		return value{}, errOffset()
	}
	if sign < 0 && b.num.Sign() == 0 {
		return value{}, errDivisionByZero()
	}
	u, factor := a.unit, big.NewRat(1, 1)
	if len(b.unit) > 0 {
		u, factor = a.unit.merge(b.unit, sign)
		if err := checkPowers(u); err != nil {
			return value{}, err
		}
	}
	out := value{kind: kindNumber, unit: u, digits: fewerDigits(a.digits, b.digits)}
	if len(b.unit) > 0 && len(a.unit) > 0 {
		out.digits = fewerDigits(out.digits, fewerDigits(a.unit.digits(), b.unit.digits()))
	}
	if sign > 0 {
		out.num = new(big.Rat).Mul(a.num, b.num)
	} else {
		out.num = new(big.Rat).Quo(a.num, b.num)
	}
	out.num.Mul(out.num, factor)
	return out, nil
}

// checkPowers keeps exponents of units where they have a meaning and where
// the vectors of int8 cannot overflow.
func checkPowers(u unit) error {
	const maxUnitPower, maxParts = 9, 8
	bad := len(u) > maxParts
	for _, p := range u {
		bad = bad || abs(p.pow) > maxUnitPower
	}
	if bad {
		return fault.New(fault.Invalid, "The unit of the result would be a product too long to mean anything. Try: %s", `"3 m * 4 m"`)
	}
	return nil
}

func modulo(a, b value) (value, error) {
	if len(a.unit) > 0 || len(b.unit) > 0 {
		var err error
		if b, err = sameUnit(b, a.unit); err != nil {
			return value{}, err
		}
	}
	r, err := modRat(a.num, b.num)
	return value{kind: kindNumber, num: r, unit: a.unit, digits: fewerDigits(a.digits, b.digits)}, err
}

func power(a, b value) (value, error) {
	if err := wantPlain("An exponent", b); err != nil {
		return value{}, err
	}
	digits := fewerDigits(a.digits, b.digits)
	out := value{kind: kindNumber, digits: digits}
	if len(a.unit) > 0 {
		if a.unit.offset() != nil {
			return value{}, errOffset()
		}
		if !b.num.IsInt() || b.num.Num().CmpAbs(big.NewInt(9)) > 0 || b.num.Sign() == 0 {
			return value{}, fault.New(fault.Invalid, "%s can be raised to whole powers up to 9 only, not to %s. Try: %s", a.unit.name(), short(b.num), `"(3 m)^2"`)
		}
		for _, p := range a.unit {
			out.unit = append(out.unit, part{p.def, p.pow * int(b.num.Num().Int64())})
		}
		if err := checkPowers(out.unit); err != nil {
			return value{}, err
		}
	}
	var err error
	switch {
	case b.num.IsInt() && a.digits == 0:
		out.num, err = powInt(a.num, b.num.Num())
	case b.num.IsInt():
		out.num, err = powApprox(a.num, b.num.Num())
	case a.num.Sign() < 0:
		err = fault.New(fault.Invalid, "A negative number to the power %s is not a real number. For odd roots write: %s", short(b.num), `"cbrt(-8)"`)
	case a.num.Sign() == 0 && b.num.Sign() < 0:
		err = errDivisionByZero()
	case a.num.Sign() == 0:
		out.num = new(big.Rat)
	default:
		out.num, out.digits, err = powReal(a.num, b.num, digits)
	}
	return out, err
}

// share answers "a as a percentage of b" and the change from a to b.
func share(n *node, a, b value) (value, error) {
	whole, part := b, a
	if n.op == opChange {
		whole, part = a, b
	}
	if whole.unit.offset() != nil {
		return value{}, errOffset()
	}
	part, err := sameUnit(part, whole.unit)
	if err != nil {
		return value{}, err
	}
	if whole.num.Sign() == 0 {
		return value{}, fault.New(fault.Invalid, "A percentage of zero has no meaning. Try: %s", `"20 is what percent of 80"`)
	}
	r := new(big.Rat).Set(part.num)
	if n.op == opChange {
		r.Sub(r, whole.num)
	}
	r.Quo(r, whole.num)
	v := value{kind: kindNumber, num: r, pct: true, digits: fewerDigits(part.digits, whole.digits)}
	if n.op == opChange {
		v.note = [...]string{"A decrease.", "No change.", "An increase."}[r.Sign()*whole.num.Sign()+1]
		if whole.num.Sign() < 0 {
			v.note = "The starting value is negative, so the sign of the percentage is relative to it."
		}
	}
	return v, nil
}

// convert expresses v as the target asks.
func convert(v value, t target) (value, error) {
	if v.kind != kindNumber {
		return value{}, fault.New(fault.Invalid, "%s cannot be converted to %s. Try: %s", v.describe(), t.name(), exampleUnit)
	}
	if t.percent || t.fraction || t.decimal {
		if t.percent && len(v.unit) > 0 {
			return value{}, errMismatch(v.unit, nil, "converted into each other")
		}
		v.pct, v.form = t.percent, t
		return v, nil
	}
	if len(v.unit) == 0 {
		return value{}, fault.New(fault.Invalid, "%s has no unit, so it cannot be converted to %s. Say what it is, for example: %s", short(v.num), t.unit.name(), exampleUnit)
	}
	if v.unit.dim() != t.unit.dim() {
		return value{}, errMismatch(v.unit, t.unit, "converted into each other")
	}
	if v.unit.same(t.unit) {
		return v, nil
	}
	r := new(big.Rat).Mul(v.num, v.unit.factor())
	if o := v.unit.offset(); o != nil {
		r.Add(r, o)
	}
	if o := t.unit.offset(); o != nil {
		r.Sub(r, o)
	}
	r.Quo(r, t.unit.factor())
	out := v
	out.num, out.unit, out.form = r, t.unit, target{}
	out.digits = fewerDigits(v.digits, fewerDigits(v.unit.digits(), t.unit.digits()))
	return out, nil
}

func (t target) name() string {
	switch {
	case t.percent:
		return "a percentage"
	case t.fraction:
		return "a fraction"
	case t.decimal:
		return "a decimal"
	}
	return t.unit.name()
}
