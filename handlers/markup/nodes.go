package markup

import (
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"agentsite/docs"
	"agentsite/internal/weborigin"
)

// linkRel is the rel attribute of every link in an untrusted text: the target gets no referrer or opener,
// and search engines do not count the link.
const linkRel = "noopener noreferrer nofollow ugc"

// maxURL is the longest address of a link in bytes; longer ones are shown as text.
const maxURL = 2000

// ownPages are the first segments of the portal's paths that a message may link to, as the guide does. A
// GET on these pages changes nothing.
var ownPages = []string{"about", "account", "admin", "agents", "chat", "docs", "login", "signup"}

// safeURL returns an address in the form that a link may have, parsed and encoded again; false if it is
// not allowed. Allowed are http, https, mailto and paths below ownPages. A user name in the address is
// refused, because it could pass for a host.
func safeURL(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxURL || u.User != nil {
		return "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host == "" || u.Opaque != "" {
			return "", false
		}
	case "mailto":
		if u.Opaque == "" {
			return "", false
		}
	case "":
		first, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
		if u.Host != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") || !slices.Contains(ownPages, first) ||
			strings.Contains(u.Path, "\\") {
			return "", false
		}
	default:
		return "", false
	}
	return u.String(), true
}

// nodes renders the nodes that must differ from goldmark's HTML: links carry rel; images become links, so
// that a page loads nothing from other sites; checkboxes of task lists are characters and no inputs; code
// has highlighting.
type nodes struct{}

func (nodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindLink, writeLink)
	reg.Register(ast.KindImage, writeImage)
	reg.Register(ast.KindAutoLink, autoLink)
	reg.Register(extast.KindTaskCheckBox, writeBox)
	reg.Register(ast.KindFencedCodeBlock, writeFenced)
	reg.Register(kindMath, writeMathBlock)
	reg.Register(kindMathSpan, writeMathSpan)
	reg.Register(ast.KindLinkReferenceDefinition, writeDefinition)
}

func openLink(w util.BufWriter, address string, title []byte) bool {
	return openLinkAs(w, address, title, "")
}

// openLinkAs is openLink for a link of a class.
func openLinkAs(w util.BufWriter, address string, title []byte, class string) bool {
	href, ok := safeURL(address)
	if ok {
		w.WriteString("<a ")
		if class != "" && isExternal(href) {
			w.WriteString(`class="` + class + `" `)
		}
		w.WriteString(`href="`)
		w.Write(util.EscapeHTML([]byte(href)))
		w.WriteString(`" rel="` + linkRel)
		if len(title) > 0 {
			w.WriteString(`" title="`)
			w.Write(util.EscapeHTML(util.UnescapePunctuations(title)))
		}
		w.WriteString(`">`)
	}
	return ok
}

// escapeDestination resolves the Markdown escapes in a link's destination and encodes it as a URL.
func escapeDestination(b []byte) string {
	return string(util.URLEscape([]byte(weborigin.ASCIIAddress(string(b))), true))
}

// writeLink renders a link. The address of a link that is refused is shown behind its words, and that of a link
// without words in place of them, so that nothing of the text is lost.
func writeLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	link := node.(*ast.Link)
	if _, ok := link.AttributeString(footnoteAttribute); ok {
		if entering {
			w.WriteString("[")
		} else {
			w.WriteString("]")
			if link.Reference.Type == ast.ReferenceLinkFull {
				writeText(w, slices.Concat([]byte("["), link.Reference.Value, []byte("]")))
			}
		}
		return ast.WalkContinue, nil
	}
	dest := escapeDestination(link.Destination)
	if entering {
		if linked := openLink(w, dest, link.Title); linked && plainText(link, source) == "" {
			w.Write(util.EscapeHTML([]byte(dest)))
		}
	} else if _, ok := safeURL(dest); ok {
		w.WriteString("</a>")
	} else {
		writeRefused(w, link.Destination, link.Title)
	}
	return ast.WalkContinue, nil
}

// writeRefused renders the address and title of a link that is not allowed as text.
func writeRefused(w util.BufWriter, address, title []byte) {
	words := address
	if len(title) > 0 {
		words = slices.Concat(address, []byte(` "`), title, []byte(`"`))
	}
	if len(words) > 0 {
		w.WriteString(" (")
		w.Write(util.EscapeHTML(words))
		w.WriteString(")")
	}
}

// pictureClass is the class of the links that name a picture of another site.
const pictureClass = "linked-picture"

