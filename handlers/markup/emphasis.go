package markup

import (
	"unicode"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// emphasis parses * and _, and ~~ for text that is struck through. It differs from CommonMark where that rule
// loses signs or leaves markup visible in texts that people and models write:
//   - Delimiters may stand between a letter of any script but Latin and punctuation, as in "**「重点」**内容",
//     because many scripts put no space there.
//   - A star between two letters or digits begins no emphasis if one of them is a digit, as in 2*3*4.
//   - A single tilde is a sign, as in 3~5.
type emphasis struct{}

func (emphasis) Trigger() []byte { return []byte{'*', '_', '~'} }

func (emphasis) IsDelimiter(b byte) bool { return b == '*' || b == '_' || b == '~' }

func (emphasis) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

// OnMatch is for * and _; strike has its own.
func (emphasis) OnMatch(consumes int) ast.Node { return ast.NewEmphasis(consumes) }

type strike struct{ emphasis }

func (strike) OnMatch(int) ast.Node { return extast.NewStrikethrough() }

func (e emphasis) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	var processor parser.DelimiterProcessor = e
	if line[0] == '~' {
		processor = strike{}
	}
	d := parser.ScanDelimiter(line, before, 1, processor)
	if d == nil || d.Char == '~' && (d.OriginalLength != 2 || before == '~') {
		return nil
	}
	after := ' '
	if d.OriginalLength < len(line) {
		after = util.ToRune(line, d.OriginalLength)
	}
	if d.Char != '_' {
		d.CanOpen = isFlanking(after, before) && !isProduct(before, after)
		d.CanClose = isFlanking(before, after)
	}
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}

// isFlanking reports whether a delimiter between the runes inner and outer may enclose text on the side of
// inner.
func isFlanking(inner, outer rune) bool {
	switch {
	case util.IsSpaceRune(inner):
		return false
	case isWide(inner) || !util.IsPunctRune(inner):
		return true
	}
	return util.IsSpaceRune(outer) || util.IsPunctRune(outer) || isWide(outer)
}

// isWide reports whether r is a letter, mark or digit beyond ASCII, or punctuation of East Asian scripts.
func isWide(r rune) bool {
	return r >= 0x80 && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) ||
		r >= 0x3000 && r <= 0x303F || r >= 0xFE30 && r <= 0xFE4F || r >= 0xFF00 && r <= 0xFFEF)
}

// isProduct reports whether a star between the runes is a sign of arithmetic.
func isProduct(before, after rune) bool {
	return before < 0x80 && after < 0x80 && wordByte(byte(before)) && wordByte(byte(after)) &&
		(unicode.IsDigit(before) || unicode.IsDigit(after))
}
