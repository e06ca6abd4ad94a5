// Package markup turns Markdown into HTML that may be part of a page. Texts of people and agents are hostile; the
// manual is part of the program and trusted. The package decides which elements, attributes and links are allowed
// and how much work a text may cause. It knows nothing of conversations, agents or HTTP.
//
// Message has four layers of defence: bounds that are checked before parsing (see bounds.go), a parser without raw
// HTML, node renderers that write only safe links, and an allow-list of elements and attributes for the result. A
// text that exceeds a bound is shown as escaped plain text.
package markup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"agentsite/docs"
	"agentsite/templates"
)

const (
	// cacheBytes bounds the HTML of messages that Renderer caches, in bytes. Rendering costs up to a few
	// ms per message.
	cacheBytes = 8 << 20
	// maxOutput bounds the HTML of one text in bytes. A text that exceeds it is shown as plain text.
	maxOutput = 256 << 10
)

// Renderer renders Markdown. Create it with New; it is safe for concurrent
// use.
type Renderer struct {
	message goldmark.Markdown
	manual  goldmark.Markdown
	policy  *bluemonday.Policy
	texts   *Cache[[sha256.Size]byte]
	// Fragments caches HTML that handlers render once and serve many times. The key must contain
	// everything that the HTML depends on.
	Fragments *Cache[string]
}

// New returns a renderer with empty caches.
func New() *Renderer {
	return &Renderer{message: newMessage(), manual: newManual(), policy: newPolicy(),
		texts: NewCache[[sha256.Size]byte](cacheBytes), Fragments: NewCache[string](cacheBytes)}
}

// newMessage builds Markdown without raw HTML: the parsers of HTML blocks and inline HTML are left out, so that a
// tag in a text is shown as text.
func newMessage() goldmark.Markdown {
	p := parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(mathLines{}, 750),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(mathSpan{}, 150),
			util.Prioritized(backslashes{}, 160),
			util.Prioritized(breaks{}, 170),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(emphasis{}, 500),
			util.Prioritized(addresses{}, 600),
		),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(),
			util.Prioritized(newTables(), 199))...), // before the extension's own
		parser.WithASTTransformers(util.Prioritized(levels{}, 500), util.Prioritized(keepLineEnds{}, 500), util.Prioritized(formulas{}, 500),
			util.Prioritized(keepUnused{}, 500), util.Prioritized(numbers{}, 500),
			util.Prioritized(directions{}, 500)),
	)
	return goldmark.New(
		goldmark.WithParser(p),
		goldmark.WithExtensions(
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:", "mailto:"}),
				extension.WithLinkifyURLRegexp(webAddress), extension.WithLinkifyWWWRegexp(siteAddress)),
			extension.TaskList,
		),
		goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(nodes{}, 100),
			util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500))),
	)
}

func newManual() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough, extension.Linkify),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(anchors{}, 500))),
	)
}

// Message renders an untrusted text of a person or an agent. It never fails: a text that cannot be
// rendered safely is shown as plain text.
func (r *Renderer) Message(source string) templates.SafeHTML {
	key := sha256.Sum256([]byte(source))
	if h, ok := r.texts.Get(key); ok {
		return templates.SafeHTML(h)
	}
	h := r.renderMarkdown(source)
	r.texts.Put(key, h)
	return templates.SafeHTML(h)
}

func (r *Renderer) renderMarkdown(source string) string {
	source = Clean(source)
	if !isBounded(source) {
		if out, ok := r.renderLong(source); ok {
			return out
		}
	}
	return r.renderPart(source, parser.NewContext())
}

