package markup

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"agentsite/handlers/markup/formula"
)

// Formulas are shown as MathML, see package formula. Inside a line they have the form $…$, $$…$$, \(…\) or \[…\];
// $$…$$ and \[…\] may also fill a block of lines. A formula that package formula refuses is shown as its source with
// its delimiters, like code, because its stars, underscores and backslashes are no Markdown.

const (
	// mathClass is the class of elements that contain a formula.
	mathClass = "math"
	// maxFormulas bounds the formulas of one message that are converted, so that the elements of a page are bounded.
	// Further ones are shown as their source.
	maxFormulas = 200
	// longFormula is the length in bytes of a formula inside a line from which on it may be wider than a phone, and
	// scrolls inside itself.
	longFormula = 30
)

// kindMathSpan is the kind of formulas inside a line.
var kindMathSpan = ast.NewNodeKind("MathSpan")

// mathNode is a formula inside a line. Its children are the pieces of its source.
type mathNode struct {
	ast.BaseInline
	opening, closing string
	mathML           string // empty: the source is shown
}

func (*mathNode) Kind() ast.NodeKind { return kindMathSpan }
func (n *mathNode) Dump(source []byte, level int) {
	ast.DumpHelper(n, source, level, nil, nil)
}

type mathSpan struct{}

// unclosed is the context key of the closing delimiters that the current block has no more of. Without
// it, looking for a missing delimiter again and again would take quadratic time.
var unclosed = parser.NewContextKey()

func (mathSpan) Trigger() []byte { return []byte{'$', '\\'} }

func (mathSpan) CloseBlock(_ ast.Node, _ text.Reader, pc parser.Context) { pc.Set(unclosed, nil) }

// mathDelimiters returns the delimiters of a formula that begins at the beginning of line, "" if none
// does.
func mathDelimiters(line []byte) (opening, closing string) {
	switch {
	case bytes.HasPrefix(line, []byte("$$")):
		return "$$", "$$"
	case bytes.HasPrefix(line, []byte(`\(`)):
		return `\(`, `\)`
	case bytes.HasPrefix(line, []byte(`\[`)):
		return `\[`, `\]`
	case len(line) > 1 && line[0] == '$' && !isSpace(line[1]):
		return "$", "$"
	}
	return "", ""
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

func (mathSpan) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	opening, closing := mathDelimiters(line)
	// A dollar after a letter or digit begins no formula, as in US$5.
	if before := block.PrecendingCharacter(); opening == "" || closing == "$" &&
		(before == '$' || before < 0x80 && wordByte(byte(before))) {
		return nil
	}
	none, _ := pc.Get(unclosed).(map[string]bool)
	if none[closing] {
		return nil
	}
	start, position := block.Position()
	node := &mathNode{opening: opening, closing: closing}
	from := len(opening)
	for line != nil {
		end := closingIndex(line, from, closing)
		if end >= 0 {
			node.AppendChild(node, ast.NewRawTextSegment(segment.WithStop(segment.Start+end)))
			block.Advance(end)
			if closing == "$" && isProse(spanSource(node, block.Source())) {
				break
			}
			return node
		}
		if end == noFormula {
			break
		}
		node.AppendChild(node, ast.NewRawTextSegment(segment))
		block.AdvanceLine()
		line, segment = block.PeekLine()
		from = 0
	}
	block.SetPosition(start, position)
	if line != nil {
		return nil
	}
	if none == nil {
		none = make(map[string]bool)
		pc.Set(unclosed, none)
	}
	none[closing] = true
	return nil
}

// proseWord is a word between spaces, which single letters of a formula are not.
var proseWord = regexp.MustCompile(`\s\pL{2,}[,;:]?\s`)

