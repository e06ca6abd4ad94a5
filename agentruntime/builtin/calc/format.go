package calc

import (
	"math/big"
	"strings"
)

const (
	// maxExactDecimals is how many decimals a terminating fraction may have
	// to be written out.
	maxExactDecimals = 60
	// maxFractionDigits is how long a fraction may be to be worth reading.
	maxFractionDigits = 60
	// maxWorkingBytes drops a working line longer than a person would read.
	maxWorkingBytes = 240
)

// answerText is the Markdown of the answer: the result in bold, then the
// working, if it says more than the result.
func answerText(n *node, v value) string {
	main, exactly := resultText(v)
	var notes []string
	if w := render(n); w != "" && w != main {
		notes = append(notes, w)
	}
	if exactly != "" {
		notes = append(notes, "exactly "+exactly)
	}
	if v.kind == kindDate {
		main += "** (" + v.day.Weekday().String() + ")"
	} else {
		main += "**"
	}
	// The fraction is bold, its decimal form is not.
	if head, tail, ok := strings.Cut(main, " ≈ "); ok && v.kind == kindNumber {
		main = head + "** ≈ " + strings.TrimSuffix(tail, "**")
	}
	out := "**" + main
	line := strings.Join(notes, "; ")
	if len(line) > maxWorkingBytes {
		line = ""
	}
	if v.note != "" {
		if line != "" {
			line += ". "
		}
		line += v.note
	}
	if line != "" {
		out += "\n\n" + line
	}
	return out
}

// resultText writes the value alone, and for a quantity without a finite
// decimal the exact fraction beside it.
func resultText(v value) (main, exactly string) {
	switch v.kind {
	case kindDate:
		return v.day.Format(dayLayout), ""
	case kindClock:
		return clockText(v.num), ""
	case kindText:
		return v.text, ""
	}
	r, suffix := v.num, ""
	switch {
	case v.pct:
		r, suffix = new(big.Rat).Mul(r, big.NewRat(100, 1)), "%"
	case len(v.unit) > 0:
		label := v.unit.label(r)
		if suffix = " " + label; strings.HasPrefix(label, "°") && label == "°" {
			suffix = label
		}
	}
	if v.digits > 0 {
		return "≈ " + significant(r, v.digits) + suffix, ""
	}
	fraction := r.RatString() + suffix
	fits := len(r.RatString()) <= maxFractionDigits
	decimal, finite := exactDecimal(r)
	switch {
	case v.form.fraction && fits:
		return fraction, ""
	case finite:
		return decimal + suffix, ""
	case suffix == "" && !v.form.decimal && fits:
		return fraction + " ≈ " + significant(r, bigDigits), ""
	case fits:
		return "≈ " + significant(r, bigDigits) + suffix, fraction
	}
	return "≈ " + significant(r, bigDigits) + suffix, ""
}

// exactDecimal writes r in full if it terminates early enough.
func exactDecimal(r *big.Rat) (string, bool) {
	if r.IsInt() {
		return r.Num().String(), true
	}
	if new(big.Int).Rem(tenTo(maxExactDecimals), r.Denom()).Sign() != 0 {
		return "", false
	}
	return strings.TrimRight(r.FloatString(maxExactDecimals), "0"), true
}

// significant writes r rounded to the given number of significant digits.
func significant(r *big.Rat, digits int) string {
	return new(big.Float).SetPrec(bigPrecision).SetRat(r).Text('g', digits)
}

// short writes a number for a message or the working line.
func short(r *big.Rat) string {
	const maxShort = 40
	if s, ok := exactDecimal(r); ok && len(s) <= maxShort {
		return s
	}
	if s := r.RatString(); len(s) <= maxShort {
		return s
	}
	return "≈" + significant(r, 6)
}

func clockText(seconds *big.Rat) string {
	n := floorRat(seconds).Int64()
	two := func(n int64) string { return string([]byte{byte('0' + n/10%10), byte('0' + n%10)}) }
	s := two(n/3600) + ":" + two(n/60%60)
	if n%60 != 0 {
		s += ":" + two(n%60)
	}
	return s
}

// splitValue writes a quantity over several units, whole numbers but for the
// last: 3.75 h in hours and minutes is 3 h 45 min.
func splitValue(v value, targets []target) (value, error) {
	last := targets[len(targets)-1]
	rest := v
	negative := v.kind == kindNumber && v.num.Sign() < 0
	if negative {
		rest.num = new(big.Rat).Neg(v.num)
	}
	var parts []string
	approx := ""
	for i, t := range targets {
		q, err := convert(rest, t)
		if err != nil {
			return value{}, err
		}
		if t.unit.offset() != nil {
			return value{}, errOffset()
		}
		if i < len(targets)-1 {
			whole := new(big.Rat).SetInt(floorRat(q.num))
			rest = q
			rest.num = new(big.Rat).Sub(q.num, whole)
			q.num = whole
		}
		if q.num.Sign() == 0 && !(t.unit.same(last.unit) && len(parts) == 0) {
			continue
		}
		text, _ := resultText(q)
		if exact, cut := strings.CutPrefix(text, "≈ "); cut {
			text, approx = exact, "≈ "
		}
		parts = append(parts, text)
	}
	s := strings.Join(parts, " ")
	if negative {
		s = "-" + s
	}
	return value{kind: kindText, text: approx + s, note: v.note}, nil
}

