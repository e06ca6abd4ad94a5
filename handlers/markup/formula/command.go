package formula

import "strings"

// parseCommand reads the arguments of a command. The parser stands behind the name.
func (p *parser) parseCommand(name string) element {
	switch name {
	case `\sqrt`:
		return p.parseRoot()
	case `\left`:
		return p.parseFenced()
	case `\middle`:
		return element{markup: growingFence(p.readFence(), "infix")}
	case `\begin`:
		return p.parseEnvironment()
	case `\not`:
		return p.parseNegation()
	case `\substack`:
		return p.parseStack()
	case `\frac`, `\dfrac`, `\tfrac`, `\cfrac`, `\binom`, `\dbinom`, `\tbinom`:
		return p.parseFraction(name)
	case `\overset`, `\stackrel`, `\underset`:
		return p.parseStacked(name)
	case `\operatorname`:
		return p.parseFunction()
	case `\mathop`:
		return element{markup: p.parseArgument(), limits: true}
	case `\mathrel`, `\mathbin`, `\mathord`, `\mathopen`, `\mathclose`, `\mathinner`, `\mathpunct`:
		return element{markup: p.parseArgument()}
	case `\phantom`:
		return element{markup: "<mphantom>" + p.parseArgument() + "</mphantom>"}
	case `\boxed`:
		return element{markup: `<mrow class="math-boxed">` + p.parseArgument() + "</mrow>"}
	case `\pmod`:
		return p.parseModulus()
	case `\tag`:
		return element{markup: `<mspace width="2em"></mspace><mtext>(` + p.readText() + ")</mtext>"}
	case `\text`, `\textrm`, `\textnormal`, `\textit`, `\textbf`, `\textsf`, `\texttt`, `\mbox`:
		return p.parseText(name)
	case `\textcolor`: // colours are those of the page, whose contrast is known
		p.readText()
		return element{markup: p.parseArgument()}
	case `\label`, `\color`, `\hspace`, `\vspace`:
		p.readText()
		return element{}
	}
	return p.parseListed(name)
}

// parseListed reads the arguments of a command that stands in one of the tables.
func (p *parser) parseListed(name string) element {
	if a, ok := accents[name]; ok {
		return p.parseAccent(a)
	}
	if sign := arrows[name]; sign != "" {
		return p.parseArrow(sign)
	}
	if typeface, ok := typefaces[name]; ok {
		return p.parseTypeface(typeface)
	}
	if size := sizes[name]; size != "" {
		return element{markup: `<mo stretchy="true" minsize="` + size + `" maxsize="` + size + `">` + p.readFence() + "</mo>"}
	}
	if typeface, ok := switches[name]; ok {
		p.variant = typeface
		return element{}
	}
	if s := functions[name]; s != "" {
		return element{markup: p.functionName(strings.TrimPrefix(s, "*")), limits: strings.HasPrefix(s, "*")}
	}
	if ignored[name] {
		return element{}
	}
	return p.showSymbol(name)
}

// showSymbol returns the element of a command without arguments.
func (p *parser) showSymbol(name string) element {
	var markup string
	switch {
	case letters[name] != "":
		markup = p.showLetter(letters[name])
	case signs[name] != "":
		markup = `<mi mathvariant="normal">` + p.styleText(signs[name]) + "</mi>"
	case operators[name] != "":
		markup = "<mo>" + operators[name] + "</mo>"
	case fences[name] != "":
		markup = `<mo stretchy="false">` + fences[name] + "</mo>"
	case integrals[name] != "":
		markup = `<mo largeop="true">` + integrals[name] + "</mo>"
	case spaces[name] != "":
		markup = `<mspace width="` + spaces[name] + `"></mspace>`
	case largeOperators[name] != "":
		return element{markup: `<mo largeop="true" movablelimits="true">` + largeOperators[name] + "</mo>", limits: true}
	default:
		markup = p.fail()
	}
	return element{markup: markup}
}

// functionName returns the operator of a function such as sin, with a space before an argument without parentheses.
func (p *parser) functionName(name string) string {
	space := "0.167em"
	if next := p.peekToken(); next == "(" || next == `\left` || next == "^" || next == "_" || rowEnds[next] {
		space = "0"
	}
	return `<mo lspace="0.167em" rspace="` + space + `" movablelimits="true">` + name + "</mo>"
}

