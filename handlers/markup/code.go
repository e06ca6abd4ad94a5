package markup

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Bounds of one highlighted block: its bytes and its spans. A larger block is shown without colours. Time
// needs no bound, because it is linear in the length of the block.
const (
	maxColourBlock = 32 << 10
	maxColourSpans = 3000
)

// languageName matches a language's name after the opening fence of a code block; other names are
// ignored.
var languageName = regexp.MustCompile(`^[A-Za-z0-9+#._-]{1,40}$`)

// colourCode highlights the code blocks below doc: it stores the spans of each as an attribute that
// writeFenced reads.
func colourCode(doc ast.Node, source []byte) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		b, ok := n.(*ast.FencedCodeBlock)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		l, ok := languages()[strings.ToLower(string(b.Language(source)))]
		if ok && linesLen(b.Lines()) <= maxColourBlock {
			if list := l.highlight(string(b.Lines().Value(source)), maxColourSpans); list != nil {
				b.SetAttributeString(spansAttribute, list)
			}
		}
		return ast.WalkSkipChildren, nil
	})
}

const spansAttribute = "spans"

func linesLen(lines *text.Segments) (n int) {
	for i := range lines.Len() {
		s := lines.At(i)
		n += s.Len()
	}
	return n
}

// writeFenced renders a fenced code block with the name of its language, and with spans if colourCode
// stored some.
func writeFenced(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	b := node.(*ast.FencedCodeBlock)
	if info := codeInfo(b, source); len(info) > 0 {
		w.WriteString("<p>")
		writeText(w, info)
		w.WriteString("</p>\n")
	}
	w.WriteString("<pre")
	name := b.Language(source)
	if !languageName.Match(name) {
		name = nil
	}
	if name != nil {
		w.WriteString(` data-lang="`)
		w.Write(bytes.ToLower(name))
		w.WriteString(`"><code class="language-`)
		w.Write(name)
		w.WriteString(`">`)
	} else {
		w.WriteString("><code>")
	}
	if v, ok := b.AttributeString(spansAttribute); ok {
		for _, s := range v.([]span) {
			if s.class == "" {
				w.Write(util.EscapeHTML([]byte(s.text)))
				continue
			}
			w.WriteString(`<span class="`)
			w.WriteString(s.class)
			w.WriteString(`">`)
			w.Write(util.EscapeHTML([]byte(s.text)))
			w.WriteString("</span>")
		}
	} else {
		writeLines(w, source, b.Lines())
	}
	w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

func writeLines(w util.BufWriter, source []byte, lines *text.Segments) {
	for i := range lines.Len() {
		s := lines.At(i)
		w.Write(util.EscapeHTML(s.Value(source)))
	}
}
