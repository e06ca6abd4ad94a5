package markup

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alecthomas/chroma/v2"
	"golang.org/x/net/html"

	"agentsite/internal/raced"
)

// textOf is what a reader sees of a fragment.
func textOf(t testing.TB, fragment string) string {
	var b strings.Builder
	var visit func(*html.Node)
	visit = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			visit(c)
		}
	}
	for _, n := range parse(t, fragment) {
		visit(n)
	}
	return b.String()
}

func TestLanguages_AllHaveALexer(t *testing.T) {
	for _, name := range languages {
		if lexerOf()[name] == nil {
			t.Errorf("%s has none", name)
		}
	}
}

// sameText fails unless the code is what a reader sees of it.
func sameText(t testing.TB, r *Renderer, lang, code string) {
	t.Helper()
	h := r.render("```" + lang + "\n" + code + "\n```")
	check(t, code, h)
	if got, want := strings.TrimSpace(textOf(t, h)), strings.TrimSpace(Clean(code)); got != want {
		t.Errorf("%s: %q is shown as %q", lang, want, got)
	}
}

func TestColour_LeavesTheTextAsItIs(t *testing.T) {
	raced.Skip(t)
	r := New()
	codes := []string{"", " ", "\n\n\n", "\ta := `x\n\t`", "a\u2028b", "é 日本 🎉 \U0010ffff", `"\`, "/*", "<!--", "'''", "<?php echo 1", "<style>a{b:c}</style><script>let a = 1</script>", "#!/bin/sh\ncat <<E\nx\nE\n", "%%%\\end", "{{ .x }}", "\ufffd"}
	pieces := strings.Fields("func return 1 0x1f \"a\" 'b' `c` /* */ // # -- <a> </a> { } ( ) [ ] ; = => @ $ é 日 \\ \\n <!-- --> ''' end begin if else \\u0000 & &amp; < >")
	pieces = append(pieces, " ", "\n", "\t", "\n\n")
	random := rand.New(rand.NewPCG(1, 2))
	for range 6 {
		var b strings.Builder
		for range 40 {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		codes = append(codes, b.String())
	}
	for _, lang := range languages {
		for _, code := range codes {
			sameText(t, r, lang, code)
		}
	}
}

func FuzzColour(f *testing.F) {
	f.Add(uint8(0), "func main() { return \"<a>\" }")
	f.Add(uint8(7), "'''\n\\")
	r := New()
	f.Fuzz(func(t *testing.T, lang uint8, code string) {
		if strings.Contains(code, "```") || len(code) > maxSource-100 {
			return
		}
		sameText(t, r, languages[int(lang)%len(languages)], code)
	})
}

func TestColour_IsBounded(t *testing.T) {
	r := unhurried()
	code := strings.Repeat("1,", maxColourSpans) + "\n"
	h := r.render("```go\n" + code + "```")
	if strings.Contains(h, "<span") || textOf(t, h) != code+"\n" {
		t.Errorf("%d pieces became spans: %.100s", maxColourSpans, h)
	}
	if h := r.render("```go\n" + code[:200] + "\n```"); !strings.Contains(h, "<span") {
		t.Errorf("few pieces have no colour: %.100s", h)
	}
}

// unhurried is a renderer whose lexers have all the time they need, however
// busy the machine is.
func unhurried() *Renderer {
	r := New()
	r.colourTime = time.Hour
	return r
}

// tokens are a lexer's, in order.
func tokens(list ...string) chroma.Iterator {
	return func() chroma.Token {
		if len(list) == 0 {
			return chroma.EOF
		}
		t := chroma.Token{Type: chroma.Keyword, Value: list[0]}
		list = list[1:]
		return t
	}
}

func TestSpans_AreTheCodeOrNothing(t *testing.T) {
	for name, c := range map[string]struct {
		next chroma.Iterator
		want string
	}{
		"the same":   {tokens("a", "b", "", "c"), "abc"},
		"other text": {tokens("a", "x", "c"), ""},
		"less":       {tokens("ab"), ""},
		"more":       {tokens("abc", "d"), ""},
		"a panic":    {func() chroma.Token { panic("lexer") }, ""},
	} {
		list, ok := newPlaces().spans(c.next, "abc", nil)
		got := ""
		for _, s := range list {
			got += s.text
		}
		if got != c.want || !ok {
			t.Errorf("%s: %q %v", name, got, ok)
		}
	}
}

func TestSpans_HoldNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := make(places, 1)
		goOn, calls := make(chan struct{}), 0
		slow := func() chroma.Token {
			calls++
			<-goOn
			return chroma.Token{Value: "a"}
		}
		began := time.Now()
		if _, ok := p.spans(slow, strings.Repeat("a", 100), time.After(maxColourTime)); ok || time.Since(began) != maxColourTime {
			t.Errorf("a lexer that does not answer: %v after %s", ok, time.Since(began))
		}
		// It keeps its place until it answers, and others wait as long as they
		// have time.
		if _, ok := p.spans(tokens("a"), "a", time.After(maxColourTime)); ok {
			t.Error("there is a place for more than one")
		}
		close(goOn)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("the lexer went on after its time: %d calls", calls)
		}
		if list, ok := p.spans(tokens("a"), "a", time.After(maxColourTime)); !ok || len(list) != 1 {
			t.Error("the place is not given back")
		}
	})
}