// renderPart renders a text, or a block of one. pc has the state that a block takes over from the one before.
func (r *Renderer) renderPart(source string, pc parser.Context) (out string) {
	source = Clean(source)
	// The parser is third-party code and the text is hostile, so a panic must cost the formatting of one
	// message and not the page.
	defer func() {
		if recover() != nil {
			out = plainHTML(source)
		}
	}()
	if !isBounded(source) {
		return plainHTML(source)
	}
	src := []byte(source)
	doc := r.message.Parser().Parse(text.NewReader(src), parser.WithContext(pc))
	if nestingDepth(doc) > maxDepth {
		return plainHTML(source)
	}
	colourCode(doc, src)
	raw := limited{max: maxOutput}
	if err := r.message.Renderer().Render(&raw, src, doc); err != nil {
		return plainHTML(source)
	}
	safe := r.policy.SanitizeBytes(raw.buf.Bytes())
	if len(safe) > maxOutput || len(bytes.TrimSpace(safe)) == 0 && strings.TrimSpace(source) != "" {
		return plainHTML(source)
	}
	return string(safe)
}

// Doc renders a trusted page of the manual without its title. Every heading gets the id of
// docs.HeadingAnchor, so that links from other pages work.
func (r *Renderer) Doc(source string) templates.SafeHTML {
	key := sha256.Sum256([]byte("manual\x00" + source))
	if h, ok := r.texts.Get(key); ok {
		return templates.SafeHTML(h)
	}
	var buf bytes.Buffer
	if err := r.manual.Convert([]byte(source), &buf); err != nil {
		return templates.SafeHTML(plainHTML(source))
	}
	r.texts.Put(key, buf.String())
	return templates.SafeHTML(buf.String())
}

// Headings returns the headings of level 2 and 3 of a page of the manual, for its table of contents.
func (r *Renderer) Headings(source string) []templates.Heading {
	src := []byte(source)
	var out []templates.Heading
	doc := r.manual.Parser().Parse(text.NewReader(src))
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && (h.Level == 2 || h.Level == 3) {
			words := plainText(h, src)
			out = append(out, templates.Heading{Text: words, ID: docs.HeadingAnchor(words), Level: h.Level})
		}
	}
	return out
}

// Bounds of the line that Line returns: a longer first paragraph is cut.
const (
	maxLineSource = 2 << 10
	maxLineRunes  = 200
)

// Line returns the first sentence of a Markdown text as plain text on one line, for lists and previews.
func (r *Renderer) Line(source string) string {
	source = Clean(source)
	if len(source) > maxLineSource {
		source = strings.ToValidUTF8(source[:maxLineSource], "")
	}
	line := source
	if isBounded(source) {
		src := []byte(source)
		doc := r.message.Parser().Parse(text.NewReader(src))
		for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
			if line = plainText(n, src); line != "" {
				break
			}
		}
	}
	line = strings.Join(strings.Fields(line), " ")
	for i, c := range line {
		if (c == '.' || c == '!' || c == '?') && i+1 < len(line) && line[i+1] == ' ' || c == '。' {
			line = line[:i+utf8.RuneLen(c)]
			break
		}
	}
	if utf8.RuneCountInString(line) > maxLineRunes {
		line = strings.TrimSpace(string([]rune(line)[:maxLineRunes-1])) + "…"
	}
	return line
}

// Link renders a link to an untrusted address. An address that safeURL refuses becomes plain text.
func (r *Renderer) Link(address, label string) templates.SafeHTML {
	label = Clean(label)
	if label == "" {
		label = Clean(address)
	}
	words := string(util.EscapeHTML([]byte(label)))
	href, ok := safeURL(address)
	if !ok {
		return templates.SafeHTML("<p>" + words + "</p>")
	}
	return templates.SafeHTML(`<p><a href="` + string(util.EscapeHTML([]byte(href))) + `" rel="` + linkRel + `">` +
		words + "</a></p>")
}

var errTooLong = errors.New("the rendered text is too long")

// limited is a buffer; writes fail once it would exceed max bytes.
type limited struct {
	buf bytes.Buffer
	max int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.buf.Len()+len(b) > l.max {
		return 0, errTooLong
	}
	return l.buf.Write(b)
}
