package markup

import (
	"bytes"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Bounds of colouring code: what one text may take of the page that shows it,
// how long a block may be, and how many spans it may get. What exceeds them
// is shown without colours.
const (
	maxColourTime  = 80 * time.Millisecond
	maxColourBlock = 32 << 10
	maxColourSpans = 3000
)

// languages are those whose code is coloured, by the names people write. The
// patterns of each are compiled when it is first met, and kept.
var languages = strings.Fields(`
	bash sh shell zsh c cpp c++ csharp c# css scss clojure cmake dart diff patch docker dockerfile elixir elm erlang fsharp fish go golang
	graphql groovy haskell hcl terraform html ini java javascript js jsx json julia kotlin kt latex tex lisp lua make makefile matlab nginx nix
	objective-c ocaml perl php postgresql powershell ps1 proto protobuf python py python3 r ruby rb rust rs scala sql sqlite swift
	toml typescript ts tsx vim xml yaml yml zig`)

// aliases are names that the lexers do not know.
var aliases = map[string]string{"jsx": "react", "terraform": "hcl", "sqlite": "sql", "tsx": "typescript", "shell": "bash", "golang": "go"}

// lexerOf finds the lexer of a language by the name after a fence.
var lexerOf = sync.OnceValue(func() map[string]chroma.Lexer {
	out := make(map[string]chroma.Lexer, len(languages))
	for _, name := range languages {
		known := name
		if a, ok := aliases[name]; ok {
			known = a
		}
		if l := lexers.Get(known); l != nil {
			out[name] = chroma.Coalesce(l)
		}
	}
	return out
})

// language is how a fence may name one.
var language = regexp.MustCompile(`^[A-Za-z0-9+#._-]{1,40}$`)

// places are those for colouring at the same time: code that takes its lexer
// long holds one, and never a page.
type places chan struct{}

func newPlaces() places { return make(places, max(2, runtime.GOMAXPROCS(0))) }

// span is a piece of code of one kind; "" has no colour.
type span struct{ class, text string }

// colour gives the blocks of code below doc their spans, as long as the time
// for the text lasts.
func (p places) colour(doc ast.Node, source []byte, most time.Duration) {
	var left *time.Timer
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		b, ok := n.(*ast.FencedCodeBlock)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		lexer, ok := lexerOf()[strings.ToLower(string(b.Language(source)))]
		if !ok || linesLen(b.Lines()) > maxColourBlock {
			return ast.WalkSkipChildren, nil
		}
		code := string(b.Lines().Value(source))
		next, err := begin(lexer, code)
		if err != nil {
			return ast.WalkSkipChildren, nil
		}
		if left == nil {
			left = time.NewTimer(most)
		}
		list, ok := p.spans(next, code, left.C)
		if !ok {
			return ast.WalkStop, nil // the time is over, for all of them
		}
		if list != nil {
			b.SetAttributeString(spansAttribute, list)
		}
		return ast.WalkSkipChildren, nil
	})
	if left != nil {
		left.Stop()
	}
}

const spansAttribute = "spans"

func linesLen(lines *text.Segments) (n int) {
	for i := range lines.Len() {
		s := lines.At(i)
		n += s.Len()
	}
	return n
}

// begin compiles what the lexer needs, which code has no part in.
func begin(l chroma.Lexer, code string) (next chroma.Iterator, err error) {
	defer func() {
		if r := recover(); r != nil {
			next, err = nil, errLexer
		}
	}()
	return l.Tokenise(&chroma.TokeniseOptions{State: "root"}, code)
}

// spans reads the tokens of code beside the page that waits for them, which
// goes on without when over comes first; ok is false then. The list is nil
// for code that cannot be coloured. A lexer that goes on stops at its next
// token, and until then keeps its place from others.
func (p places) spans(next chroma.Iterator, code string, over <-chan time.Time) (list []span, ok bool) {
	select {
	case p <- struct{}{}:
	case <-over:
		return nil, false
	}
	done, given := make(chan []span, 1), make(chan struct{})
	go func() {
		defer func() { <-p }()
		var list []span
		defer func() {
			if recover() != nil { // lexers are not ours, and the code is hostile
				list = nil
			}
			done <- list
		}()
		list = collect(next, code, given)
	}()
	select {
	case list := <-done:
		return list, true
	case <-over:
		close(given)
		return nil, false
	}
}

// collect is the code in spans, nil when they would be too many, or another
// text than the code.
func collect(next chroma.Iterator, code string, given <-chan struct{}) []span {
	list, at := make([]span, 0, 64), 0
	for t := next(); t != chroma.EOF; t = next() {
		select {
		case <-given:
			return nil
		default:
		}
		if t.Value == "" {
			continue
		}
		if !strings.HasPrefix(code[at:], t.Value) {
			return nil
		}
		at += len(t.Value)
		class := classOf(t.Type)
		if n := len(list); n > 0 && (list[n-1].class == class || strings.TrimSpace(t.Value) == "") {
			list[n-1].text = code[at-len(t.Value)-len(list[n-1].text) : at]
			continue
		}
		if len(list) == maxColourSpans {
			return nil
		}
		list = append(list, span{class, t.Value})
	}
	if at != len(code) {
		return nil
	}
	return list
}

// classOf is the class of a kind of token: few, that the style sheet can tell
// apart on any ground.
func classOf(t chroma.TokenType) string {
	switch {
	case t == chroma.GenericInserted:
		return "hl-string"
	case t == chroma.GenericDeleted:
		return "hl-number"
	case t == chroma.GenericHeading, t == chroma.GenericSubheading, t == chroma.NameTag, t == chroma.OperatorWord:
		return "hl-keyword"
	case t == chroma.NameFunction, t == chroma.NameClass, t == chroma.NameAttribute, t == chroma.NameBuiltin, t == chroma.NameDecorator,
		t == chroma.NameBuiltinPseudo, t == chroma.NameFunctionMagic, t == chroma.NameVariable, t == chroma.NameNamespace:
		return "hl-name"
	case t.InCategory(chroma.Keyword):
		return "hl-keyword"
	case t.InCategory(chroma.Comment):
		return "hl-comment"
	case t.InSubCategory(chroma.LiteralString):
		return "hl-string"
	case t.InSubCategory(chroma.LiteralNumber):
		return "hl-number"
	}
	return ""
}

// fenced writes a block of code with its language and, if it got them, spans.
func fenced(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	b := node.(*ast.FencedCodeBlock)
	w.WriteString("<pre")
	name := b.Language(source)
	if !language.Match(name) {
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
