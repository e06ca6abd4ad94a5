package formula

import "strings"

// environment is the form of a table of formulas.
type environment struct {
	left, right string // delimiters around it
	columns     string // alignment of the columns, which repeats: l, c or r
	display     bool   // its cells have the form of displayed formulas
}

var environments = map[string]environment{
	"matrix": {}, "smallmatrix": {}, "pmatrix": {left: "(", right: ")"}, "bmatrix": {left: "[", right: "]"},
	"Bmatrix": {left: "{", right: "}"}, "vmatrix": {left: "|", right: "|"}, "Vmatrix": {left: "‖", right: "‖"},
	"cases": {left: "{", columns: "l"}, "dcases": {left: "{", columns: "l", display: true},
	"rcases": {right: "}", columns: "l"}, "array": {columns: "c"}, "subarray": {columns: "c"},
	"align": {columns: "rl", display: true}, "align*": {columns: "rl", display: true},
	"aligned": {columns: "rl", display: true}, "alignedat": {columns: "rl", display: true},
	"split": {columns: "rl", display: true}, "eqnarray": {columns: "rcl", display: true},
	"eqnarray*": {columns: "rcl", display: true}, "gather": {display: true}, "gather*": {display: true},
	"gathered": {display: true}, "multline": {display: true}, "multline*": {display: true},
	"equation": {display: true}, "equation*": {display: true},
}

func (p *parser) parseEnvironment() element {
	name := p.readText()
	env, ok := environments[name]
	if !ok {
		return element{markup: p.fail()}
	}
	if name == "array" || name == "subarray" {
		env.columns = readColumns(p.readText())
	} else if name == "alignedat" {
		p.readText()
	}
	rows := p.parseRows(env, `\end`)
	if p.readText() != name {
		return element{markup: p.fail()}
	}
	return element{markup: "<mrow>" + growingFence(env.left, "prefix") + rows + growingFence(env.right, "postfix") + "</mrow>"}
}

// readColumns returns the letters of the columns of an array, without its lines.
func readColumns(spec string) string {
	columns := strings.Map(func(c rune) rune {
		if c == 'l' || c == 'c' || c == 'r' {
			return c
		}
		return -1
	}, spec)
	if columns == "" {
		return "c"
	}
	return columns
}

// parseRows reads rows of cells up to the token end.
func (p *parser) parseRows(env environment, end string) string {
	var b strings.Builder
	b.WriteString("<mtable")
	if env.display {
		b.WriteString(` displaystyle="true"`)
	}
	b.WriteString(">")
	for !p.failed {
		row, last := p.parseCells(env, end)
		if row != "" {
			b.WriteString("<mtr>" + row + "</mtr>")
		}
		if last == end {
			break
		}
		p.skipRowSpace()
	}
	return b.String() + "</mtable>"
}

// parseCells reads one row and returns the token that ended it. The row behind the last \\ is empty.
func (p *parser) parseCells(env environment, end string) (row, last string) {
	var b strings.Builder
	for n := 0; !p.failed; n++ {
		cell, last := p.parseRow("&", `\\`, end)
		if n == 0 && last == end && cell == "" {
			return "", last
		}
		b.WriteString("<mtd" + alignCell(env.columns, n) + ">" + cell + "</mtd>")
		if last != "&" {
			return b.String(), last
		}
	}
	return "", end
}

func alignCell(columns string, n int) string {
	if columns == "" {
		return ""
	}
	switch columns[n%len(columns)] {
	case 'l':
		return ` class="math-left"`
	case 'r':
		return ` class="math-right"`
	}
	return ""
}

// skipRowSpace leaves out the distance between rows, as in \\[1ex].
func (p *parser) skipRowSpace() {
	if !strings.HasPrefix(p.rest, "[") {
		return
	}
	if i := strings.IndexByte(p.rest, ']'); i >= 0 && i < 10 {
		p.rest = p.rest[i+1:]
	}
}

func (p *parser) parseStack() element {
	if p.peekToken() != "{" {
		return element{markup: p.fail()}
	}
	p.nextToken()
	return element{markup: p.parseRows(environment{}, "}")}
}