// pictureLink matches such a link in the HTML of a message, with the address.
var pictureLink = regexp.MustCompile(`<a class="` + pictureClass + `" href="([^"]*)"`)

// isExternal reports whether an address is one of another site.
func isExternal(href string) bool {
	return strings.HasPrefix(href, "https://") || strings.HasPrefix(href, "http://")
}

// FindPictures returns the addresses of other sites that an untrusted text names as pictures.
func (r *Renderer) FindPictures(source string) (list []string) {
	for _, m := range pictureLink.FindAllStringSubmatch(string(r.Message(source)), -1) {
		list = append(list, html.UnescapeString(m[1]))
	}
	return list
}

func writeImage(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	image := node.(*ast.Image)
	dest := escapeDestination(image.Destination)
	words := plainText(node, source)
	if words == "" {
		words = dest
	}
	inLink := false
	for p := node.Parent(); p != nil; p = p.Parent() {
		inLink = inLink || p.Kind() == ast.KindLink
	}
	linked := !inLink && openLinkAs(w, dest, image.Title, pictureClass)
	w.Write(util.EscapeHTML([]byte(words)))
	if linked {
		w.WriteString("</a>")
	} else {
		writeRefused(w, image.Destination, image.Title)
	}
	return ast.WalkSkipChildren, nil
}

// autoLink renders an address. One that is not allowed keeps its angle brackets, because it may be no address, as
// in map<std::string>.
func autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.AutoLink)
	dest := string(util.URLEscape([]byte(weborigin.ASCIIAddress(string(n.URL(source)))), false))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(dest), "mailto:") {
		dest = "mailto:" + dest
	}
	linked := openLink(w, dest, nil)
	bracketed := !linked && n.Pos() >= 0 && source[n.Pos()] == '<'
	if bracketed {
		w.WriteString("&lt;")
	}
	w.Write(util.EscapeHTML(n.Label(source)))
	if bracketed {
		w.WriteString("&gt;")
	}
	if linked {
		w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

func writeBox(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		if node.(*extast.TaskCheckBox).IsChecked {
			w.WriteString("☑ ")
		} else {
			w.WriteString("☐ ")
		}
	}
	return ast.WalkContinue, nil
}

// plainText returns the text below a node without markup, for labels and headings.
func plainText(node ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			value := n.Segment.Value(source)
			if n.Parent().Kind() != ast.KindCodeSpan && !n.IsRaw() {
				value = util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(value)))
			}
			b.Write(value)
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			if n.IsCode() { // a line break in a cell
				b.WriteByte(' ')
			} else {
				b.Write(n.Value)
			}
		case *ast.AutoLink:
			b.Write(n.Label(source))
		case *ast.FencedCodeBlock, *ast.CodeBlock, *mathBlock:
			b.Write(n.Lines().Value(source))
		case *ast.LinkReferenceDefinition:
			if isUnused(n) {
				b.Write(n.Lines().Value(source))
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// Levels of headings in a message, which are below the levels that the page uses.
const (
	topLevel    = 3
	bottomLevel = 6
)

// levels shifts the headings of a message below those of the page, and closes gaps between levels for
// screen readers.
type levels struct{}

// lastLevel is the context key of the level of the last heading, 0 before the first. Rendering block by block passes
// it from block to block.
var lastLevel = parser.NewContextKey()

func (levels) Transform(doc *ast.Document, _ text.Reader, pc parser.Context) {
	last, _ := pc.Get(lastLevel).(int)
	last = max(last, topLevel-1)
	defer func() { pc.Set(lastLevel, last) }()
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && entering {
			h.Level = min(max(h.Level+2, topLevel), last+1, bottomLevel)
			last = h.Level
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
}

// directions is a transformer for scripts that are written from the right: the marks of a list, the bar of a quote
// and the columns of a table stand on the side on which its first letter begins. The style sheet does so for the
// lines of all other elements.
type directions struct{}

func (directions) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		switch n.Kind() {
		case ast.KindList, ast.KindBlockquote, extast.KindTable:
			n.SetAttributeString("dir", []byte("auto"))
		}
	}
}

// anchors gives the headings of a manual page their ids, and removes the page's title, which the template
// shows.
type anchors struct{}

func (anchors) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	source := reader.Source()
	var title ast.Node
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		switch {
		case !ok:
		case h.Level == 1 && title == nil:
			title = h
		default:
			h.SetAttributeString("id", []byte(docs.HeadingAnchor(plainText(h, source))))
		}
	}
	if title != nil {
		doc.RemoveChild(doc, title)
	}
}
