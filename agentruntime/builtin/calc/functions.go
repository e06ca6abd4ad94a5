package calc

import (
	"math"
	"math/big"

	"agentsite/internal/fault"
)

// function is one callable name. Arguments arrive evaluated.
type function struct {
	minArgs, maxArgs int
	apply            func(args []value) (value, error)
}

// manyArgs is more than a question of 2,000 bytes can list.
const manyArgs = maxQuestionBytes

// functions is the table of callable names; nothing changes it later.
var functions = functionTable()

func isFunction(t token) bool {
	if t.kind != tokenWord {
		return false
	}
	_, ok := functions[t.low]
	return ok
}

func (f function) checkArgs(n *node) error {
	if k := len(n.kids); k < f.minArgs || k > f.maxArgs {
		return fault.New(fault.Invalid, "%s at character %d has the wrong number of arguments, %d. Try: %s", n.text, n.at, k, `"round(2.567, 2)" or "max(1, 2)"`)
	}
	return nil
}

func functionTable() map[string]function {
	one := func(f func(v value) (value, error)) function {
		return function{1, 1, func(a []value) (value, error) { return f(a[0]) }}
	}
	rounding := func(f func(*big.Rat) *big.Int) function {
		return function{1, 2, func(a []value) (value, error) { return roundTo(a, f) }}
	}
	return map[string]function{
		"sqrt":      one(func(v value) (value, error) { return root("sqrt", v, 2) }),
		"cbrt":      one(func(v value) (value, error) { return root("cbrt", v, 3) }),
		"abs":       one(func(v value) (value, error) { v.num = new(big.Rat).Abs(v.num); return v, nil }),
		"factorial": one(factorialOf),
		"round":     rounding(roundRat),
		"floor":     rounding(floorRat),
		"ceil": rounding(func(r *big.Rat) *big.Int {
			n := floorRat(new(big.Rat).Neg(r))
			return n.Neg(n)
		}),
		"min": {1, manyArgs, func(a []value) (value, error) { return extreme(a, -1) }},
		"max": {1, manyArgs, func(a []value) (value, error) { return extreme(a, 1) }},
		"sum": {1, manyArgs, sum},
		"avg": {1, manyArgs, func(a []value) (value, error) {
			v, err := sum(a)
			if err != nil {
				return v, err
			}
			v.num = new(big.Rat).Quo(v.num, big.NewRat(int64(len(a)), 1))
			return v, nil
		}},
		"product": {1, manyArgs, func(a []value) (value, error) {
			v := a[0]
			for _, b := range a[1:] {
				var err error
				if v, err = multiply(v, b, 1); err != nil {
					return v, err
				}
			}
			return v, nil
		}},
		"gcd": {1, manyArgs, func(a []value) (value, error) { return divisors("gcd", a) }},
		"lcm": {1, manyArgs, func(a []value) (value, error) { return divisors("lcm", a) }},
		"ln":  one(func(v value) (value, error) { return logarithm("ln", v, nil) }),
		"log": {1, 2, func(a []value) (value, error) {
			if len(a) == 2 {
				if err := wantPlain("log", a[1]); err != nil {
					return value{}, err
				}
				return logarithm("log", a[0], a[1].num)
			}
			return logarithm("log", a[0], big.NewRat(10, 1))
		}},
		"log10": one(func(v value) (value, error) { return logarithm("log10", v, big.NewRat(10, 1)) }),
		"log2":  one(func(v value) (value, error) { return logarithm("log2", v, big.NewRat(2, 1)) }),
		"exp":   one(exponential),
		"sin":   one(func(v value) (value, error) { return circular("sin", v) }),
		"cos":   one(func(v value) (value, error) { return circular("cos", v) }),
		"tan":   one(func(v value) (value, error) { return circular("tan", v) }),
	}
}

func wantPlain(name string, v value) error {
	if v.kind != kindNumber || len(v.unit) > 0 {
		return fault.New(fault.Invalid, "%s needs a plain number, not %s. Try: %s", name, v.describe(), `"sqrt(16)"`)
	}
	return nil
}

