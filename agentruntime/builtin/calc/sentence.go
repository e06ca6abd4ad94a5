package calc

import "agentsite/internal/fault"

// question reads the whole question: one of the sentence forms, else an
// expression. Nothing may be left over, since an ignored rest would make the
// answer belong to another question.
func (p *parser) question(howMany bool) (*node, error) {
	if p.peek().kind == tokenEnd {
		return nil, fault.New(fault.Invalid, "There is no question to calculate. Try: %s, %s or %s", exampleNumber, exampleUnit, exampleDate)
	}
	n, err := p.sentence(howMany)
	if err != nil {
		return nil, err
	}
	if n, err = p.conversions(n); err != nil {
		return nil, err
	}
	if p.peek().kind != tokenEnd {
		return nil, p.unexpected("an operator or the end of the question", exampleNumber)
	}
	return n, nil
}

func (p *parser) sentence(howMany bool) (*node, error) {
	t := p.peek()
	switch {
	case t.isWord("what") && (p.ahead(1).isWord("percent") || p.ahead(1).isOp("%")), t.isWord("percent"), t.isOp("%"):
		p.acceptAny("what")
		return p.percentQuestion()
	case p.acceptAny("increase", "decrease", "change", "growth"):
		return p.changeFrom(t)
	case p.acceptAny("raise", "reduce", "lower"):
		return p.changeFrom(t)
	case p.acceptAny("add"):
		return p.verb(opAdd, true, "to", "and")
	case p.acceptAny("subtract", "deduct", "take", "remove"):
		return p.verb(opSubtract, true, "from", "off")
	case p.acceptAny("multiply"):
		return p.verb(opMultiply, false, "by", "with", "and")
	case p.acceptAny("divide"):
		return p.verb(opDivide, false, "by")
	case p.acceptWords("what", "weekday"), p.acceptWords("which", "weekday"), p.acceptWords("what", "day"), p.acceptWords("which", "day"), p.acceptAny("weekday"):
		return p.weekday(t)
	case p.acceptWords("how", "long"), p.acceptAny("difference", "time", "duration"):
		return p.distance(t, nil)
	case t.isWord("in") && !p.ahead(1).isWord("in"):
		p.take()
		n, err := p.additive()
		if err != nil {
			return nil, err
		}
		return &node{op: opAdd, kids: []*node{p.dateNode(p.today, t), n}, at: t.at}, nil
	}
	if n, ok, err := p.unitQuestion(howMany); ok || err != nil {
		return n, err
	}
	n, err := p.relative()
	if err != nil {
		return nil, err
	}
	return p.shareQuestion(n)
}

// percentQuestion reads "(what) percent is 20 of 80", "... of 80 is 20" and
// "percent increase from 80 to 100".
func (p *parser) percentQuestion() (*node, error) {
	t := p.take()
	if v := p.peek(); p.acceptAny("increase", "decrease", "change", "growth", "difference") {
		return p.changeFrom(v)
	}
	const example = `"what percent is 20 of 80"`
	first := "is"
	if p.peek().isWord("of") {
		first = "of"
	}
	if err := p.expect(example, first); err != nil {
		return nil, err
	}
	a, err := p.additive()
	if err != nil {
		return nil, err
	}
	if first == "is" {
		if err := p.expect(example, "of"); err != nil {
			return nil, err
		}
	} else if err := p.expect(example, "is", "are"); err != nil {
		return nil, err
	}
	b, err := p.additive()
	if err != nil {
		return nil, err
	}
	if first == "of" {
		a, b = b, a
	}
	return &node{op: opShare, kids: []*node{a, b}, at: t.at}, nil
}

// shareQuestion reads what may follow an operand: "20 is what percent of 80",
// "20 as a percentage of 80".
func (p *parser) shareQuestion(a *node) (*node, error) {
	t := p.peek()
	switch {
	case p.acceptWords("is", "what", "percent", "of"), p.acceptWords("as", "percent", "of"), p.acceptWords("as", "a", "percent", "of"):
	case p.acceptWords("is", "what") && p.acceptOp("%"):
		if err := p.expect(`"20 is what percent of 80"`, "of"); err != nil {
			return nil, err
		}
	default:
		return a, nil
	}
	b, err := p.additive()
	if err != nil {
		return nil, err
	}
	return &node{op: opShare, kids: []*node{a, b}, at: t.at}, nil
}

