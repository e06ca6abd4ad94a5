package calc

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

type valueKind int

const (
	number valueKind = iota
	date
	clock
	text
)

// value is the result of a question or of a part of it.
type value struct {
	kind valueKind
	num  *big.Rat // number in unit; for clock times the seconds since midnight
	unit *unit    // nil for a plain number
	// percent is true for a percentage: num is shown times 100 with a percent sign.
	percent bool
	// approximate is true when num is rounded to precision bits.
	approximate bool
	// parts are the quantities of "1 month 3 days", because each is added to a date on its own.
	parts []value
	day   time.Time
	text  string
	// form is "fraction" or "decimals" if the question asks for one, else "".
	form string
	note string
}

const (
	precision = 256 // bits of approximate numbers
	// shownDigits is the number of significant digits of an approximate number in an answer.
	shownDigits = 20
	// maxDecimals is the largest number of decimals of an exact number in an answer; longer ones are
	// shown as fractions.
	maxDecimals      = 60
	maxFractionBytes = 60
)

func plainNumber(r *big.Rat) value { return value{num: r} }

func errTooLarge() error {
	return refuse(
		"2^1000",
		"The result, or a step on the way to it, has more than %d digits. Use smaller numbers.",
		maxDigits,
	)
}

func errZeroDivision() error {
	return refuse("10 / 4", "Division by zero has no result.")
}

// limit returns v, or an Invalid fault if its number has more than maxDigits digits.
func limit(v value) (value, error) {
	if v.kind != number {
		return v, nil
	}
	if v.num.Num().BitLen() > maxBits || v.num.Denom().BitLen() > maxBits {
		return value{}, errTooLarge()
	}
	if v.approximate {
		// Digits beyond the precision are meaningless and would grow with every step.
		v.num, _ = new(big.Float).SetPrec(precision).SetRat(v.num).Rat(nil)
	}
	return v, nil
}

// describe returns a name of the value for error messages.
func (v value) describe() string {
	switch {
	case v.kind == date:
		return "the date " + v.day.Format(time.DateOnly)
	case v.kind == clock:
		return "the clock time " + formatClock(v.num)
	case v.kind == text:
		return v.text
	case v.unit != nil:
		return v.unit.describe()
	}
	return "a plain number"
}

func (v value) requireNumber(purpose string) error {
	if v.kind != number || v.unit != nil {
		return refuse(exampleNumber, "%s needs a plain number, not %s.", purpose, v.describe())
	}
	return nil
}

// addValues returns a + sign·b; sign is 1 or -1. A percentage is taken of a: 80 + 15% is 92.
func addValues(a, b value, sign int) (value, error) {
	switch {
	case a.kind == date && b.kind == date && sign < 0:
		return value{num: big.NewRat(int64(countDays(b.day, a.day)), 1), unit: units["day"]}, nil
	case a.kind == date:
		return addToDate(a.day, b, sign)
	case b.kind == date && sign > 0:
		return addToDate(b.day, a, sign)
	case a.kind == clock && b.kind == clock && sign < 0:
		return value{num: new(big.Rat).Sub(a.num, b.num), unit: units["s"]}, nil
	case a.kind == clock:
		return addToClock(a, b, sign)
	case b.kind == clock && sign > 0:
		return addToClock(b, a, sign)
	case a.kind != number || b.kind != number:
		return value{}, refuse(exampleDate, "I cannot add or subtract %s and %s.", a.describe(), b.describe())
	}
	if b.percent && !a.percent { // a percentage of a, as in 80 + 15%
		b = value{num: new(big.Rat).Mul(a.num, b.num), unit: a.unit, approximate: b.approximate}
	}
	if a.unit.hasOffset() || b.unit.hasOffset() {
		return value{}, errOffset()
	}
	b, err := convertTo(b, a.unit)
	if err != nil {
		return value{}, err
	}
	sum := new(big.Rat).Add(a.num, b.num)
	if sign < 0 {
		sum.Sub(a.num, b.num)
	}
	return limit(
		value{num: sum, unit: a.unit, percent: a.percent && b.percent, approximate: a.approximate || b.approximate},
	)
}

