package calc

import (
	"math"
	"math/big"

	"agentsite/internal/fault"
)

const (
	// bigDigits is how many digits are shown of a value computed with
	// bigPrecision bits; floatDigits of one that went through float64.
	bigDigits    = 20
	floatDigits  = 15
	bigPrecision = 256
	// maxFactorial is the largest n whose factorial has at most 5,000 digits.
	maxFactorial = 1775
)

// piRat and eRat have 70 decimals, far more than is ever shown.
var (
	piRat = mustRat("3.1415926535897932384626433832795028841971693993751058209749445923078164")
	eRat  = mustRat("2.7182818284590452353602874713526624977572470936999595749669676277240766")
)

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

func tenTo(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// fewerDigits combines two precisions, where 0 means exact.
func fewerDigits(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func errTooLarge() error {
	return fault.New(fault.Invalid, "The result, or a step on the way to it, has more than %d digits. Use smaller numbers, for example: %s",
		maxResultDigits, `"2^1000"`)
}

func errDivisionByZero() error {
	return fault.New(fault.Invalid, "Division by zero has no result. Check the divisor; this works: %s", `"10 / 4"`)
}

// bounded keeps every intermediate result within the size limit. Approximate
// values are cut to the working precision first, or their denominators would
// grow although the digits mean nothing.
func bounded(r *big.Rat, digits int) (*big.Rat, error) {
	if digits > 0 {
		f := new(big.Float).SetPrec(bigPrecision).SetRat(r)
		if f.Sign() != 0 {
			if e := f.MantExp(nil); e > maxResultBits {
				return nil, errTooLarge()
			} else if e < -maxResultBits {
				return new(big.Rat), nil
			}
		}
		r, _ = f.Rat(nil)
		return r, nil
	}
	if r.Num().BitLen() > maxResultBits || r.Denom().BitLen() > maxResultBits {
		return nil, errTooLarge()
	}
	return r, nil
}

// floorRat returns the largest integer not above r.
func floorRat(r *big.Rat) *big.Int {
	// Euclidean division equals floor because the denominator is positive.
	return new(big.Int).Div(r.Num(), r.Denom())
}

// roundRat rounds half away from zero, as taught at school.
func roundRat(r *big.Rat) *big.Int {
	half := big.NewRat(1, 2)
	n := floorRat(half.Add(half, new(big.Rat).Abs(r)))
	if r.Sign() < 0 {
		n.Neg(n)
	}
	return n
}

func modRat(a, b *big.Rat) (*big.Rat, error) {
	if b.Sign() == 0 {
		return nil, errDivisionByZero()
	}
	q := new(big.Rat).SetInt(floorRat(new(big.Rat).Quo(a, b)))
	return q.Sub(a, q.Mul(q, b)), nil
}

func factorial(r *big.Rat) (*big.Rat, error) {
	if !r.IsInt() || r.Sign() < 0 {
		return nil, fault.New(fault.Invalid, "The factorial is defined for whole numbers from 0 on, not for %s. Try: %s", short(r), `"5!"`)
	}
	if r.Num().Cmp(big.NewInt(maxFactorial)) > 0 {
		return nil, fault.New(fault.Invalid, "The factorial of %s has more than %d digits; the largest computed is %d!. Try: %s",
			short(r), maxResultDigits, maxFactorial, `"100!"`)
	}
	return new(big.Rat).SetInt(new(big.Int).MulRange(1, r.Num().Int64())), nil
}

// powInt raises an exact base to an integer power, refusing before it
// computes anything that would not fit.
func powInt(a *big.Rat, exponent *big.Int) (*big.Rat, error) {
	if a.Sign() == 0 {
		switch exponent.Sign() {
		case -1:
			return nil, errDivisionByZero()
		case 0:
			return big.NewRat(1, 1), nil
		}
		return new(big.Rat), nil
	}
	if a.IsInt() && a.Num().CmpAbs(big.NewInt(1)) == 0 {
		if a.Sign() > 0 || exponent.Bit(0) == 0 {
			return big.NewRat(1, 1), nil
		}
		return big.NewRat(-1, 1), nil
	}
	bits := int64(max(a.Num().BitLen(), a.Denom().BitLen())) - 1
	if !exponent.IsInt64() || exponent.CmpAbs(big.NewInt(maxResultBits)) > 0 || bits*abs64(exponent.Int64()) > maxResultBits {
		return nil, errTooLarge()
	}
	n := new(big.Int).Abs(exponent)
	num, den := new(big.Int).Exp(a.Num(), n, nil), new(big.Int).Exp(a.Denom(), n, nil)
	if exponent.Sign() < 0 {
		num, den = den, num
	}
	return new(big.Rat).SetFrac(num, den), nil
}

func abs64(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// powApprox raises an approximate base to an integer power in big.Float.
func powApprox(a *big.Rat, exponent *big.Int) (*big.Rat, error) {
	if a.Sign() == 0 {
		return powInt(a, exponent)
	}
	const maxExponent = 1_000_000 // keeps the rounding error below the digits shown
	if exponent.CmpAbs(big.NewInt(maxExponent)) > 0 {
		return nil, errTooLarge()
	}
	result := new(big.Float).SetPrec(bigPrecision).SetInt64(1)
	square := new(big.Float).SetPrec(bigPrecision).SetRat(a)
	// A base of at most 16,610 bits to a power below 2^20 stays far inside
	// big.Float's 32-bit exponent, even with one extra squaring.
	for n := abs64(exponent.Int64()); n > 0; n >>= 1 {
		if n&1 == 1 {
			result.Mul(result, square)
		}
		if e := square.MantExp(nil); abs(e) > 1<<28 {
			return nil, errTooLarge()
		}
		square.Mul(square, square)
	}
	if exponent.Sign() < 0 {
		result.Quo(big.NewFloat(1).SetPrec(bigPrecision), result)
	}
	switch e := result.MantExp(nil); {
	case e > maxResultBits:
		return nil, errTooLarge()
	case e < -maxResultBits:
		return new(big.Rat), nil
	}
	r, _ := result.Rat(nil)
	return r, nil
}

// rootInt returns the integer q-th root of n ≥ 0 and whether it is exact.
func rootInt(n *big.Int, q int64) (*big.Int, bool) {
	if q == 2 {
		s := new(big.Int).Sqrt(n)
		return s, new(big.Int).Mul(s, s).Cmp(n) == 0
	}
	if n.Sign() == 0 {
		return new(big.Int), true
	}
	// Newton from above: a power of two that is at least the root.
	x := new(big.Int).Lsh(big.NewInt(1), uint((int64(n.BitLen())+q-1)/q))
	exp, bigQ := big.NewInt(q-1), big.NewInt(q)
	for {
		y := new(big.Int).Quo(n, new(big.Int).Exp(x, exp, nil))
		y.Add(y, new(big.Int).Mul(x, exp)).Quo(y, bigQ)
		if y.Cmp(x) >= 0 {
			break
		}
		x = y
	}
	return x, new(big.Int).Exp(x, bigQ, nil).Cmp(n) == 0
}

// rootRat returns the exact q-th root of r ≥ 0, or false.
func rootRat(r *big.Rat, q int64) (*big.Rat, bool) {
	num, ok := rootInt(r.Num(), q)
	if !ok {
		return nil, false
	}
	den, ok := rootInt(r.Denom(), q)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetFrac(num, den), true
}

// sqrtApprox returns the square root of r > 0 to bigDigits digits.
func sqrtApprox(r *big.Rat) *big.Rat {
	f := new(big.Float).SetPrec(bigPrecision).SetRat(r)
	root, _ := f.Sqrt(f).Rat(nil)
	return root
}

// lnApprox returns the natural logarithm of r > 0. It splits off the power of
// two since r may lie far outside float64.
func lnApprox(r *big.Rat) float64 {
	f := new(big.Float).SetPrec(bigPrecision).SetRat(r)
	mant := new(big.Float)
	e := f.MantExp(mant)
	if e >= -1000 && e <= 1000 {
		x, _ := f.Float64()
		if near := new(big.Rat).Sub(r, big.NewRat(1, 1)); math.Abs(x-1) < 0.5 {
			// The difference to 1 is computed exactly, or its digits would drown.
			d, _ := near.Float64()
			return math.Log1p(d)
		}
		return math.Log(x)
	}
	m, _ := mant.Float64()
	return math.Log(m) + float64(e)*math.Ln2
}

// ratOfFloat refuses what float64 cannot say.
func ratOfFloat(x float64) (*big.Rat, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil, errTooLarge()
	}
	return new(big.Rat).SetFloat64(x), nil
}

// powReal raises a > 0 to a non-integer power and says how many digits hold.
func powReal(a, b *big.Rat, digits int) (*big.Rat, int, error) {
	const maxRoot, maxPower = 64, 1000
	if digits == 0 && b.Denom().Cmp(big.NewInt(maxRoot)) <= 0 && b.Num().CmpAbs(big.NewInt(maxPower)) <= 0 {
		if root, ok := rootRat(a, b.Denom().Int64()); ok {
			r, err := powInt(root, b.Num())
			return r, 0, err
		}
	}
	if b.Denom().Cmp(big.NewInt(2)) == 0 {
		root := sqrtApprox(a)
		r, err := powApprox(root, b.Num())
		return r, fewerDigits(digits, bigDigits), err
	}
	x, _ := a.Float64()
	y, _ := b.Float64()
	p := math.Pow(x, y)
	if x == 0 || math.IsInf(x, 0) {
		p = math.Exp(y * lnApprox(a))
	}
	r, err := ratOfFloat(p)
	return r, fewerDigits(digits, floatDigits), err
}
