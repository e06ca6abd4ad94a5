package markup

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentsite/docs"
	"agentsite/internal/testing/racetest"
)

func TestMessage_ShowsMarkdown(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"emphasis", "*a* **b** ~~c~~", "<em>a</em> <strong>b</strong> <del>c</del>"},
		{"hard wraps", "a\nb", "a<br>"},
		{"tags are text", "use <div> & <b>", "use &lt;div&gt; &amp; &lt;b&gt;"},
		{"code keeps its language", "```go\nx := 1\n```", `<code class="language-go">`},
		{"table", "| a | b |\n|---|--:|\n| 1 | 2 |", `<td align="right">2</td>`},
		{"tasks are no inputs", "- [x] a\n- [ ] b", "☑ a"},
		{"bare addresses are links", "see https://example.org/x now", `<a href="https://example.org/x" rel="noopener noreferrer nofollow ugc">https://example.org/x</a>`},
		{"our own pages", "[the manual](/docs/api#x) [all](/agents?tag=a)", `<a href="/docs/api#x" rel="noopener noreferrer nofollow ugc">the manual</a> <a href="/agents?tag=a" rel=`},
		{"nothing else of ours", "[x](/api/v1/me)", "<p>x (/api/v1/me)</p>"},
		{"mail", "<a@example.org>", `<a href="mailto:a@example.org" rel=`},
		{"images are links", "![a cat](https://example.org/cat.png)", `<a class="linked-picture" href="https://example.org/cat.png" rel="noopener noreferrer nofollow ugc">a cat</a>`},
		{"images without words", "![](https://example.org/cat.png)", `>https://example.org/cat.png</a>`},
		{"a title", `[x](https://example.org "over")`, `<a href="https://example.org" rel="noopener noreferrer nofollow ugc" title="over">x</a>`},
		{"refused links keep their words", "[click](javascript:x)", "<p>click (javascript:x)</p>"},
		{"headings stand below the page's", "# a\n### b", "<h3>a</h3>\n<h4>b</h4>"},
		{"list start", "3. a", `<ol start="3" dir="auto">`},
		{"other scripts", "مرحبا **بك**", "مرحبا <strong>بك</strong>"},
		{"code is coloured", "```go\n// x\nreturn 1\n```", `<pre data-lang="go"><code class="language-go"><span class="hl-comment">// x
</span><span class="hl-keyword">return </span><span class="hl-number">1`},
		{"code of no known language", "```Klingon\nreturn 1\n```", `<pre data-lang="klingon"><code class="language-Klingon">return 1`},
		{"code without a language", "```\nreturn 1\n```", "<pre><code>return 1\n</code></pre>"},
		{"a name that is none", "```a\"b\nreturn 1\n```", "<pre><code>return 1"},
		{"a formula", "so $x_1 * y_2 * \\alpha$ is", `<p>so <math><semantics><mrow><msub><mi>x</mi><mn>1</mn></msub><mo>∗</mo>`},
		{"the source of a formula", "so $x_1 < \\alpha$ is", `<annotation encoding="application/x-tex">$x_1 &lt; \alpha$</annotation></semantics></math> is</p>`},
		{"a formula in brackets", `so \(a_1 \pm *b*\) is`, `<p>so <math><semantics><mrow><msub><mi>a</mi><mn>1</mn></msub><mo>±</mo><mo>∗</mo><mi>b</mi><mo>∗</mo></mrow>`},
		{"a formula across lines", "so $a_1\n= b$ is", `<p>so <math><semantics><mrow><msub><mi>a</mi><mn>1</mn></msub><mo>=</mo><mi>b</mi></mrow>`},
		{"a displayed formula in a line", `so \[a_1 < b_1\] and $$*a*$$ is`, `<span class="math-block"><math display="block"><semantics><mrow><mo>∗</mo><mi>a</mi>`},
		{"a long formula in a line", "so $a + b + c + d + e + f + g + h + i + j$ is", `<p>so <span class="math-long"><math><semantics>`},
		{"a formula of lines", "so\n$$\n- a_1 * b\n= c\n$$\nis *it*", `<p>so</p>
<p class="math-block"><math display="block"><semantics><mrow><mo>−</mo><msub>`},
		{"words behind a formula of lines", "so\n$$\n- a_1 * b\n= c\n$$\nis *it*", `$$</annotation></semantics></math></p>
<p>is <em>it</em></p>`},
		{"a formula on a line", "\\[ *a* \\]\nb", `\[ *a* \]</annotation></semantics></math></p>
<p>b</p>`},
		{"a formula in a list", "- a\n\n  $$\n  x\n  $$\n- b", `<p class="math-block"><math display="block"><semantics><mrow><mi>x</mi></mrow>`},
		{"a formula in a cell", "| a |\n|---|\n| $x^2$ |", "<td><math><semantics><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow>"},
		{"a formula in bold", "**$x$**", "<strong><math><semantics><mrow><mi>x</mi>"},
		{"a formula that is unknown", `so $\unknown_1 * y$ is`, `<p>so <code class="math">$\unknown_1 * y$</code> is</p>`},
		{"unknown lines", "$$\n\\unknown *x*\n\\\\ d\n$$", "<pre class=\"math\"><code>$$\n\\unknown *x*\n\\\\ d\n$$</code></pre>"},
		{"a macro", `$\def\a{\a\a}\a$`, `<code class="math">$\def\a{\a\a}\a$</code>`},
		{"a link in a formula", `$\href{https://a.example}{x}$`, `<code class="math">$\href{https://a.example}{x}$</code>`},
		{"a tag in a formula", `$\text{<img src=x onerror=alert(1)>}$`, "<mtext>&lt;img\u00a0src=x\u00a0onerror=alert(1)&gt;</mtext>"},
		{"code is code", "`$x$` and\n\n```\n$$y$$\n```", "<p><code>$x$</code> and</p>\n<pre><code>$$y$$\n</code></pre>"},
		{"amounts before and behind", "between $5 and 10$ or so", "<p>between $5 and 10$ or so</p>"},
		{"an amount before a formula", "costs $5 for $x$ of it", "<p>costs $5 for <math><semantics><mrow><mi>x</mi></mrow>"},
		{"prices with and", "costs $5 and $10", "<p>costs $5 and $10</p>"},
		{"prices of goods", "A ($3), B ($4); C-$5, $6/mo, $7k–$8k.", "<p>A ($3), B ($4); C-$5, $6/mo, $7k–$8k.</p>"},
		{"amounts are none", "costs $5 or $10, *not* US$7.", "<p>costs $5 or $10, <em>not</em> US$7.</p>"},
		{"variables are none", "set $HOME and $PATH *now*", "set $HOME and $PATH <em>now</em>"},
		{"what is not closed is none", "$$ *a*\n\n\\[ *b*\n\n$$", "<p>$$ <em>a</em></p>\n<p>[ <em>b</em></p>\n<p>$$</p>"},
		{"an escaped dollar", `\$a_b_c\$ *d*`, "$a_b_c$ <em>d</em>"},
		{"entities", "&copy; &amp; &#65;", "© &amp; A"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(New().Message(c.source)); !strings.Contains(got, c.want) {
				t.Errorf("%q became\n%s\nwithout\n%s", c.source, got, c.want)
			}
		})
	}
}

