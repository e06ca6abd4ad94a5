package markup_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"agentsite/handlers/markup"
)

// lines are pieces of Markdown that mean something else beside other pieces.
var lines = []string{"", "", "", "Some words.", "- item", "  inside", "   deeper", "    code", "\tcode", "1. first", "2. second",
	"   ```sh", "```go", "```", "~~~", "  ```", " ```", "> quote", "> - item", "# One", "### Three", "## Two", "---", "***", "* * *",
	"| a | b |", "|---|---|", "| 1 | 2 |", "$$", "a_b$$", `\[x\]`, "*", "-", "12) twelve", "**bold** text", "<b>", "`a", "a\\", "    ", "  ",
	"[x](https://a.example)", "https://a.example", "- [x] done", "word\r", "+ plus", "- ```", "  - nested", "      ```"}

// closedBlocks adds text in pieces and returns the finished blocks.
func closedBlocks(t *testing.T, r *markup.Renderer, text string, cut func(left int) int) (string, *markup.Blocks) {
	t.Helper()
	var b markup.Blocks
	var out strings.Builder
	at := 0
	for rest := text; rest != ""; {
		n := cut(len(rest))
		s := r.Advance(&b, rest[:n])
		rest = rest[n:]
		if s.From != at || s.To < s.From {
			t.Fatalf("a span from %d to %d follows byte %d", s.From, s.To, at)
		}
		at = s.To
		out.WriteString(string(s.HTML))
	}
	if b.Len() != len(text) || text[at:] != b.Open() {
		t.Fatalf("%d bytes, open %q, of %q", b.Len(), b.Open(), text)
	}
	return out.String(), &b
}

// TestBlocksEqualTheWhole renders random texts in pieces: the finished blocks are the beginning of the whole text's
// rendering, wherever the pieces are cut.
func TestBlocksEqualTheWhole(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	r := markup.New()
	finished := 0
	for range 20_000 {
		var text strings.Builder
		for range 1 + random.IntN(14) {
			text.WriteString(lines[random.IntN(len(lines))] + "\n")
		}
		source := text.String()
		closed, _ := closedBlocks(t, r, source, func(left int) int { return 1 + random.IntN(left) })
		if whole := string(r.Message(source)); !strings.HasPrefix(whole, closed) {
			t.Fatalf("of %q the finished blocks are\n%s\nand the whole is\n%s", source, closed, whole)
		}
		if closed != "" {
			finished++
		}
	}
	if finished < 4000 {
		t.Errorf("%d texts had a finished block", finished)
	}
}

func FuzzBlocksEqualTheWhole(f *testing.F) {
	f.Add("# A\n\n- a\n\n  ```\n  b\n  ```\n\nc\n\n```\nd\n\ne\n```\nf", 3)
	f.Add("$$\n```\n$$\n\na\n```\n\nb", 1)
	f.Fuzz(func(t *testing.T, source string, n int) {
		if len(source) > 4000 || strings.Contains(source, "]:") {
			return // a definition changes blocks before it
		}
		r := markup.New()
		closed, _ := closedBlocks(t, r, source, func(left int) int { return min(left, max(1, n)) })
		if whole := string(r.Message(source)); !strings.HasPrefix(whole, closed) {
			t.Fatalf("of %q the finished blocks are\n%s\nand the whole is\n%s", source, closed, whole)
		}
	})
}

func TestBlocksOpenBlock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, open string }{
		{"one\n\ntwo", "two"},
		{"one\ntwo\n", "one\ntwo\n"},
		{"one\n\n```go\na\n\nb\n", "```go\na\n\nb\n"},
		{"one\n\n```go\na\n\nb\n```\n", ""},
		{"- a\n\n- b\n\nThen", "Then"},
		{"1. a\n   ```sh\n   b\n   ```\n\n2. c\n\n", "1. a\n   ```sh\n   b\n   ```\n\n2. c\n\n"},
		{"| a |\n|---|\n| b |\n\nAfter", "After"},
		{"a\n\n[x]: https://a.example\n\nb\n\nc", "[x]: https://a.example\n\nb\n\nc"},
	} {
		r := markup.New()
		if _, b := closedBlocks(t, r, c.text, func(int) int { return 1 }); b.Open() != c.open {
			t.Errorf("of %q the open block is %q, not %q", c.text, b.Open(), c.open)
		}
	}
}

// TestLongTextIsFormatted has a text above the bound of one parse: its blocks are still formatted.
func TestLongTextIsFormatted(t *testing.T) {
	t.Parallel()
	source := strings.Repeat("Some **bold** words in a paragraph of an answer.\n\n", 1000)
	got := string(markup.New().Message(source))
	if n := strings.Count(got, "<strong>"); n != 1000 {
		t.Errorf("%d of 1000 paragraphs are formatted", n)
	}
}

// BenchmarkBlocks streams an answer word by word.
func BenchmarkBlocks(b *testing.B) {
	words := strings.SplitAfter(strings.Repeat("A paragraph with `code` and **bold** words.\n\n- one\n- two\n\n```go\nfunc f() {}\n```\n\n", 100), " ")
	for b.Loop() {
		r := markup.New()
		var blocks markup.Blocks
		for _, w := range words {
			r.Advance(&blocks, w)
		}
	}
}
