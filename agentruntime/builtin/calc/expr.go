package calc

import (
	"math/big"
	"time"

	"agentsite/internal/fault"
)

type operation int

const (
	opLiteral   operation = iota // val
	opNegate                     // -a
	opAdd                        // a + b
	opSubtract                   // a - b
	opMultiply                   // a × b
	opDivide                     // a / b
	opModulo                     // a mod b
	opPower                      // a ^ b
	opPercent                    // a%
	opOf                         // a of b: a share of b
	opFactorial                  // a!
	opUnit                       // a in unit: attaches it
	opCompound                   // 5 ft 11 in: quantities of one dimension, added
	opCall                       // text(kids...)
	opConvert                    // a to targets
	opShare                      // a as a percentage of b
	opChange                     // from a to b in percent
	opBetween                    // distance from a to b, in unit if given
	opWeekday                    // name of the day a
	opAgo                        // a before today
)

// node is one operation of the expression tree. at is where it begins in the
// question, for errors found only when computing.
type node struct {
	op      operation
	kids    []*node
	val     value
	text    string
	unit    unit
	targets []target
	// keepSign makes opBetween tell past from future ("until") instead of
	// giving a distance.
	keepSign bool
	at       int
}

// target is what a conversion asks for.
type target struct {
	unit     unit
	percent  bool
	fraction bool
	decimal  bool
}

// parser is a recursive descent over the folded tokens. depth counts every
// recursion so that no input can exhaust the stack.
type parser struct {
	tokens []token
	pos    int
	depth  int
	today  time.Time
	// noAnd makes "and" end an operand instead of joining "1 h and 5 min",
	// where the sentence itself uses "and".
	noAnd bool
}

func newParser(tokens []token, today time.Time) *parser {
	return &parser{tokens: tokens, today: today}
}

func (p *parser) peek() token { return p.ahead(0) }

func (p *parser) ahead(n int) token {
	if p.pos+n < len(p.tokens) {
		return p.tokens[p.pos+n]
	}
	return p.tokens[len(p.tokens)-1]
}

func (p *parser) take() token {
	t := p.peek()
	if p.pos < len(p.tokens)-1 {
		p.pos++
	}
	return t
}

func (p *parser) acceptOp(s string) bool {
	if p.peek().isOp(s) {
		p.take()
		return true
	}
	return false
}

// acceptWords takes the words if they stand here in a row.
func (p *parser) acceptWords(words ...string) bool {
	if !wordsAt(p.tokens[p.pos:], words) {
		return false
	}
	p.pos += len(words)
	return true
}

func (p *parser) acceptAny(words ...string) bool {
	for _, w := range words {
		if p.acceptWords(w) {
			return true
		}
	}
	return false
}

// unexpected reports the next token as what was not understood.
func (p *parser) unexpected(wanted, example string) error {
	t := p.peek()
	if t.kind == tokenEnd {
		return fault.New(fault.Invalid, "The question ends at character %d where %s should follow. Try: %s", t.at, wanted, example)
	}
	if t.isOp(",") {
		return fault.New(fault.Invalid, "The comma at character %d was not understood: decimals take a point, and groups of thousands have three digits. Try: %s", t.at, `"1,234.5 + 1"`)
	}
	return fault.New(fault.Invalid, "I did not understand %s at character %d; expected %s. Try: %s", quoted(t.text), t.at, wanted, example)
}

func (p *parser) expect(example string, words ...string) error {
	if p.acceptAny(words...) {
		return nil
	}
	return p.unexpected(quoted(words[0]), example)
}

// enter guards one level of recursion; the caller must call leave after it.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxNesting {
		return fault.New(fault.Invalid, "The question is nested more than %d levels deep at character %d. Split it into steps, for example: %s",
			maxNesting, p.peek().at, `"(1 + 2) * 3"`)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// phrase is an expression with the date forms around it and a conversion
// after it; it stands at the top and inside parentheses.
func (p *parser) phrase() (*node, error) {
	n, err := p.relative()
	if err != nil {
		return nil, err
	}
	return p.conversions(n)
}

func (p *parser) conversions(n *node) (*node, error) {
	for {
		t := p.peek()
		if !p.acceptAny("in", "to", "into", "as") {
			return n, nil
		}
		targets, err := p.targets()
		if err != nil {
			return nil, err
		}
		if err := p.enter(); err != nil { // a chain of conversions nests the tree
			return nil, err
		}
		defer p.leave()
		n = &node{op: opConvert, kids: []*node{n}, targets: targets, at: t.at}
	}
}

