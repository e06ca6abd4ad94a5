package markup

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/parser"

	"agentsite/templates"
)

// Blocks finds the finished blocks of a Markdown text that arrives in pieces. A finished block renders alike alone
// and as a part of the whole text. Where that is in doubt, the block stays open: the result is then less formatted
// until the text ends, and never wrong. The zero value is ready for use.
//
// A line is read once when it is complete, so that the cost of a text is linear in its lines.
type Blocks struct {
	open  []byte // text behind the last finished block
	start int    // byte offset of open in the whole text
	line  int    // offset in open of the first line that has not been read

	fence    string // the characters that opened the present fenced code, "" outside of one
	loose    bool   // the block has a list or indented code, which continue behind an empty line
	doubtful bool   // whether the present line belongs to a list is not known
	offset   int    // the indentation from which on a line belongs to the last item of a list
	formula  bool   // the lines since the last empty one may be in a formula
	blank    bool   // the line before was empty
	sealed   bool   // nothing from here on is known to be finished
	level    int    // of the last heading, see levels
	formulas int    // number of formulas so far, see maxFormulas
}

// Span is finished text: the bytes from From to To of the whole text, and their rendering.
type Span struct {
	From, To int
	HTML     templates.SafeHTML
}

// Len returns the length of the text so far in bytes.
func (b *Blocks) Len() int { return b.start + len(b.open) }

// Open returns the text behind the last finished block.
func (b *Blocks) Open() string { return string(b.open) }

// Continues reports whether b can be the state behind the text before: the lengths and the last bytes are compared.
func (b *Blocks) Continues(before []byte) bool {
	const compared = 64
	return b.Len() == len(before) && bytes.HasSuffix(before, b.open[max(0, len(b.open)-compared):])
}

// Advance adds text to b and renders the blocks that it finishes. Without one, From and To of the result are equal.
func (r *Renderer) Advance(b *Blocks, text string) Span {
	b.open = append(b.open, text...)
	out := Span{From: b.start, To: b.start}
	var html strings.Builder
	for !b.sealed {
		end := b.nextEnd()
		if end < 0 {
			break
		}
		html.WriteString(r.renderBlock(b, string(b.open[:end])))
		b.open = b.open[end:]
		b.start += end
		*b = Blocks{open: b.open, start: b.start, level: b.level, formulas: b.formulas}
	}
	out.To, out.HTML = b.start, templates.SafeHTML(html.String())
	return out
}

// renderBlock renders one finished block and caches it, so that the readers of one answer share the work.
func (r *Renderer) renderBlock(b *Blocks, source string) string {
	if strings.TrimSpace(source) == "" {
		return ""
	}
	key := sha256.Sum256(fmt.Appendf(nil, "block\x00%d\x00%d\x00%s", b.level, b.formulas, source))
	if h, ok := r.texts.Get(key); ok {
		b.level, b.formulas = int(h[0]), int(h[1])
		return h[2:]
	}
	pc := parser.NewContext()
	pc.Set(lastLevel, b.level)
	pc.Set(formulaCount, b.formulas)
	h := r.renderPart(source, pc)
	b.level, _ = pc.Get(lastLevel).(int)
	b.formulas, _ = pc.Get(formulaCount).(int)
	r.texts.Put(key, string([]byte{byte(b.level), byte(b.formulas)})+h)
	return h
}

// renderLong renders a text that exceeds the bounds of one parse block by block. A block that exceeds them alone is
// shown as plain text.
func (r *Renderer) renderLong(source string) (string, bool) {
	var b Blocks
	s := r.Advance(&b, source)
	if s.To == 0 {
		return "", false
	}
	out := string(s.HTML) + r.renderBlock(&b, string(b.open))
	return out, len(out) <= maxOutput
}

var (
	listMarker = regexp.MustCompile(`^ {0,3}([-+*]|[0-9]{1,9}[.)])( +|\t|$)`)
	fenceMark  = regexp.MustCompile("^ *(`{3,}[^`]*|~{3,}.*)$")
)