// TestMessage_ConvertsSomeFormulas has more formulas than one message may have: the others stay source, also when the
// message is rendered block by block.
func TestMessage_ConvertsSomeFormulas(t *testing.T) {
	source := strings.Repeat("a $x$\n\n", maxFormulas+5)
	whole := string(New().Message(source))
	if n := strings.Count(whole, "<math>"); n != maxFormulas {
		t.Errorf("%d formulas are converted", n)
	}
	if n := strings.Count(whole, `<code class="math">$x$</code>`); n != 5 {
		t.Errorf("%d formulas are source", n)
	}
	check(t, "many formulas", whole)
	r := New()
	for range 2 { // the second time from the cache
		var b Blocks
		if got := string(r.Advance(&b, source).HTML); got != whole {
			t.Errorf("block by block it is\n%s", got)
		}
	}
}

func TestMessage_BeyondABoundIsPlainText(t *testing.T) {
	long := strings.Repeat("a **b**\nc\nd <e>\n", 1200)
	for name, s := range map[string]string{
		"source":     long,
		"markers":    "> > > > > > > > > **a**",
		"brackets":   "**a**" + strings.Repeat("[", maxBrackets+1),
		"targets":    "**a**" + strings.Repeat("](", maxTargets+1),
		"delimiters": "**a**" + strings.Repeat("*a_ ", maxDelimiters),
		"cells":      strings.Repeat("|a", 500) + "\n" + strings.Repeat("|-", 500) + "\n" + strings.Repeat("a\n", 1000),
		"depth":      deep(100),
	} {
		got := string(New().Message(s))
		if strings.Contains(got, "<strong>") || strings.Contains(got, "<em>") || strings.Contains(got, "<table>") || !strings.HasPrefix(got, "<p>") {
			t.Errorf("%s: not plain: %.200s", name, got)
		}
		check(t, name, got)
	}
	got := string(New().Message(long))
	if !strings.Contains(got, "<p>a **b**<br>c<br>d &lt;e&gt;<br>a **b**<br>") {
		t.Errorf("lines are lost: %.200s", got)
	}
}