// multiply returns a·b or, with divide, a/b.
func multiply(a, b value, divide bool) (value, error) {
	for _, v := range []value{a, b} {
		if v.kind != number {
			return value{}, refuse(exampleDate, "I cannot multiply or divide %s.", v.describe())
		}
	}
	if divide && b.num.Sign() == 0 {
		return value{}, errZeroDivision()
	}
	if a.unit.hasOffset() || b.unit.hasOffset() {
		return value{}, errOffset()
	}
	out := value{approximate: a.approximate || b.approximate}
	var err error
	if out.unit, b.num, err = multiplyUnits(a.unit, b.unit, b.num, divide); err != nil {
		return value{}, err
	}
	if out.num = new(big.Rat); divide {
		out.num.Quo(a.num, b.num)
	} else {
		out.num.Mul(a.num, b.num)
	}
	return limit(out)
}

func modulo(a, b value) (value, error) {
	b, err := convertTo(b, a.unit)
	if err != nil {
		return value{}, err
	}
	if b.num.Sign() == 0 {
		return value{}, errZeroDivision()
	}
	whole := new(big.Rat).SetInt(floor(new(big.Rat).Quo(a.num, b.num)))
	return limit(
		value{
			num:         whole.Sub(a.num, whole.Mul(whole, b.num)),
			unit:        a.unit,
			approximate: a.approximate || b.approximate,
		},
	)
}

// power returns a^b. b must be whole or one half; other exponents are an Invalid fault.
func power(a, b value) (value, error) {
	if err := b.requireNumber("An exponent"); err != nil {
		return value{}, err
	}
	if a.unit != nil && b.num.Cmp(big.NewRat(2, 1)) == 0 {
		return multiply(a, a, false)
	}
	if err := a.requireNumber("A power"); err != nil {
		return value{}, err
	}
	if b.num.Cmp(big.NewRat(1, 2)) == 0 {
		return squareRoot(a)
	}
	if !b.num.IsInt() {
		return value{}, refuse("2^10", "Only whole exponents are computed, and square roots: sqrt(2).")
	}
	n := b.num.Num()
	size := int64(max(a.num.Num().BitLen(), a.num.Denom().BitLen()) - 1)
	switch {
	case a.num.Sign() == 0 && n.Sign() < 0:
		return value{}, errZeroDivision()
	case size <= 0: // All powers of 0, 1 and -1 are small, so they need no limit.
		n = big.NewInt(int64(n.Sign()) * (2 - int64(n.Bit(0))))
	case n.BitLen() > 20 || size*n.Int64() > maxBits || size*n.Int64() < -maxBits:
		return value{}, errTooLarge()
	}
	exponent := new(big.Int).Abs(n)
	up, down := new(big.Int).Exp(a.num.Num(), exponent, nil), new(big.Int).Exp(a.num.Denom(), exponent, nil)
	if n.Sign() < 0 {
		up, down = down, up
	}
	return limit(value{num: new(big.Rat).SetFrac(up, down), approximate: a.approximate})
}

func squareRoot(v value) (value, error) {
	if err := v.requireNumber("A square root"); err != nil {
		return value{}, err
	}
	if v.num.Sign() < 0 {
		return value{}, refuse("sqrt(16)", "The square root of a negative number is not a real number.")
	}
	up, down := new(big.Int).Sqrt(v.num.Num()), new(big.Int).Sqrt(v.num.Denom())
	r := new(big.Rat).SetFrac(up, down)
	if new(big.Rat).Mul(r, r).Cmp(v.num) == 0 {
		return limit(value{num: r, approximate: v.approximate})
	}
	f := new(big.Float).SetPrec(precision).SetRat(v.num)
	r, _ = f.Sqrt(f).Rat(nil)
	return limit(value{num: r, approximate: true})
}