// changeFrom reads "increase from 80 to 100" as a question for the change in
// percent, and "increase 80 by 15%" as an order to change.
func (p *parser) changeFrom(verb token) (*node, error) {
	if p.acceptAny("from") {
		a, err := p.additive()
		if err != nil {
			return nil, err
		}
		if err := p.expect(`"increase from 80 to 100"`, "to"); err != nil {
			return nil, err
		}
		b, err := p.additive()
		if err != nil {
			return nil, err
		}
		return &node{op: opChange, kids: []*node{a, b}, at: verb.at}, nil
	}
	if verb.low == "difference" {
		return p.distance(verb, nil)
	}
	a, err := p.additive()
	if err != nil {
		return nil, err
	}
	if err := p.expect(`"increase 80 by 15%"`, "by"); err != nil {
		return nil, err
	}
	b, err := p.additive()
	if err != nil {
		return nil, err
	}
	op := opAdd
	switch verb.low {
	case "decrease", "reduce", "lower":
		op = opSubtract
	}
	return &node{op: op, kids: []*node{a, b}, at: verb.at}, nil
}

// verb reads "add A to B" (swapped: B + A) and "divide A by B".
func (p *parser) verb(op operation, swapped bool, joints ...string) (*node, error) {
	t := p.peek()
	p.noAnd = true
	a, err := p.additive()
	if err != nil {
		return nil, err
	}
	if a.op == opSubtract && op == opSubtract && p.peek().kind == tokenEnd {
		return a, nil // "take 15% off 80": the percentage took its "off" already
	}
	if err := p.expect(`"add 19% VAT to 250"`, joints...); err != nil {
		return nil, err
	}
	b, err := p.additive()
	if err != nil {
		return nil, err
	}
	if swapped {
		a, b = b, a
	}
	return &node{op: op, kids: []*node{a, b}, at: t.at}, nil
}

func (p *parser) weekday(t token) (*node, error) {
	p.acceptAny("weekday")
	p.acceptAny("is", "was", "will", "of", "for")
	p.acceptAny("it")
	p.acceptAny("on")
	d, err := p.relative()
	if err != nil {
		return nil, err
	}
	p.acceptAny("fall")
	p.acceptAny("on")
	return &node{op: opWeekday, kids: []*node{d}, at: t.at}, nil
}

// unitQuestion reads questions that begin with a unit: "days between A and
// B", "weeks until D", and after "how many" also "feet (are) in a mile" and
// "miles is 5 km".
func (p *parser) unitQuestion(howMany bool) (*node, bool, error) {
	start, t := p.pos, p.peek()
	if !isUnitToken(t) || isFunction(t) && p.ahead(1).isOp("(") {
		return nil, false, nil
	}
	u, ok := p.unitExpr()
	if !ok {
		p.pos = start
		return nil, false, nil
	}
	if howMany {
		mark := p.pos
		p.acceptAny("is", "are", "does", "do")
		p.acceptAny("there")
		if next := p.peek(); next.isWord("between") || next.isWord("until") || next.isWord("since") || next.isWord("from") {
			n, err := p.distance(t, u)
			return n, true, err
		}
		if p.acceptAny("in") || p.pos > mark {
			n, err := p.additive()
			if err != nil {
				return nil, true, err
			}
			return &node{op: opConvert, kids: []*node{n}, targets: []target{{unit: u}}, at: t.at}, true, nil
		}
	}
	switch next := p.peek(); {
	case next.isWord("between"), next.isWord("until"), next.isWord("since"), next.isWord("from"):
		n, err := p.distance(t, u)
		return n, true, err
	}
	p.pos = start
	return nil, false, nil
}

// distance reads "between A and B", "from A to B", "until B", "since A".
func (p *parser) distance(t token, u unit) (*node, error) {
	p.acceptAny("is")
	p.acceptAny("it")
	p.noAnd = true
	joint := p.take()
	n := &node{op: opBetween, unit: u, at: t.at}
	switch joint.low {
	case "between", "from":
		a, err := p.additive()
		if err != nil {
			return nil, err
		}
		if err := p.expect(exampleBetween, map[string][]string{"between": {"and"}, "from": {"to", "until"}}[joint.low]...); err != nil {
			return nil, err
		}
		b, err := p.additive()
		if err != nil {
			return nil, err
		}
		n.kids = []*node{a, b}
	case "until", "since":
		d, err := p.additive()
		if err != nil {
			return nil, err
		}
		n.keepSign = true
		n.kids = []*node{p.dateNode(p.today, joint), d}
		if joint.low == "since" {
			n.kids[0], n.kids[1] = n.kids[1], n.kids[0]
		}
	default:
		if joint.kind != tokenEnd {
			p.pos--
		}
		return nil, p.unexpected(`"between", "from", "until" or "since"`, exampleBetween)
	}
	return n, nil
}
