package markup

import (
	"bytes"
	"regexp"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Formulas are shown as source text with their delimiters, because their stars, underscores and
// backslashes are no Markdown. Inside a line they have the form $…$, $$…$$, \(…\) or \[…\]; $$…$$ and
// \[…\] may also fill a block of lines.

// mathClass is the class of elements that contain a formula, which the style sheet renders like code.
const mathClass = "math"

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
	node := ast.NewCodeSpan()
	node.SetAttributeString("class", []byte(mathClass))
	from := len(opening)
	for line != nil {
		if end := closingIndex(line, from, closing); end >= 0 {
			node.AppendChild(node, ast.NewRawTextSegment(segment.WithStop(segment.Start+end)))
			block.Advance(end)
			return node
		}
		node.AppendChild(node, ast.NewRawTextSegment(segment))
		block.AdvanceLine()
		line, segment = block.PeekLine()
		from = 0
	}
	block.SetPosition(start, position)
	if none == nil {
		none = make(map[string]bool)
		pc.Set(unclosed, none)
	}
	none[closing] = true
	return nil
}

// closingIndex returns the index after the closing delimiter of a formula in line, -1 without one. A
// single $ closes only after a byte that is no space and before no digit or letter, so that amounts do
// not close formulas.
func closingIndex(line []byte, from int, closing string) int {
	for i := from; i < len(line); i++ {
		switch {
		case bytes.HasPrefix(line[i:], []byte(closing)) &&
			(closing != "$" || i > 0 && !isSpace(line[i-1]) && line[i-1] != '$' &&
				(i+1 == len(line) || line[i+1] != '$' && !wordByte(line[i+1]))):
			return i + len(closing)
		case line[i] == '\\':
			i++ // skips the escaped byte
		}
	}
	return -1
}

var kindMath = ast.NewNodeKind("Math")

type mathBlock struct {
	ast.BaseBlock
	closing []byte
	closed  bool
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

// mathBox renders a block formula as escaped text.
func mathBox(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		w.WriteString(`<pre class="` + mathClass + `"><code>`)
		writeLines(w, source, node.Lines())
		w.WriteString("</code></pre>\n")
	}
	return ast.WalkContinue, nil
}