// maxFactorial is the largest number with a factorial of at most maxDigits.
const maxFactorial = 1775

func factorial(v value) (value, error) {
	if err := v.requireNumber("A factorial"); err != nil {
		return value{}, err
	}
	if !v.num.IsInt() || v.num.Sign() < 0 || v.num.Cmp(big.NewRat(maxFactorial, 1)) > 0 {
		return value{}, refuse("5!", "The factorial is computed for whole numbers from 0 to %d.", maxFactorial)
	}
	return plainNumber(new(big.Rat).SetInt(new(big.Int).MulRange(1, v.num.Num().Int64()))), nil
}

// share returns part/whole in percent or, with change, (part-whole)/whole.
func share(part, whole value, change bool) (value, error) {
	if part.kind != number || whole.kind != number {
		return value{}, refuse(
			"20 is what percent of 80",
			"A percentage needs two numbers, not %s and %s.",
			part.describe(),
			whole.describe(),
		)
	}
	part, err := convertTo(part, whole.unit)
	if err != nil {
		return value{}, err
	}
	if whole.unit.hasOffset() {
		return value{}, errOffset()
	}
	if whole.num.Sign() == 0 {
		return value{}, refuse("20 is what percent of 80", "A percentage of zero has no meaning.")
	}
	r := new(big.Rat).Quo(part.num, whole.num)
	if change {
		r.Sub(r, big.NewRat(1, 1))
	}
	return limit(value{num: r, percent: true, approximate: part.approximate || whole.approximate})
}

func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) }

// roundAway rounds to the nearest integer, halves away from zero.
func roundAway(r *big.Rat) *big.Int {
	n := floor(new(big.Rat).Add(new(big.Rat).Abs(r), big.NewRat(1, 2)))
	if r.Sign() < 0 {
		n.Neg(n)
	}
	return n
}

func tenTo(n int) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
}

// formatAnswer returns the Markdown of an answer: the result in bold, then notes in a second paragraph.
func formatAnswer(v value) string {
	main, exact := formatValue(v)
	// Only the fraction before " ≈ " is bold, not its decimals after it.
	head, rest, approximate := strings.Cut(main, " ≈ ")
	out := "**" + head + "**"
	if approximate {
		out += " ≈ " + rest
	}
	if v.kind == date {
		out += fmt.Sprintf(" (%s)", v.day.Weekday())
	}
	var notes []string
	if exact != "" {
		notes = append(notes, "exactly "+exact)
	}
	if v.note != "" {
		notes = append(notes, v.note)
	}
	if len(notes) > 0 {
		out += "\n\n" + strings.Join(notes, ". ")
	}
	return out
}

// formatValue returns the text of a value. exact is the exact fraction of a quantity with decimals that do
// not end, "" otherwise.
func formatValue(v value) (main, exact string) {
	switch v.kind {
	case date:
		return v.day.Format(time.DateOnly), ""
	case clock:
		return formatClock(v.num), ""
	case text:
		return v.text, ""
	}
	r, suffix := v.num, ""
	if v.percent {
		r, suffix = new(big.Rat).Mul(r, big.NewRat(100, 1)), "%"
	} else if v.unit != nil {
		suffix = " " + v.unit.label(r)
	}
	rounded := new(big.Float).SetPrec(precision).SetRat(r).Text('g', shownDigits) + suffix
	fraction, short := r.RatString()+suffix, len(r.RatString()) <= maxFractionBytes
	finite := new(big.Int).Rem(tenTo(maxDecimals).Num(), r.Denom()).Sign() == 0
	switch {
	case v.approximate:
		return "≈ " + rounded, ""
	case r.IsInt(), v.form == "fraction" && short:
		return fraction, ""
	case finite:
		return strings.TrimRight(r.FloatString(maxDecimals), "0") + suffix, ""
	case suffix == "" && v.form != "decimals" && short:
		return fraction + " ≈ " + rounded, ""
	case short:
		return "≈ " + rounded, fraction
	}
	return "≈ " + rounded, ""
}