// targets reads "miles", "km/h", "feet and inches", "percent", "a fraction".
func (p *parser) targets() ([]target, error) {
	p.acceptAny("a", "an")
	if t := p.peek(); t.kind == tokenNumber && t.text == "1" && t.num.Cmp(big.NewRat(1, 1)) == 0 {
		p.take() // "as a percentage" folded with its article
	}
	switch {
	case p.acceptAny("percent"), p.acceptOp("%"):
		return []target{{percent: true}}, nil
	case p.acceptAny("fraction", "fractions"):
		return []target{{fraction: true}}, nil
	case p.acceptAny("decimals"):
		return []target{{decimal: true}}, nil
	}
	var list []target
	for {
		u, ok := p.unitExpr()
		if !ok {
			return nil, p.unexpected("a unit", exampleUnit)
		}
		list = append(list, target{unit: u})
		joined := p.peek().isWord("and") || p.peek().isOp(",")
		if !joined || !isUnitToken(p.ahead(1)) {
			return list, nil
		}
		p.take()
	}
}

// relative reads "N days from D", "N weeks before D", "N weeks ago".
func (p *parser) relative() (*node, error) {
	n, err := p.additive()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	switch {
	case p.acceptAny("ago"):
		return &node{op: opAgo, kids: []*node{n}, at: t.at}, nil
	case p.acceptAny("from", "after", "before", "hence"):
		if t.isWord("hence") {
			return &node{op: opAdd, kids: []*node{p.dateNode(p.today, t), n}, at: t.at}, nil
		}
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		d, err := p.relative()
		if err != nil {
			return nil, err
		}
		op := opAdd
		if t.isWord("before") {
			op = opSubtract
		}
		return &node{op: op, kids: []*node{d, n}, at: t.at}, nil
	}
	return n, nil
}

func (p *parser) additive() (*node, error) {
	n, err := p.multiplicative()
	if err != nil {
		return nil, err
	}
	for {
		t := p.peek()
		var op operation
		switch {
		case p.acceptOp("+"):
			op = opAdd
		case p.acceptOp("-"):
			op = opSubtract
		default:
			return n, nil
		}
		right, err := p.multiplicative()
		if err != nil {
			return nil, err
		}
		n = &node{op: op, kids: []*node{n, right}, at: t.at}
	}
}

func (p *parser) multiplicative() (*node, error) {
	n, err := p.unary()
	if err != nil {
		return nil, err
	}
	for {
		t := p.peek()
		var op operation
		switch {
		case p.acceptOp("*"):
			op = opMultiply
		case p.acceptOp("/"), p.acceptOp(":"), p.acceptAny("per"):
			op = opDivide
		case p.acceptAny("mod"), p.acceptOp("%"):
			op = opModulo
		case t.isWord("of") && isShare(n):
			p.take()
			op = opOf
		case t.isOp("("), t.isWord("pi"), t.isWord("e"), isFunction(t) && !isUnitToken(t):
			op = opMultiply // 2(3+4), 2 pi, 3 sqrt(2)
		default:
			return n, nil
		}
		right, err := p.unary()
		if err != nil {
			return nil, err
		}
		n = &node{op: op, kids: []*node{n, right}, at: t.at}
	}
}

// isShare tells the operands after which "of" multiplies. After a whole number
// it does not: "20 of 80" asks something else.
func isShare(n *node) bool {
	switch n.op {
	case opDivide, opPercent:
		return true
	case opLiteral:
		return n.val.kind == kindNumber && !n.val.num.IsInt()
	}
	return false
}

func (p *parser) unary() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	t := p.peek()
	switch {
	case p.acceptOp("-"):
		n, err := p.unary()
		if err != nil {
			return nil, err
		}
		return &node{op: opNegate, kids: []*node{n}, at: t.at}, nil
	case p.acceptOp("+"):
		return p.unary()
	}
	return p.power()
}

func (p *parser) power() (*node, error) {
	n, err := p.postfix()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	if !p.acceptOp("^") {
		return n, nil
	}
	right, err := p.unary() // right-associative, and -1 may follow
	if err != nil {
		return nil, err
	}
	return &node{op: opPower, kids: []*node{n, right}, at: t.at}, nil
}