// nextEnd reads lines and returns the end of the block that begins at open, -1 while it is unknown.
func (b *Blocks) nextEnd() int {
	for {
		n := bytes.IndexByte(b.open[b.line:], '\n')
		if n < 0 {
			if b.blank && b.loose && b.fence == "" && beginsBlock(string(b.open[b.line:min(b.line+2, len(b.open))])) {
				return b.line
			}
			return -1
		}
		from, next := b.line, b.line+n+1
		line := strings.TrimSuffix(string(b.open[from:next-1]), "\r")
		if b.blank && b.loose && b.fence == "" && (beginsBlock(line) || line != "" && indent(line) == 0 &&
			strings.TrimSpace(line) != "" && !listMarker.MatchString(line)) {
			return from
		}
		if Clean(line) != line || b.fence == "" && strings.Contains(line, "]:") {
			b.sealed = true // a line may be split, or an address defined for other blocks
			return -1
		}
		b.line = next
		if b.readLine(line) {
			return next
		}
		if b.sealed {
			return -1
		}
	}
}

// readLine reads one line and reports whether the block ends with it.
func (b *Blocks) readLine(line string) bool {
	words := strings.TrimSpace(line)
	if b.fence != "" {
		closes := words != "" && indent(line) <= 3 && strings.Trim(words, b.fence[:1]) == "" && len(words) >= len(b.fence)
		if closes {
			b.fence = ""
		}
		return closes
	}
	if words == "" {
		b.blank, b.formula = true, false
		return line == "" && !b.loose
	}
	b.blank = false
	if marker := listMarker.FindString(line); marker != "" {
		b.readMarker(line, marker, words)
	} else if b.loose {
		b.doubtful = b.doubtful || indent(line) < b.offset // the line may end the list
	} else if indent(line) >= 4 {
		b.loose, b.doubtful = true, true
	}
	if fenceMark.MatchString(line) {
		b.openFence(line, words)
	}
	b.formula = b.formula || strings.HasPrefix(words, "$$") || strings.HasPrefix(words, `\[`)
	return false
}

// readMarker notes the beginning of an item of a list.
func (b *Blocks) readMarker(line, marker, words string) {
	first := b.line == len(line)+1 // of the block
	b.doubtful = b.doubtful || !b.loose && !first || strings.Trim(words, "-* \t_") == "" ||
		strings.ContainsRune(marker, '\t')
	b.loose = true
	if indent(line) == 0 {
		b.offset = len(marker)
		if spaces := len(marker) - len(strings.TrimRight(marker, " ")); spaces > 4 || strings.TrimSpace(line) ==
			strings.TrimSpace(marker) {
			b.offset = len(strings.TrimRight(marker, " ")) + 1
		}
	}
}

// openFence notes the beginning of fenced code. Inside of a list's item it has no effect, because the item ends
// before a line that is not indented.
func (b *Blocks) openFence(line, words string) {
	in := indent(line)
	switch {
	case b.formula:
		b.sealed = true
	case in >= 4 && !b.loose:
	case b.loose && in > 0:
		b.sealed = b.doubtful || b.offset == 0 || in < b.offset
	default:
		b.fence = words[:len(words)-len(strings.TrimLeft(words, words[:1]))]
	}
}

// beginsBlock reports whether the beginning of a line behind an empty one cannot continue a list.
func beginsBlock(s string) bool {
	if len(s) < 2 {
		return false
	}
	c := s[0]
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '#' || c == '>' || c == '|' ||
		strings.HasPrefix(s, "**")
}

// indent returns the number of spaces before the text of a line. A tab counts as four.
func indent(line string) (n int) {
	for i := range len(line) {
		switch line[i] {
		case ' ':
			n++
		case '\t':
			n += 4
		default:
			return n
		}
	}
	return n
}