// parseFunction reads the name of a function, which has its limits below it if a star stands before.
func (p *parser) parseFunction() element {
	limits := strings.HasPrefix(p.rest, "*")
	p.rest = strings.TrimPrefix(p.rest, "*")
	words := p.readText()
	return element{markup: p.functionName(words), limits: limits}
}

func (p *parser) parseFraction(name string) element {
	above, below := p.parseArgument(), p.parseArgument()
	attributes := ""
	switch name[1] {
	case 'd', 'c':
		attributes = ` displaystyle="true"`
	case 't':
		attributes = ` displaystyle="false"`
	}
	if strings.HasSuffix(name, "binom") {
		return element{markup: binomial(above, below, attributes)}
	}
	return element{markup: "<mfrac" + attributes + ">" + above + below + "</mfrac>"}
}

func binomial(above, below, attributes string) string {
	return `<mrow><mo fence="true">(</mo><mfrac linethickness="0"` + attributes + ">" + above + below +
		`</mfrac><mo fence="true">)</mo></mrow>`
}

func (p *parser) parseRoot() element {
	degree, ok := p.readBracket()
	inner := p.parseArgument()
	if ok {
		return element{markup: "<mroot>" + inner + degree + "</mroot>"}
	}
	return element{markup: "<msqrt>" + inner + "</msqrt>"}
}

func (p *parser) parseText(name string) element {
	words := p.readText()
	switch name {
	case `\textbf`:
		words = styleLetters(words, "bold")
	case `\textit`:
		words = styleLetters(words, "italic")
	}
	return element{markup: "<mtext>" + words + "</mtext>"}
}

func (p *parser) parseAccent(a accent) element {
	inner := p.parseArgument()
	if a.below {
		return element{markup: `<munder accentunder="true">` + inner + "<mo>" + a.sign + "</mo></munder>", limits: a.limits}
	}
	return element{markup: `<mover accent="true">` + inner + `<mo stretchy="` + a.stretchy + `">` + a.sign +
		"</mo></mover>", limits: a.limits}
}

func (p *parser) parseArrow(sign string) element {
	below, ok := p.readBracket()
	above, arrow := p.parseArgument(), `<mo stretchy="true">`+sign+"</mo>"
	if ok {
		return element{markup: "<munderover>" + arrow + below + above + "</munderover>"}
	}
	return element{markup: "<mover>" + arrow + above + "</mover>"}
}

func (p *parser) parseStacked(name string) element {
	script, base := p.parseArgument(), p.parseArgument()
	if name == `\underset` {
		return element{markup: "<munder>" + base + script + "</munder>"}
	}
	return element{markup: "<mover>" + base + script + "</mover>"}
}

func (p *parser) parseTypeface(typeface string) element {
	before := p.variant
	defer func() { p.variant = before }()
	p.variant = typeface
	return element{markup: p.parseArgument()}
}

// readFence reads the sign of a delimiter. The sign of "." is empty.
func (p *parser) readFence() string {
	p.skipSpace()
	token := p.nextToken()
	if token == "." {
		return ""
	}
	sign := fences[token]
	if sign == "" {
		return p.fail()
	}
	return sign
}

// parseFenced reads \left ... \right, whose delimiters grow with the elements between them.
func (p *parser) parseFenced() element {
	left := p.readFence()
	row, _ := p.parseRow(`\right`)
	right := p.readFence()
	return element{markup: "<mrow>" + growingFence(left, "prefix") + row + growingFence(right, "postfix") + "</mrow>"}
}

func growingFence(sign, form string) string {
	if sign == "" {
		return ""
	}
	return `<mo fence="true" stretchy="true" form="` + form + `">` + sign + "</mo>"
}

// parseNegation reads a relation and strikes it through.
func (p *parser) parseNegation() element {
	p.enterLevel()
	defer func() { p.depth-- }()
	if rowEnds[p.peekToken()] {
		return element{markup: p.fail()}
	}
	e := p.parseElement()
	sign, ok := strings.CutSuffix(e.markup, "</mo>")
	if !ok {
		return element{markup: p.fail()}
	}
	return element{markup: sign + "\u0338</mo>"}
}

func (p *parser) parseModulus() element {
	return element{markup: `<mspace width="1em"></mspace><mrow><mo stretchy="false">(</mo><mo>mod</mo>` +
		p.parseArgument() + `<mo stretchy="false">)</mo></mrow>`}
}
