// Package formula converts formulas in the notation of LaTeX to MathML Core, which browsers show without a script. It
// knows the commands of mathematics that people and models write in messages; it has no macros, no files and no
// addresses. A formula with anything else is refused, and the caller shows its source.
//
// The source is hostile. Its length and its nesting are bounded before they cost anything, every text is escaped, and
// the elements and attributes of the result are constants of this package.
package formula

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxBytes bounds one formula. Long derivations of models have a few hundred bytes.
	MaxBytes = 2 << 10
	// maxDepth bounds the nesting of arguments, groups and environments, and so the stack and the depth of elements:
	// at most five elements for each level.
	maxDepth = 40
)

// Convert returns the math element of a formula in LaTeX, which is given without its delimiters. display chooses the
// form of a formula on a line of its own. source is kept as the annotation of the element: programs that copy or read
// a page find it there. Convert returns false for a formula that is longer than MaxBytes, nested too deeply, not
// complete, empty, or has a command that is not known. Its time and its result are linear in the length of the
// formula.
func Convert(formula string, display bool, source string) (string, bool) {
	if len(formula) > MaxBytes || !utf8.ValidString(formula) {
		return "", false
	}
	p := &parser{rest: formula}
	row, _ := p.parseRow("")
	if p.failed || row == "" {
		return "", false
	}
	opening := "<math>"
	if display {
		opening = `<math display="block">`
	}
	return opening + "<semantics>" + wrapRow(row) + `<annotation encoding="application/x-tex">` +
		html.EscapeString(source) + "</annotation></semantics></math>", true
}

// parser reads one formula from the left. After the first mistake failed is true and every token is the end, so that
// all loops stop.
type parser struct {
	rest    string
	failed  bool
	depth   int
	variant string // typeface of letters and digits, see setTypeface
}

// fail refuses the formula.
func (p *parser) fail() string {
	p.failed, p.rest = true, ""
	return ""
}

// enterLevel counts a level of nesting, which the caller ends by p.depth--.
func (p *parser) enterLevel() {
	if p.depth++; p.depth > maxDepth {
		p.fail()
	}
}

// nextToken returns the next command with its backslash, or the next character; "" at the end.
func (p *parser) nextToken() string {
	if p.rest == "" {
		return ""
	}
	_, n := utf8.DecodeRuneInString(p.rest)
	if p.rest[0] == '\\' && len(p.rest) > 1 {
		_, second := utf8.DecodeRuneInString(p.rest[1:])
		n += second
		for isLetter(p.rest[1]) && n < len(p.rest) && isLetter(p.rest[n]) {
			n++
		}
	}
	token := p.rest[:n]
	p.rest = p.rest[n:]
	return token
}

// peekToken returns the next token that is no space and leaves it.
func (p *parser) peekToken() string {
	p.skipSpace()
	before := p.rest
	token := p.nextToken()
	p.rest = before
	return token
}

func (p *parser) skipSpace() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// rowEnds are the tokens that end a row. Each is a mistake in a row that another one ends.
var rowEnds = map[string]bool{"": true, "}": true, "&": true, `\\`: true, `\right`: true, `\end`: true}

// parseRow reads elements up to one of the tokens in ends, which it returns too.
func (p *parser) parseRow(ends ...string) (row, end string) {
	p.enterLevel()
	defer func() { p.depth-- }()
	variant := p.variant
	defer func() { p.variant = variant }()
	var b strings.Builder
	for {
		token := p.peekToken()
		if rowEnds[token] || len(ends) > 0 && token == "]" && ends[0] == "]" {
			p.nextToken()
			for _, e := range ends {
				if token == e && !p.failed {
					return b.String(), token
				}
			}
			return p.fail(), ""
		}
		switch {
		case infixes[token] != nil:
			p.nextToken()
			below, end := p.parseRow(ends...)
			return infixes[token](wrapRow(b.String()), wrapRow(below)), end
		case styles[token] != "":
			p.nextToken()
			rest, end := p.parseRow(ends...)
			return b.String() + "<mstyle " + styles[token] + ">" + rest + "</mstyle>", end
		}
		b.WriteString(p.parseScripted())
	}
}

// wrapRow makes one element of the elements of a row.
func wrapRow(row string) string { return "<mrow>" + row + "</mrow>" }

// element is the result of one token with its arguments.
type element struct {
	markup string
	limits bool // scripts stand above and below in a displayed formula
	fixed  bool // and everywhere
}

// parseScripted reads one element with its primes, subscript and superscript.
func (p *parser) parseScripted() string {
	var base element
	if next := p.peekToken(); next != "^" && next != "_" && next != "'" {
		base = p.parseElement()
	}
	var below, above string
	for {
		switch p.peekToken() {
		case `\limits`:
			p.nextToken()
			base.limits, base.fixed = true, true
			continue
		case `\nolimits`:
			p.nextToken()
			base.limits = false
			continue
		case "'":
			if above != "" {
				return p.fail()
			}
			above = p.readPrimes()
			continue
		case "_":
			p.nextToken()
			if below != "" {
				return p.fail()
			}
			below = p.parseArgument()
			continue
		case "^":
			p.nextToken()
			if strings.HasPrefix(above, "<mo>′") {
				above = wrapRow(above + p.parseArgument())
				continue
			}
			if above != "" {
				return p.fail()
			}
			above = p.parseArgument()
			continue
		}
		return attachScripts(base, below, above)
	}
}