// deep nests lists over lines, where no single line has many markers.
func deep(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return b.String()
}

func TestMessage_OrdinaryTextsStayWithinBounds(t *testing.T) {
	code := "```c\n" + strings.Repeat("static int my_long_function_name(char *p, int a[]) { return *p; }\n", 200) + "```"
	table := "| a | b | c |\n|---|---|---|\n" + strings.Repeat("| 1 | **2** | [x](https://e.example) |\n", 300)
	for name, s := range map[string]string{
		"code": code, "table": table, "rule": "a\n\n- - - - - - - - - - - - - -\n\n* * * * * * * * * * *\n\nb",
		"prose": strings.Repeat("A *few* words with [a link](https://e.example) and `code`. ", 200),
	} {
		if !isBounded(s) {
			t.Errorf("%s: is shown as plain text", name)
		}
	}
}

// hostile are texts that take goldmark quadratic time.
var hostile = map[string]string{
	"quotes": ">", "quotes with space": "> ", "numbers": "1. ", "bullets": "+ ", "links": "[a](<b", "links to nowhere": "[a](", "links cut": "[a](b", "emphasis": "*a_ ", "emphasis across": "_a*", "open brackets": "[", "images": "![",
	"quote lines": "> > > > > > > > a\n", "link paragraphs": strings.Repeat("[a](", maxTargets) + "\n\n", "emphasis paragraphs": strings.Repeat("_a*", maxDelimiters/2) + "\n\n",
	"entities": "&amp;", "autolinks": "<http://", "addresses": "www.a", "cells": "|", "ticks": "`a ``b ", "lists": "- a\n\n", "references": "[a]: b\n", "strikes": "~~a ~",
	"dollars": "$a ", "formulas": "$a$", "double dollars": "$$a ", "opening formulas": `\(a `, "opening lines": "\\[\n", "dollar lines": "$$\n", "lines of formulas": "$$a\n", "backslashes": `\`, "escaped openings": `\\(`,
	"code": "```go\na\n```\n", "open code": "```js\n", "opening strings": "```python\n\"\"\"",
}

// quadratic are those that goldmark takes so long for that they must be refused.
var quadratic = strings.Split("quotes,quotes with space,numbers,bullets,links,links to nowhere,links cut,"+
	"emphasis,emphasis across,open brackets,images,opening lines,references,strikes", ",")

// repeated returns the hostile text of a name at one size.
func repeated(name string, size int) string {
	unit := hostile[name]
	return strings.Repeat(unit, size/len(unit)+1)[:size]
}

func TestMessage_RefusesQuadraticTexts(t *testing.T) {
	for _, name := range quadratic {
		if isBounded(repeated(name, maxSource)) {
			t.Errorf("%s: %d bytes are parsed", name, maxSource)
		}
	}
	for name := range hostile {
		if isBounded(repeated(name, maxSource+1)) {
			t.Errorf("%s: more than %d bytes are parsed", name, maxSource)
		}
	}
}

// stepsOf names the hostile text that a child process of
// TestMessage_StepsOfHostileTexts renders.
const stepsOf = "AGENTSITE_TEST_MARKUP_STEPS"

// TestMessage_StepsOfHostileTexts bounds the work of rendering hostile texts,
// most of which is done by goldmark. Steps are the statements that are executed,
// as the coverage tool counts them: their number does not depend on the machine.
func TestMessage_StepsOfHostileTexts(t *testing.T) {
	if name := os.Getenv(stepsOf); name != "" {
		r := New()
		for _, size := range []int{maxSource / 4, maxSource / 2, maxSource, 4 * maxSource} {
			r.renderMarkdown(repeated(name, size))
		}
		return
	}
	if os.Getenv("AGENTSITE_TEST_FULL") == "" {
		t.Skip("set AGENTSITE_TEST_FULL=1 to count the statements that goldmark executes")
	}
	racetest.Skip(t)
	bars := map[string]int{"link paragraphs": 80_000_000}
	dir := t.TempDir()
	counting, profile := filepath.Join(dir, "counting.test"), filepath.Join(dir, "profile")
	packages := "agentsite/handlers/markup,github.com/yuin/goldmark/...,github.com/microcosm-cc/bluemonday/..."
	build := exec.Command("go", "test", "-c", "-covermode=count", "-coverpkg="+packages, "-o", counting, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		child := exec.Command(counting, "-test.run=^TestMessage_StepsOfHostileTexts$", "-test.coverprofile="+profile)
		child.Env = append(os.Environ(), stepsOf+"="+name)
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		b, err := os.ReadFile(profile)
		if err != nil {
			t.Fatal(err)
		}
		steps := 0
		for line := range strings.Lines(string(b)) {
			// A line ends with the statements of a block and the times it was executed.
			var statements, times int
			if f := strings.Fields(line); len(f) == 3 {
				statements, _ = strconv.Atoi(f[1])
				times, _ = strconv.Atoi(f[2])
			}
			steps += statements * times
		}
		t.Logf("%s: %d steps", name, steps)
		if bar := cmp.Or(bars[name], 20_000_000); steps == 0 || steps > bar {
			t.Errorf("%s takes %d steps, want at most %d", name, steps, bar)
		}
	}
}

func TestMessage_IsRenderedOnce(t *testing.T) {
	r := New()
	a := r.Message("**a**")
	if r.texts.order.Len() != 1 || r.Message("**a**") != a || r.texts.order.Len() != 1 {
		t.Error("the same text is kept twice or not at all")
	}
}

func TestCache_StaysWithinItsBytes(t *testing.T) {
	c := NewCache[int](10_000)
	for i := range 1000 {
		c.Put(i, strings.Repeat("x", i%700))
		if c.size > 10_000 {
			t.Fatalf("holds %d bytes", c.size)
		}
		c.Get(i - 3)
	}
	if _, ok := c.Get(999); !ok {
		t.Error("the newest is gone")
	}
	if _, ok := c.Get(0); ok {
		t.Error("the oldest is still there")
	}
	c.Put(1, strings.Repeat("x", 9_000))
	if _, ok := c.Get(1); ok {
		t.Error("one entry took the room of all")
	}
	size := 0
	for e := c.order.Front(); e != nil; e = e.Next() {
		size += len(e.Value.(*cached[int]).html) + entryBytes
	}
	if size != c.size {
		t.Errorf("counts %d bytes, holds %d", c.size, size)
	}
}

func TestLine_IsTheFirstSentence(t *testing.T) {
	for source, want := range map[string]string{
		"Reads **invoices**. Also more.":  "Reads invoices.",
		"# Title\n\nText":                 "Title",
		"One two\nthree! Four":            "One two three!",
		"v1.2 is out":                     "v1.2 is out",
		"":                                "",
		"日本語。次":                           "日本語。",
		"![cat](https://e.example/x) ok":  "cat ok",
		"`a < b` & c":                     "a < b & c",
		"- first\n- second":               "first second",
		strings.Repeat("word ", 100):      strings.TrimSpace(strings.Repeat("word ", 40)[:199]) + "…",
		"\u202Eevil. More":                "evil.",
		strings.Repeat("> ", 20) + "deep": strings.TrimSpace(strings.Repeat("> ", 20) + "deep"),
	} {
		if got := New().Line(source); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}

func TestDoc_HasAnAnchorForEverySection(t *testing.T) {
	r := New()
	for _, p := range docs.Pages() {
		h := string(r.Doc(p.Source))
		if strings.Contains(h, "<h1") {
			t.Errorf("%s: its own title is left in", p.Stem)
		}
		if strings.Contains(h, "omitted") {
			t.Errorf("%s: holds raw HTML", p.Stem)
		}
		for _, s := range docs.Sections() {
			if s.Page == p.Stem && s.Title != p.Title && !strings.Contains(h, fmt.Sprintf("id=%q", s.Anchor)) {
				t.Errorf("%s: no id %q", p.Stem, s.Anchor)
			}
		}
		for _, place := range r.Headings(p.Source) {
			if !strings.Contains(h, fmt.Sprintf("id=%q", place.ID)) {
				t.Errorf("%s: the list of headings names %q, which is nowhere", p.Stem, place.ID)
			}
		}
	}
}
