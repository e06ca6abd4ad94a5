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