func factorialOf(v value) (value, error) {
	if err := wantPlain("The factorial", v); err != nil {
		return value{}, err
	}
	r, err := factorial(v.num)
	return numberValue(r), err
}

func root(name string, v value, q int64) (value, error) {
	if err := wantPlain(name, v); err != nil {
		return value{}, err
	}
	negative := v.num.Sign() < 0
	if negative && q == 2 {
		return value{}, fault.New(fault.Invalid, "The square root of %s is not a real number. Use a number from 0 on, for example: %s", short(v.num), `"sqrt(16)"`)
	}
	r, digits, err := new(big.Rat).Abs(v.num), v.digits, error(nil)
	if r.Sign() != 0 {
		r, digits, err = powReal(r, big.NewRat(1, q), v.digits)
	}
	if negative && err == nil {
		r = new(big.Rat).Neg(r)
	}
	out := numberValue(r)
	out.digits = digits
	return out, err
}

func roundTo(args []value, f func(*big.Rat) *big.Int) (value, error) {
	const maxPlaces = 60
	v, places := args[0], 0
	if len(args) == 2 {
		if err := wantPlain("The number of decimal places", args[1]); err != nil {
			return value{}, err
		}
		p := args[1].num
		if !p.IsInt() || p.Num().CmpAbs(big.NewInt(maxPlaces)) > 0 {
			return value{}, fault.New(fault.Invalid, "Numbers are rounded to between -%d and %d decimal places, not to %s. Try: %s", maxPlaces, maxPlaces, short(p), `"round(2.567, 2)"`)
		}
		places = int(p.Num().Int64())
	}
	scale := new(big.Rat).SetInt(tenTo(abs(places)))
	if places < 0 {
		scale.Inv(scale)
	}
	n := f(new(big.Rat).Mul(v.num, scale))
	v.num = new(big.Rat).Quo(new(big.Rat).SetInt(n), scale)
	// The rounded decimal is what was asked for, so it is shown as exact.
	v.digits = 0
	return v, nil
}

func extreme(args []value, sign int) (value, error) {
	best := args[0]
	for _, a := range args[1:] {
		b, err := sameUnit(a, best.unit)
		if err != nil {
			return value{}, err
		}
		if b.num.Cmp(best.num)*sign > 0 {
			best = a
		}
	}
	best.pct = false
	return best, nil
}

func sum(args []value) (value, error) {
	v := args[0]
	for _, a := range args[1:] {
		a.pct = v.pct && a.pct // in a list a percentage is a number
		var err error
		if v, err = add(v, a, 1); err != nil {
			return value{}, err
		}
	}
	return v, nil
}

func divisors(name string, args []value) (value, error) {
	acc := new(big.Int)
	for i, a := range args {
		if err := wantPlain(name, a); err != nil {
			return value{}, err
		}
		if !a.num.IsInt() {
			return value{}, fault.New(fault.Invalid, "%s is defined for whole numbers, not for %s. Try: %s", name, short(a.num), `"gcd(12, 18)"`)
		}
		n := new(big.Int).Abs(a.num.Num())
		switch {
		case i == 0:
			acc.Set(n)
		case name == "gcd":
			acc.GCD(nil, nil, acc, n)
		case acc.Sign() == 0 || n.Sign() == 0:
			acc.SetInt64(0)
		default:
			g := new(big.Int).GCD(nil, nil, acc, n)
			acc.Mul(acc, n.Quo(n, g))
			if acc.BitLen() > maxResultBits {
				return value{}, errTooLarge()
			}
		}
	}
	return numberValue(new(big.Rat).SetInt(acc)), nil
}