// isProse reports whether the text between two dollars is part of a sentence, as in "between $5 and 10$". Formulas have
// words only in the arguments of commands.
func isProse(s string) bool { return !strings.Contains(s, `\`) && proseWord.MatchString(s) }

// Results of closingIndex without a closing delimiter: there is none in the line, or a dollar stands where it cannot
// close and no formula may contain it.
const (
	notClosed = -1
	noFormula = -2
)

// closingIndex returns the index after the closing delimiter of a formula in line, notClosed or noFormula without one. A
// single $ closes only after a byte that is no space and before no digit or letter, so that amounts do not close
// formulas; where it does not close, the formula did not begin before it.
func closingIndex(line []byte, from int, closing string) int {
	for i := from; i < len(line); i++ {
		switch {
		case bytes.HasPrefix(line[i:], []byte(closing)) &&
			(closing != "$" || i > 0 && !isSpace(line[i-1]) && line[i-1] != '$' &&
				(i+1 == len(line) || line[i+1] != '$' && !wordByte(line[i+1]))):
			return i + len(closing)
		case closing == "$" && line[i] == '$':
			return noFormula
		case line[i] == '\\':
			i++ // skips the escaped byte
		}
	}
	return notClosed
}

var kindMath = ast.NewNodeKind("Math")

type mathBlock struct {
	ast.BaseBlock
	closing []byte
	closed  bool
	mathML  string // empty: the source is shown
}

func (*mathBlock) Kind() ast.NodeKind { return kindMath }
func (*mathBlock) IsRaw() bool        { return true }
func (b *mathBlock) Dump(source []byte, level int) {
	ast.DumpHelper(b, source, level, nil, nil)
}

type mathLines struct{}

var emptyLine = regexp.MustCompile(`\n[ \t]*\n`)

// maxMathAhead bounds how far, in bytes, the end of a block formula is looked for.
const maxMathAhead = 4 << 10

func (mathLines) Trigger() []byte             { return []byte{'$', '\\'} }
func (mathLines) CanInterruptParagraph() bool { return true }
func (mathLines) CanAcceptIndentedLine() bool { return false }

func (mathLines) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, segment := reader.PeekLine()
	pos := pc.BlockOffset()
	if pos < 0 {
		return nil, parser.NoChildren
	}
	opening, closing := mathDelimiters(line[pos:])
	if len(opening) != 2 || opening == `\(` {
		return nil, parser.NoChildren
	}
	b := &mathBlock{closing: []byte(closing)}
	if end := closingIndex(line, pos+2, closing); end >= 0 {
		if !util.IsBlank(line[end:]) {
			return nil, parser.NoChildren
		}
		b.closed = true
	} else {
		// The formula must end before the next empty line and at the end of a line.
		ahead := reader.Source()[max(0, segment.Stop-1):] // with the end of this line
		ahead = ahead[:min(len(ahead), maxMathAhead)]
		if at := emptyLine.FindIndex(ahead); at != nil {
			ahead = ahead[:at[0]]
		}
		if i := bytes.Index(ahead, b.closing); i < 0 {
			return nil, parser.NoChildren
		}
	}
	b.Lines().Append(behind(segment, pos))
	reader.AdvanceToEOL()
	return b, parser.NoChildren
}

func behind(s text.Segment, pos int) text.Segment {
	return text.NewSegment(s.Start+max(0, pos-s.Padding), s.Stop)
}

func (mathLines) Continue(node ast.Node, reader text.Reader, _ parser.Context) parser.State {
	b := node.(*mathBlock)
	line, segment := reader.PeekLine()
	if b.closed || util.IsBlank(line) {
		return parser.Close
	}
	b.Lines().Append(segment)
	b.closed = closingIndex(line, 0, string(b.closing)) >= 0
	reader.AdvanceToEOL()
	return parser.Continue | parser.NoChildren
}

func (mathLines) Close(ast.Node, text.Reader, parser.Context) {}

// formulaCount is the context key of the number of formulas so far. Rendering block by block passes it from block to
// block.
var formulaCount = parser.NewContextKey()

// formulas is a transformer that converts the formulas of a text.
type formulas struct{}

func (formulas) Transform(doc *ast.Document, reader text.Reader, pc parser.Context) {
	count, _ := pc.Get(formulaCount).(int)
	source := reader.Source()
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || count >= maxFormulas {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *mathNode:
			count++
			n.mathML = convertFormula(spanSource(n, source), n.opening, n.closing)
		case *mathBlock:
			count++
			opening := "$$"
			if string(n.closing) == `\]` {
				opening = `\[`
			}
			n.mathML = convertFormula(string(n.Lines().Value(source)), opening, string(n.closing))
		}
		return ast.WalkContinue, nil
	})
	pc.Set(formulaCount, count)
}

// spanSource returns a formula inside a line with its delimiters.
func spanSource(n *mathNode, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		b.Write(c.(*ast.Text).Segment.Value(source))
	}
	return b.String()
}

// convertFormula returns the MathML of a formula with its delimiters, "" if it is shown as source.
func convertFormula(source, opening, closing string) string {
	source = strings.TrimSpace(source)
	inner, ok := strings.CutPrefix(source, opening)
	inner, closed := strings.CutSuffix(inner, closing)
	if !ok || !closed {
		return ""
	}
	mathML, _ := formula.Convert(inner, len(opening) == 2 && opening != `\(`, source)
	return mathML
}

// writeMathSpan renders a formula inside a line.
func writeMathSpan(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	n := node.(*mathNode)
	words := spanSource(n, source)
	switch {
	case n.mathML == "":
		w.WriteString(`<code class="` + mathClass + `">`)
		w.Write(util.EscapeHTML([]byte(strings.ReplaceAll(words, "\n", " "))))
		w.WriteString("</code>")
	case len(n.opening) == 2 && n.opening != `\(`:
		w.WriteString(`<span class="` + mathClass + `-block">` + n.mathML + "</span>")
	case len(words) >= longFormula:
		w.WriteString(`<span class="` + mathClass + `-long">` + n.mathML + "</span>")
	default:
		w.WriteString(n.mathML)
	}
	return ast.WalkSkipChildren, nil
}

// writeMathBlock renders a block formula.
func writeMathBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	if b := node.(*mathBlock); b.mathML != "" {
		w.WriteString(`<p class="` + mathClass + `-block">` + b.mathML + "</p>\n")
		return ast.WalkContinue, nil
	}
	w.WriteString(`<pre class="` + mathClass + `"><code>`)
	writeLines(w, source, node.Lines())
	w.WriteString("</code></pre>\n")
	return ast.WalkContinue, nil
}
