package markup

import (
	"net/url"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"agentsite/docs"
)

// linkRel is set on every link of an untrusted text.
const linkRel = "noopener noreferrer nofollow ugc"

// maxURL is the longest address a link may have.
const maxURL = 2000

// ownPages are the pages of ours that a message may link to by path, as the
// guide does. Visiting a page changes nothing.
var ownPages = []string{"about", "account", "admin", "agents", "chat", "docs", "login", "signup"}

// safeURL returns the address as a link may have it: parsed and written anew,
// http, https, mailto or the path of a page of ours, and without a user name,
// which could pass for a host.
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

// nodes writes the nodes that must differ from goldmark's own HTML: links carry rel; images become links, so that a
// page never loads anything from elsewhere; boxes of task lists are characters, not inputs; code has spans for
// colours.
type nodes struct{}

func (nodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindLink, writeLink)
	reg.Register(ast.KindImage, writeImage)
	reg.Register(ast.KindAutoLink, autoLink)
	reg.Register(extast.KindTaskCheckBox, writeBox)
	reg.Register(ast.KindFencedCodeBlock, writeFenced)
	reg.Register(kindMath, mathBox)
}

func openLink(w util.BufWriter, address string) bool {
	href, ok := safeURL(address)
	if ok {
		w.WriteString(`<a href="`)
		w.Write(util.EscapeHTML([]byte(href)))
		w.WriteString(`" rel="` + linkRel + `">`)
	}
	return ok
}

// escapeDestination is a link's address with Markdown's escapes resolved.
func escapeDestination(b []byte) string { return string(util.URLEscape(b, true)) }

func writeLink(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	dest := escapeDestination(node.(*ast.Link).Destination)
	if entering {
		openLink(w, dest)
	} else if _, ok := safeURL(dest); ok {
		w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

func writeImage(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	dest := escapeDestination(node.(*ast.Image).Destination)
	words := plainText(node, source)
	if words == "" {
		words = dest
	}
	inLink := false
	for p := node.Parent(); p != nil; p = p.Parent() {
		inLink = inLink || p.Kind() == ast.KindLink
	}
	linked := !inLink && openLink(w, dest)
	w.Write(util.EscapeHTML([]byte(words)))
	if linked {
		w.WriteString("</a>")
	}
	return ast.WalkSkipChildren, nil
}

func autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.AutoLink)
	dest := string(util.URLEscape(n.URL(source), false))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(dest), "mailto:") {
		dest = "mailto:" + dest
	}
	linked := openLink(w, dest)
	w.Write(util.EscapeHTML(n.Label(source)))
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

// plainText is the words below a node, without markup.
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
			if n.Parent().Kind() != ast.KindCodeSpan {
				value = util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(value)))
			}
			b.Write(value)
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(source))
		case *ast.FencedCodeBlock, *ast.CodeBlock, *mathBlock:
			b.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// Levels of headings in a message: below those of the page around it.
const (
	topLevel    = 3
	bottomLevel = 6
)

// levels moves the headings of a message below the page's own and lets none
// skip a level.
type levels struct{}

func (levels) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	last := topLevel - 1
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && entering {
			h.Level = min(max(h.Level+2, topLevel), last+1, bottomLevel)
			last = h.Level
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
}

// anchors gives the headings of the manual their ids and takes the page's
// title out.
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