// readPrimes reads the primes at the beginning of the rest.
func (p *parser) readPrimes() string {
	n := 0
	for p.peekToken() == "'" {
		p.nextToken()
		n++
	}
	return "<mo>" + strings.Repeat("′", n) + "</mo>"
}

func attachScripts(base element, below, above string) string {
	if below == "" && above == "" {
		return base.markup
	}
	inner := base.markup
	if inner == "" {
		inner = "<mrow></mrow>"
	}
	names := [3]string{"msub", "msup", "msubsup"}
	if base.limits {
		names = [3]string{"munder", "mover", "munderover"}
		if base.fixed {
			inner = strings.Replace(inner, ` movablelimits="true"`, ` movablelimits="false"`, 1)
		}
	}
	name := names[2]
	switch {
	case above == "":
		name = names[0]
	case below == "":
		name = names[1]
	}
	return "<" + name + ">" + inner + below + above + "</" + name + ">"
}

// parseArgument reads a group in braces or one element, and returns one element.
func (p *parser) parseArgument() string {
	p.enterLevel()
	defer func() { p.depth-- }()
	token := p.peekToken()
	switch {
	case rowEnds[token] || token == "^" || token == "_":
		return p.fail()
	case len(token) == 1 && isDigit(token[0]): // \frac12 has two arguments
		p.nextToken()
		return "<mn>" + p.styleText(token) + "</mn>"
	case token == "{":
		p.nextToken()
		row, _ := p.parseRow("}")
		return wrapRow(row)
	}
	return wrapRow(p.parseElement().markup)
}

// parseElement reads one token that ends no row, with its arguments.
func (p *parser) parseElement() element {
	token := p.peekToken()
	c, _ := utf8.DecodeRuneInString(token)
	switch {
	case token == "{":
		return element{markup: p.parseArgument()}
	case isDigit(token[0]) || token == "." && len(p.rest) > 1 && isDigit(p.rest[1]):
		return element{markup: "<mn>" + p.styleText(p.readNumber()) + "</mn>"}
	case token[0] == '\\':
		p.nextToken()
		return p.parseCommand(token)
	}
	p.nextToken()
	switch {
	case unicode.IsLetter(c):
		return element{markup: p.showLetter(token)}
	case token == "~":
		return element{markup: `<mspace width="0.333em"></mspace>`}
	case characters[token] != "":
		return element{markup: "<mo>" + characters[token] + "</mo>"}
	case fences[token] != "":
		return element{markup: `<mo stretchy="false">` + fences[token] + "</mo>"}
	case unicode.In(c, unicode.Sm, unicode.Po, unicode.Pd):
		return element{markup: "<mo>" + html.EscapeString(token) + "</mo>"}
	case unicode.IsPrint(c):
		return element{markup: "<mtext>" + html.EscapeString(token) + "</mtext>"}
	}
	return element{markup: p.fail()}
}

// readNumber reads digits with at most one point between or before them.
func (p *parser) readNumber() string {
	n, point := 0, false
	for n < len(p.rest) && (isDigit(p.rest[n]) || p.rest[n] == '.' && !point && n+1 < len(p.rest) && isDigit(p.rest[n+1])) {
		point = point || p.rest[n] == '.'
		n++
	}
	number := p.rest[:n]
	p.rest = p.rest[n:]
	return number
}

// showLetter returns a variable in the typeface of the present group.
func (p *parser) showLetter(letter string) string {
	if p.variant == "" {
		return "<mi>" + letter + "</mi>"
	}
	return `<mi mathvariant="normal">` + p.styleText(letter) + "</mi>"
}

// readText reads a group in braces as plain text with its escapes resolved. A space of it is kept.
func (p *parser) readText() string {
	if p.peekToken() != "{" {
		return p.fail()
	}
	var b strings.Builder
	open := 0
	for {
		token := p.nextToken()
		switch {
		case token == "":
			return p.fail()
		case token == "{":
			open++
		case token == "}":
			if open--; open == 0 {
				return html.EscapeString(b.String())
			}
		case token == "~" || token == " " || token == "\n" || token == `\ `:
			b.WriteString("\u00a0")
		case token[0] == '\\' && (len(token) != 2 || isLetter(token[1])):
			return p.fail()
		default:
			b.WriteString(strings.TrimPrefix(token, `\`))
		}
	}
}

// readBracket reads [...] at the beginning of the rest and returns its elements; false without one.
func (p *parser) readBracket() (string, bool) {
	if p.peekToken() != "[" {
		return "", false
	}
	p.nextToken()
	row, _ := p.parseRow("]")
	return wrapRow(row), true
}