// maxPostfix bounds chains like 3!!!!, whose tree is as deep as they are long.
const maxPostfix = maxNesting

func (p *parser) postfix() (*node, error) {
	n, err := p.primary()
	if err != nil {
		return nil, err
	}
	if n, err = p.withUnit(n); err != nil {
		return nil, err
	}
	for range maxPostfix {
		t := p.peek()
		switch {
		case p.acceptOp("!"):
			n = &node{op: opFactorial, kids: []*node{n}, at: t.at}
		case p.acceptAny("squared"), p.acceptAny("cubed"):
			exponent := int64(2)
			if t.low == "cubed" {
				exponent = 3
			}
			n = &node{op: opPower, kids: []*node{n, p.intNode(exponent, t)}, at: t.at}
		case t.isWord("percent"), t.isOp("%") && !startsOperand(p.ahead(1)):
			p.take()
			n = &node{op: opPercent, kids: []*node{n}, at: t.at}
			p.acceptAny("vat", "tax", "gst", "tip", "interest")
			if p.peek().isWord("of") || p.peek().isWord("off") {
				off := p.take().low == "off"
				right, err := p.unary()
				if err != nil {
					return nil, err
				}
				if off {
					return &node{op: opSubtract, kids: []*node{right, n}, at: t.at}, nil
				}
				return &node{op: opOf, kids: []*node{n, right}, at: t.at}, nil
			}
		default:
			return n, nil
		}
	}
	return nil, p.unexpected("a shorter chain of signs", exampleNumber)
}

// startsOperand decides whether % before t is the remainder (17 % 5) or a
// percentage (17% + 5).
func startsOperand(t token) bool {
	return t.kind == tokenNumber || t.isOp("(") || t.isWord("pi") || t.isWord("e") || isFunction(t)
}

func (p *parser) intNode(n int64, t token) *node {
	return &node{op: opLiteral, val: numberValue(big.NewRat(n, 1)), at: t.at}
}

func (p *parser) dateNode(d time.Time, t token) *node {
	return &node{op: opLiteral, val: value{kind: kindDate, day: d}, at: t.at}
}

func isUnitToken(t token) bool {
	if t.kind != tokenWord {
		return false
	}
	if t.low == "sq" || t.low == "cubic" {
		return true
	}
	_, ok := lookupUnit(t.unitText())
	return ok
}

// unitText is the spelling to look up: as typed where case may matter, the
// folded word where a phrase was replaced.
func (t token) unitText() string {
	if _, ok := lookupUnit(t.text); ok {
		return t.text
	}
	return t.low
}

// unitHere is isUnitToken at the cursor, with "in" read as inch only where a
// conversion cannot begin: "5 in", "5 in to cm", "5 in in cm".
func (p *parser) unitHere() bool {
	t := p.peek()
	if !t.isWord("in") {
		return isUnitToken(t)
	}
	next := p.ahead(1)
	switch {
	case next.isWord("in"), next.isWord("to"), next.isWord("into"), next.isWord("as"):
		return true
	case next.isWord("percent"), next.isWord("fraction"), next.isWord("decimals"), next.isWord("a"), next.isWord("an"):
		return false
	case next.isOp("%"), next.isOp("("):
		return false
	}
	return !isUnitToken(next) && !(next.kind == tokenNumber && isUnitToken(p.ahead(2)) && next.text == "1")
}

// unitExpr reads km, m², m^2, m2, sq ft, km/h, kg per m^3.
func (p *parser) unitExpr() (unit, bool) {
	u, ok := p.unitFactor()
	if !ok {
		return nil, false
	}
	// The bound keeps the exponents of a typed chain far inside dimension's.
	for range 8 {
		slash := p.peek().isOp("/") || p.peek().isWord("per")
		next := p.ahead(1)
		if !slash || !isUnitToken(next) || isFunction(next) && p.ahead(2).isOp("(") {
			break
		}
		p.take()
		v, ok := p.unitFactor()
		if !ok {
			break
		}
		// Written as typed: nothing is converted, so no factor arises for
		// distinct dimensions; equal ones (km/m) stay side by side.
		for _, q := range v {
			u = append(append(unit(nil), u...), part{q.def, -q.pow})
		}
	}
	return u, true
}

