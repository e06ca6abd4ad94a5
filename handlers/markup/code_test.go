package markup

import (
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/racetest"
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

// sameText fails unless the code is what a reader sees of it.
func sameText(t testing.TB, r *Renderer, lang, code string) {
	t.Helper()
	h := r.renderMarkdown("```" + lang + "\n" + code + "\n```")
	check(t, code, h)
	if got, want := strings.TrimSpace(textOf(t, h)), strings.TrimSpace(Clean(code)); got != want {
		t.Errorf("%s: %q is shown as %q", lang, want, got)
	}
}

func TestColour_LeavesTheTextAsItIs(t *testing.T) {
	racetest.Skip(t)
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
	for _, lang := range slices.Sorted(maps.Keys(languages())) {
		for _, code := range codes {
			sameText(t, r, lang, code)
		}
	}
}

func TestColour_IsBounded(t *testing.T) {
	r := New()
	code := strings.Repeat("1,", maxColourSpans) + "\n"
	h := r.renderMarkdown("```go\n" + code + "```")
	if strings.Contains(h, "<span") || textOf(t, h) != code+"\n" {
		t.Errorf("%d pieces became spans: %.100s", maxColourSpans, h)
	}
	if h := r.renderMarkdown("```go\n" + code[:200] + "\n```"); !strings.Contains(h, "<span") {
		t.Errorf("few pieces have no colour: %.100s", h)
	}
	for size, want := range map[int]bool{maxColourBlock: true, maxColourBlock + 1: false} {
		source := []byte("```go\n" + strings.Repeat("a", size-1) + "\n```")
		doc := r.message.Parser().Parse(text.NewReader(source))
		colourCode(doc, source)
		if _, got := doc.FirstChild().AttributeString(spansAttribute); got != want {
			t.Errorf("a block of %d bytes has spans: %v", size, got)
		}
	}
}