// Binding strengths for the parentheses of the working line.
const (
	bindSum = iota + 1
	bindProduct
	bindSign
	bindPower
	bindAtom
)

// render writes the tree back, so that a reader sees how the question was
// understood. It gives "" for what would only repeat the answer.
func render(n *node) string {
	if n.op == opLiteral {
		if n.val.kind == kindNumber && (n.text == "pi" || n.text == "e") {
			return n.text
		}
		return ""
	}
	if n.op == opCall && len(n.kids) > 40 {
		return ""
	}
	var b strings.Builder
	write(&b, n, 0)
	return b.String()
}

func write(b *strings.Builder, n *node, outer int) {
	if b.Len() > maxWorkingBytes { // the line is dropped anyway
		return
	}
	binary := func(strength int, sign string, right int) {
		open(b, strength < outer, "(")
		write(b, n.kids[0], strength)
		b.WriteString(sign)
		write(b, n.kids[1], right)
		open(b, strength < outer, ")")
	}
	switch n.op {
	case opLiteral:
		writeLiteral(b, n)
	case opNegate:
		open(b, bindSign < outer, "(")
		b.WriteString("-")
		write(b, n.kids[0], bindSign)
		open(b, bindSign < outer, ")")
	case opAdd:
		binary(bindSum, " + ", bindProduct)
	case opSubtract:
		binary(bindSum, " - ", bindProduct)
	case opMultiply:
		binary(bindProduct, " × ", bindSign)
	case opDivide:
		binary(bindProduct, " / ", bindSign)
	case opModulo:
		binary(bindProduct, " mod ", bindSign)
	case opOf:
		binary(bindProduct, " of ", bindSign)
	case opPower:
		open(b, bindPower < outer, "(")
		write(b, n.kids[0], bindAtom)
		b.WriteString("^")
		write(b, n.kids[1], bindPower)
		open(b, bindPower < outer, ")")
	case opPercent:
		write(b, n.kids[0], bindAtom)
		b.WriteString("%")
	case opFactorial:
		write(b, n.kids[0], bindAtom)
		b.WriteString("!")
	case opUnit:
		open(b, bindAtom <= outer, "(")
		write(b, n.kids[0], bindAtom)
		var count *big.Rat
		if k := n.kids[0]; k.op == opLiteral {
			count = k.val.num
		}
		b.WriteString(" " + n.unit.label(count))
		open(b, bindAtom <= outer, ")")
	case opCompound:
		for i, k := range n.kids {
			if i > 0 {
				b.WriteString(" ")
			}
			write(b, k, 0)
		}
	case opCall:
		b.WriteString(n.text + "(")
		for i, k := range n.kids {
			if i > 0 {
				b.WriteString(", ")
			}
			write(b, k, 0)
		}
		b.WriteString(")")
	case opConvert:
		open(b, outer > 0, "(")
		write(b, n.kids[0], 0)
		joint := " in "
		if len(n.targets[0].unit) == 0 {
			joint = " as "
		}
		b.WriteString(joint)
		for i, t := range n.targets {
			if i > 0 {
				b.WriteString(" and ")
			}
			if len(t.unit) > 0 {
				b.WriteString(t.unit.label(nil))
			} else {
				b.WriteString(t.name())
			}
		}
		open(b, outer > 0, ")")
	case opShare:
		write(b, n.kids[0], 0)
		b.WriteString(" as a percentage of ")
		write(b, n.kids[1], bindProduct)
	case opChange, opBetween:
		b.WriteString("from ")
		write(b, n.kids[0], 0)
		b.WriteString(" to ")
		write(b, n.kids[1], 0)
	case opWeekday:
		write(b, n.kids[0], 0)
	case opAgo:
		write(b, n.kids[0], 0)
		b.WriteString(" ago")
	}
}

func open(b *strings.Builder, needed bool, s string) {
	if needed {
		b.WriteString(s)
	}
}

func writeLiteral(b *strings.Builder, n *node) {
	switch n.val.kind {
	case kindDate:
		b.WriteString(n.val.day.Format(dayLayout))
	case kindClock:
		b.WriteString(clockText(n.val.num))
	default:
		if n.text == "pi" || n.text == "e" {
			b.WriteString(n.text)
			return
		}
		b.WriteString(short(n.val.num))
	}
}