func (p *parser) unitFactor() (unit, bool) {
	pow := 1
	switch {
	case p.peek().isWord("sq") && isUnitToken(p.ahead(1)):
		p.take()
		pow = 2
	case p.peek().isWord("cubic") && isUnitToken(p.ahead(1)):
		p.take()
		pow = 3
	}
	t := p.peek()
	if t.kind != tokenWord {
		return nil, false
	}
	u, ok := lookupUnit(t.unitText())
	if !ok {
		return nil, false
	}
	p.take()
	next := p.peek()
	small := func(t token) bool {
		return t.kind == tokenNumber && (t.text == "2" || t.text == "3" || t.text == "²" || t.text == "³")
	}
	switch {
	case next.isOp("^") && small(p.ahead(1)):
		p.take()
		pow *= int(p.take().num.Num().Int64())
	case next.glued && small(next) && !isUnitToken(p.ahead(1)):
		pow *= int(p.take().num.Num().Int64())
	case p.acceptAny("squared"):
		pow *= 2
	case p.acceptAny("cubed"):
		pow *= 3
	}
	raised := append(unit(nil), u...)
	for i := range raised {
		raised[i].pow *= pow
	}
	return raised, true
}

// withUnit attaches the unit that follows n and, after it, further quantities
// of the same dimension: 3 h 25 min.
func (p *parser) withUnit(n *node) (*node, error) {
	if n.op == opUnit || !n.plain() || !p.unitHere() || isFunction(p.peek()) && p.ahead(1).isOp("(") {
		return n, nil
	}
	at := p.peek().at
	u, ok := p.unitExpr()
	if !ok {
		return n, nil
	}
	first := &node{op: opUnit, kids: []*node{n}, unit: u, at: at}
	if n.op != opLiteral {
		return first, nil
	}
	kids := []*node{first}
	for {
		mark := p.pos
		if !p.noAnd {
			p.acceptAny("and")
		}
		t := p.peek()
		if t.kind != tokenNumber {
			p.pos = mark
			break
		}
		p.take()
		if !p.unitHere() {
			p.pos = mark
			break
		}
		at := p.peek().at
		v, ok := p.unitExpr()
		if !ok || v.dim() != u.dim() || u.offset() != nil || v.offset() != nil {
			p.pos = mark
			break
		}
		number := &node{op: opLiteral, val: numberValue(t.num), text: t.text, at: t.at}
		kids = append(kids, &node{op: opUnit, kids: []*node{number}, unit: v, at: at})
	}
	if len(kids) == 1 {
		return first, nil
	}
	return &node{op: opCompound, kids: kids, at: first.at}, nil
}

// plain reports nodes that may take a unit: a number, a group or a call.
func (n *node) plain() bool {
	return n.op != opLiteral || n.val.kind == kindNumber
}

func (p *parser) primary() (*node, error) {
	t := p.peek()
	switch t.kind {
	case tokenNumber:
		if n, ok, err := p.namedDate(); ok || err != nil {
			return n, err
		}
		p.take()
		if r, ok := p.fractionOfUnit(t); ok {
			return &node{op: opLiteral, val: numberValue(r), at: t.at}, nil
		}
		return p.mixed(t), nil
	case tokenDate:
		p.take()
		return p.dateNode(t.day, t), nil
	case tokenClock:
		p.take()
		return &node{op: opLiteral, val: value{kind: kindClock, num: t.num}, at: t.at}, nil
	case tokenOp:
		if !p.acceptOp("(") {
			break
		}
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		noAnd := p.noAnd
		p.noAnd = false
		n, err := p.phrase()
		p.noAnd = noAnd
		if err != nil {
			return nil, err
		}
		if !p.acceptOp(")") {
			return nil, p.unexpected("a closing parenthesis", `"(1 + 2) * 3"`)
		}
		return n, nil
	case tokenWord:
		return p.name()
	}
	return nil, p.unexpected("a number", exampleNumber)
}

// fractionOfUnit reads the 1/2 of "1/2 hour" as one number. Left to the
// operators it would be 1 divided by 2 hours, which nobody means who writes
// no space around the slash.
func (p *parser) fractionOfUnit(t token) (*big.Rat, bool) {
	slash, below := p.peek(), p.ahead(1)
	if !slash.isOp("/") || !slash.glued || below.kind != tokenNumber || !below.glued || below.num.Sign() == 0 {
		return nil, false
	}
	mark := p.pos
	p.pos += 2
	if !p.unitHere() || isFunction(p.peek()) && p.ahead(1).isOp("(") {
		p.pos = mark
		return nil, false
	}
	return new(big.Rat).Quo(t.num, below.num), true
}