// logarithm takes base nil for e. A result that is a whole number is exact.
func logarithm(name string, v value, base *big.Rat) (value, error) {
	if err := wantPlain(name, v); err != nil {
		return value{}, err
	}
	if v.num.Sign() <= 0 {
		return value{}, fault.New(fault.Invalid, "The logarithm of %s is not defined; it needs a number above 0. Try: %s", short(v.num), `"log(1000)"`)
	}
	unity := big.NewRat(1, 1)
	if base != nil && (base.Sign() <= 0 || base.Cmp(unity) == 0) {
		return value{}, fault.New(fault.Invalid, "A logarithm has no base %s; it needs one above 0 other than 1. Try: %s", short(base), `"log(8, 2)"`)
	}
	if v.digits == 0 && v.num.Cmp(unity) == 0 {
		return numberValue(new(big.Rat)), nil
	}
	x := lnApprox(v.num)
	if base != nil {
		x /= lnApprox(base)
		if k := math.Round(x); v.digits == 0 && math.Abs(k) <= maxResultBits {
			if p, err := powInt(base, big.NewInt(int64(k))); err == nil && p.Cmp(v.num) == 0 {
				return numberValue(new(big.Rat).SetInt64(int64(k))), nil
			}
		}
	}
	return floatValue(x)
}

func exponential(v value) (value, error) {
	if err := wantPlain("exp", v); err != nil {
		return value{}, err
	}
	if v.num.Sign() == 0 {
		return numberValue(big.NewRat(1, 1)), nil
	}
	const maxExponent = 700 // float64 ends at e^709
	if new(big.Rat).Abs(v.num).Cmp(big.NewRat(maxExponent, 1)) > 0 {
		return value{}, fault.New(fault.Invalid, "exp is computed for numbers between -%d and %d. Try: %s", maxExponent, maxExponent, `"exp(2)"`)
	}
	x, _ := v.num.Float64()
	return floatValue(math.Exp(x))
}

// circular computes sin, cos and tan of radians, or of an angle with a unit.
func circular(name string, v value) (value, error) {
	x := v.num
	if len(v.unit) > 0 {
		if v.unit.dim() != dimAngle {
			return value{}, fault.New(fault.Invalid, "%s needs an angle, not %s. Try: %s", name, v.unit.name(), `"sin(30 deg)"`)
		}
		// Reduced in degrees, where it is exact, before π comes in.
		turn := big.NewRat(360, 1)
		degrees, err := modRat(new(big.Rat).Mul(x, v.unit.factor()), turn)
		if err != nil {
			return value{}, err
		}
		x = degrees.Mul(degrees, piRat)
		x.Quo(x, big.NewRat(180, 1))
	}
	if x.Sign() == 0 {
		n := int64(0)
		if name == "cos" {
			n = 1
		}
		return numberValue(big.NewRat(n, 1)), nil
	}
	// Beyond this size the 70 digits of π no longer fix the angle.
	if new(big.Rat).Abs(x).Cmp(new(big.Rat).SetInt(tenTo(40))) > 0 {
		return value{}, fault.New(fault.Invalid, "The angle for %s is too large; at most 10^40 is computed. Try: %s", name, `"sin(30 deg)"`)
	}
	reduced, err := modRat(x, new(big.Rat).Mul(big.NewRat(2, 1), piRat))
	if err != nil {
		return value{}, err
	}
	f, _ := reduced.Float64()
	// What remains of sin π in float64 is rounding, not a result.
	const noise = 1e-15
	sin, cos := math.Sincos(f)
	if math.Abs(sin) < noise {
		sin = 0
	}
	if math.Abs(cos) < noise {
		cos = 0
	}
	switch name {
	case "sin":
		return floatValue(sin)
	case "cos":
		return floatValue(cos)
	}
	if cos == 0 {
		return value{}, fault.New(fault.Invalid, "The tangent of a right angle is not defined. Try: %s", `"tan(45 deg)"`)
	}
	return floatValue(sin / cos)
}

func floatValue(x float64) (value, error) {
	r, err := ratOfFloat(x)
	v := numberValue(r)
	v.digits = floatDigits
	return v, err
}
