package calc

import "math/big"

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