// mixed joins "3 1/2" and "1½" to one number.
func (p *parser) mixed(t token) *node {
	r := t.num
	next := p.peek()
	switch {
	case !r.IsInt() || next.kind != tokenNumber || t.fraction:
	case next.fraction && next.num.Cmp(big.NewRat(1, 1)) < 0:
		p.take()
		r = new(big.Rat).Add(r, next.num)
	case next.num.IsInt() && p.ahead(1).isOp("/") && p.ahead(2).kind == tokenNumber && p.ahead(2).num.IsInt() && p.ahead(2).num.Sign() != 0:
		frac := new(big.Rat).Quo(next.num, p.ahead(2).num)
		if frac.Cmp(big.NewRat(1, 1)) < 0 {
			p.take()
			p.take()
			p.take()
			r = new(big.Rat).Add(r, frac)
		}
	}
	return &node{op: opLiteral, val: numberValue(r), text: t.text, at: t.at}
}

// name reads a word that is an operand: a constant, a function, a day, or a
// unit standing alone for one of it.
func (p *parser) name() (*node, error) {
	t := p.peek()
	if isFunction(t) && !(isUnitToken(t) && !p.ahead(1).isOp("(") && !p.ahead(1).isWord("of")) {
		return p.call()
	}
	if n, ok, err := p.namedDate(); ok || err != nil {
		return n, err
	}
	switch t.low {
	case "pi", "e":
		p.take()
		v := numberValue(piRat)
		if t.low == "e" {
			v = numberValue(eRat)
		}
		v.digits = bigDigits
		return &node{op: opLiteral, val: v, text: t.low, at: t.at}, nil
	case "today":
		p.take()
		return p.dateNode(p.today, t), nil
	case "tomorrow", "yesterday":
		p.take()
		days := 1
		if t.low == "yesterday" {
			days = -1
		}
		return p.dateNode(p.today.AddDate(0, 0, days), t), nil
	}
	if isUnitToken(t) && !t.isWord("in") {
		u, ok := p.unitExpr()
		if ok {
			one := p.intNode(1, t)
			if isCurrency(t) && p.peek().kind == tokenNumber {
				one = p.mixed(p.take()) // $ 80
			}
			return &node{op: opUnit, kids: []*node{one}, unit: u, at: t.at}, nil
		}
	}
	return nil, p.unexpected("a number, a unit, a date or a function", exampleNumber)
}

func isCurrency(t token) bool {
	switch t.low {
	case "$", "€", "£", "¥":
		return true
	}
	return false
}

// call reads max(1, 2), sqrt of 16, sum of 1, 2 and 3, round 2.567 to 2.
func (p *parser) call() (*node, error) {
	t := p.take()
	f := functions[t.low]
	n := &node{op: opCall, text: t.low, at: t.at}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	noAnd := p.noAnd
	defer func() { p.noAnd = noAnd }()
	ofList := p.acceptAny("of")
	if !ofList && p.acceptOp("(") {
		p.noAnd = f.maxArgs > 1
		for {
			arg, err := p.phrase()
			if err != nil {
				return nil, err
			}
			n.kids = append(n.kids, arg)
			if p.acceptOp(",") || p.acceptOp(";") || f.maxArgs > 1 && p.acceptAny("and") {
				continue
			}
			if !p.acceptOp(")") {
				return nil, p.unexpected("a comma or a closing parenthesis", `"max(1, 2)"`)
			}
			return n, f.checkArgs(n)
		}
	}
	if f.maxArgs > 2 || t.low == "gcd" || t.low == "lcm" {
		p.noAnd = true
		for {
			arg, err := p.multiplicative()
			if err != nil {
				return nil, err
			}
			n.kids = append(n.kids, arg)
			comma := p.acceptOp(",") || p.acceptOp(";")
			if !p.acceptAny("and") && !comma {
				break
			}
		}
		return n, f.checkArgs(n)
	}
	arg, err := p.unary()
	if err != nil {
		return nil, err
	}
	n.kids = []*node{arg}
	if t.low == "round" && p.peek().isWord("to") && p.ahead(1).kind == tokenNumber {
		p.take()
		places := p.take()
		n.kids = append(n.kids, &node{op: opLiteral, val: numberValue(places.num), text: places.text, at: places.at})
		p.acceptAny("decimals")
	}
	return n, f.checkArgs(n)
}
