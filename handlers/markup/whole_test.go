package markup

import (
	"html"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	xhtml "golang.org/x/net/html"
)

// shownText returns the text of rendered HTML with line breaks, and the attributes in which words of the source
// may stand.
func shownText(t testing.TB, fragment string) (words, attributes string) {
	t.Helper()
	var text, attrs strings.Builder
	var visit func(n *xhtml.Node)
	visit = func(n *xhtml.Node) {
		if n.Type == xhtml.TextNode {
			text.WriteString(n.Data)
		}
		if n.Data == "br" {
			text.WriteByte('\n')
		}
		for _, a := range n.Attr {
			if a.Key != "rel" && a.Key != "class" && a.Key != "dir" {
				attrs.WriteString(" " + a.Val)
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			visit(c)
		}
	}
	for _, n := range parse(t, fragment) {
		visit(n)
	}
	return text.String(), attrs.String()
}

func TestMessage_KeepsEverySign(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"a single tilde", "约 3~5 天，价格 100~200 元", "约 3~5 天，价格 100~200 元"},
		{"a tilde of a home", "~/a and ~/b", "~/a and ~/b"},
		{"three tildes in a line", "a ~~~ b ~~~ c", "a ~~~ b ~~~ c"},
		{"a product", "2*3*4 and 2**3**4, x*2*y", "2*3*4 and 2**3**4, x*2*y"},
		{"a power", "x**2 + y**2", "x**2 + y**2"},
		{"a log", "Log:\n\n[INFO]: started\n[WARN]: slow\n[ERROR]: timeout", "[INFO]: started\n[WARN]: slow\n[ERROR]: timeout"},
		{"a log of two words", "[INFO]: started\n[WARN]: slow disk", "[WARN]: slow disk"},
		{"a footnote", "Water.[^1]\n\n[^1]: Smith2020", "[^1]: Smith2020"},
		{"the mark of a footnote", "Water.[^1]\n\n[^1]: Smith2020", "Water.[^1]"},
		{"a second definition", "[a]\n\n[a]: https://a.example\n[a]: https://b.example", "[a]: https://b.example"},
		{"a definition with a title", "[a]: /x \"over\nit\"", "[a]: /x \"over\nit\""},
		{"a definition in a quote", "> [a]: b", "[a]: b"},
		{"a Windows path", `in C:\Users\allan\.ssh\_keys\id please`, `C:\Users\allan\.ssh\_keys\id`},
		{"a path of signs alone", `C:\.ssh and D:\_x`, `C:\.ssh and D:\_x`},
		{"a path with underscores", `C:\x\__init__.py`, `C:\x\__init__.py`},
		{"a bold path", `**C:\a\.b\_c**`, `C:\a\.b\_c`},
		{"a path in brackets", `(C:\a\.b)`, `(C:\a\.b)`},
		{"a path with spaces", `C:\Program Files\.ssh\_x`, `C:\Program Files\.ssh\_x`},
		{"a pattern of names", `del C:\tmp\*.log`, `C:\tmp\*.log`},
		{"a path at the end of a line", "C:\\dir\\\nnext", "C:\\dir\\\nnext"},
		{"a drive at the end of a line", "Directory of C:\\\nnext", "C:\\\nnext"},
		{"a UNC path", `open \\server\share\#1\a.txt`, `\\server\share\#1\a.txt`},
		{"a UNC path of signs", `\\server\.hidden`, `\\server\.hidden`},
		{"a device", `\\?\C:\x and \\.\pipe\x`, `\\?\C:\x and \\.\pipe\x`},
		{"a relative path", `.\.venv\Scripts and ..\_x`, `.\.venv\Scripts and ..\_x`},
		{"a variable", `%APPDATA%\.x\_y`, `%APPDATA%\.x\_y`},
		{"a path behind letters", `见C:\.ssh\_x`, `见C:\.ssh\_x`},
		{"a regular expression", `match \d+\.\d+ there`, `\d+\.\d+`},
		{"a shell's line", "docker run \\\n  -p 80", "docker run \\\n"},
		{"an escape", `2 \* 3 and \_x\_ and snake\_case`, "2 * 3 and _x_ and snake_case"},
		{"a template", "map<std::string, int> and map<std::string>", "map<std::string>"},
		{"a tag", "use <div> and <br>", "<div> and <br>"},
		{"a refused link", `[the file](C:\x.txt)`, `the file (C:\x.txt)`},
		{"a relative link", "[the file](./x.txt)", "the file (./x.txt)"},
		{"a link without words", "[](https://a.example/x)", "https://a.example/x"},
		{"more cells than columns", "| a | b |\n|---|---|\n| 1 | 2 | 3 | 4 |", "2 | 3 | 4"},
		{"a break in a cell", "| a |\n|---|\n| one<br>two<BR />three |", "one\ntwo\nthree"},
		{"words behind a fence", "```python title=app.py\nx\n```", "title=app.py"},
		{"a fence that is a sentence", "```this is it\nx\n```", "is it"},
		{"a path in parentheses", `C:\Program Files (x86)\.a\_b`, `C:\Program Files (x86)\.a\_b`},
		{"two settings", `path=C:\_a;D:\_b`, `path=C:\_a;D:\_b`},
		{"a path with brackets", `C:\[a]\_b`, `C:\[a]\_b`},
		{"a path of many words", `D:\a b c d e\_x`, `D:\a b c d e\_x`},
		{"a server of IPv6", `\\[fe80::1]\_x`, `\\[fe80::1]\_x`},
		{"a shell's expression", `sed 's/\./\//g'`, `sed 's/\./\//g'`},
		{"an expression of signs", `grep '\.\-\+\?' a`, `grep '\.\-\+\?' a`},
		{"an expression behind bold", `**x** \/ and \:`, `x \/ and \:`},
		{"amounts", `cost: $5-$10 \$7 $$`, `cost: $5-$10 $7 $$`},
		{"escapes that are needed", "\\# a\n\n\\- b\n\n1\\. c\n\n\\*d\\* \\[e](f) \\![g](/docs/h)", "# a\n- b\n1. c\n*d* [e](f) !g"},
		{"lines", "a\nb\r\nc\rd", "a\n"},
		{"a lone carriage return", "10 %\r20 %", "10 %\n\n20 %"},
		{"a separator of lines", "a\u2028b", "a\n\nb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := string(New().Message(c.source))
			if got, _ := shownText(t, h); !strings.Contains(strings.ReplaceAll(got, "\n\n", "\n"), strings.ReplaceAll(c.want, "\n\n", "\n")) {
				t.Errorf("%q is shown as %q without %q:\n%s", c.source, got, c.want, h)
			}
		})
	}
}

func TestMessage_ReadsWhatIsMeant(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"含**「重点」**内容", "<strong>「重点」</strong>"},
		{"**不变。**源码", "<strong>不变。</strong>"},
		{"他说**“重点”**了", "<strong>“重点”</strong>"},
		{"これは**（注）**です", "<strong>（注）</strong>"},
		{"**중요:**입니다", "<strong>중요:</strong>"},
		{"**หมายเหตุ:**ข้อความ", "<strong>หมายเหตุ:</strong>"},
		{"**ملاحظة:**نص", "<strong>ملاحظة:</strong>"},
		{"是*（斜）*的", "<em>（斜）</em>"},
		{"是~~（删）~~的", "<del>（删）</del>"},
		{"价格~~100~~元", "<del>100</del>"},
		{"a ** b ** c", "<p>a ** b ** c</p>"},
		{"*a*b**c**", "<em>a</em>b<strong>c</strong>"},
		{"un*frigging*believable", "un<em>frigging</em>believable"},
		{"读https://example.com/issues/48，然后", `<a href="https://example.com/issues/48"`},
		{"见：https://example.com/a。", `<a href="https://example.com/a"`},
		{"（https://example.com/a）", `<a href="https://example.com/a"`},
		{"「https://example.com/a」", `<a href="https://example.com/a"`},
		{"で http://localhost:8080/x です", `http://localhost:8080/x`},
		{"見てhttp://localhost:8080/xです", `<a href="http://localhost:8080/x"`},
		{"看www.example.com/x吧", `<a href="http://www.example.com/x"`},
		{"联系a.b@example.com谢谢", `<a href="mailto:a.b@example.com"`},
		{"see https://de.wikipedia.org/wiki/Köln.", `<a href="https://de.wikipedia.org/wiki/K%C3%B6ln"`},
		{"https://ru.wikipedia.org/wiki/Москва, да", `href="https://ru.wikipedia.org/wiki/%D0%9C%D0%BE%D1%81%D0%BA%D0%B2%D0%B0"`},
		{"https://example.com/?q=naïve&x=1", `href="https://example.com/?q=na%C3%AFve&amp;x=1"`},
		{"https://example.com/路径/文件。", `href="https://example.com/%E8%B7%AF%E5%BE%84/%E6%96%87%E4%BB%B6"`},
		{"http://bücher.example/x", `<a href="http://xn--bcher-kva.example/x"`},
		{"[a](http://bücher.example/ö)", `<a href="http://xn--bcher-kva.example/%C3%B6"`},
		{"<https://bücher.example/>", `<a href="https://xn--bcher-kva.example/"`},
		{"(https://агенты.рф/а)", `<a href="https://xn--80agg6aza8c.xn--p1ai/%D0%B0"`},
		{"https://例え.jp/あ", `<a href="https://xn--r8jz45g.jp/%E3%81%82"`},
		{"打开 https://example.com查看", `<a href="https://example.com"`},
		{"读https://example.com/issues/48然后", `<a href="https://example.com/issues/48"`},
		{"看https://example.com/straße吧", `<a href="https://example.com/stra%C3%9Fe"`},
		{"https://en.wikipedia.org/wiki/Curie–Weiss_law – good", `<a href="https://en.wikipedia.org/wiki/Curie%E2%80%93Weiss_law"`},
		{"读https://bücher.example/x", `读<a href="https://xn--bcher-kva.example/x"`},
		{"読https://例え.jp/x。", `<a href="https://xn--r8jz45g.jp/x"`},
		{"看https://例子.com吧", `<a href="https://xn--fsqu00a.com"`},
		{"看https://例子.com:8080/x吧", `<a href="https://xn--fsqu00a.com:8080/x"`},
		{"看https://例子.中国吧", `<a href="https://xn--fsqu00a.xn--fiqs8s"`},
		{"看https://example.中国/x吧", `<a href="https://example.xn--fiqs8s/x"`},
		{"看https://example.公司。", `<a href="https://example.xn--55qx5d"`},
		{"看www.例子.中国/x吧", `<a href="http://www.xn--fsqu00a.xn--fiqs8s/x"`},
		{"看https://пример.рф吧", `<a href="https://xn--e1afmkfd.xn--p1ai"`},
		{"打开https://example.com然后看b.txt", `<a href="https://example.com"`},
		{"打开https://example.com.cn查看", `<a href="https://example.com.cn"`},
		{"看https://localhost:8080/x吧", `<a href="https://localhost:8080/x"`},
		{"见https://例子.我爱你！", `<a href="https://xn--fsqu00a.xn--6qq986b3xl"`},
		{"보기https://예시.한국에서", `<a href="https://xn--vv4b11d.xn--3e0b707e"`},
		{"看https://例子.未知。", `<p>看https://例子.未知。</p>`},
		{"www.bücher.example/é!", `<a href="http://www.xn--bcher-kva.example/%C3%A9"`},
		{"https://hi.wikipedia.org/wiki/हिन्दी", `href="https://hi.wikipedia.org/wiki/%E0%A4%B9%E0%A4%BF%E0%A4%A8%E0%A5%8D%E0%A4%A6%E0%A5%80"`},
		{"url=https://example.com/é.", `<a href="https://example.com/%C3%A9"`},
		{"url=https://example.com/a.", `<a href="https://example.com/a"`},
		{"看[页](https://example.com/a)", `<a href="https://example.com/a"`},
		{"see [the page][1]\n\n[1]: https://example.com/p", `href="https://example.com/p"`},
		{"[x](https://example.com \"over\")", `title="over"`},
		{"[^1]: https://example.com/p", `href="https://example.com/p"`},
		{"1. a\n3. b\n7. c", `<li value="7">`},
		{"1. a\n2. b", "<ol dir=\"auto\">\n<li>a</li>\n<li>b</li>"},
		{"1. a\n1. b", `<li value="1">b`},
		{`**C:\a\.b**`, `<strong>C:\a\.b</strong>`},
		{`so \(\alpha\) is`, `<p>so <math><semantics><mrow><mi>α</mi></mrow>`},
		{"| a | b |\n|---|---|\n| 1 | 2 |", "<td>2</td>"},
		{"a\\\nb", "<p>a<br>\nb</p>"},
	} {
		if got := string(New().Message(c.source)); !strings.Contains(got, c.want) {
			t.Errorf("%q became\n%s\nwithout %s", c.source, got, c.want)
		}
	}
}

// markdownPieces are the parts of which random Markdown is made. Its markup has no letter and no digit, so that those of
// the source and of the page must be the same.
var markdownPieces = strings.Split(" |  |\n|\n\n|\n    |\n- |\n* |\n+ |\n> |\n# |\n### |\n---\n|\n===\n|\n```\n|\n~~~\n|*|**|***|_|__|~|~~|`|``|[|](|](/docs/|)|]|][|]: |[^|!|![|<|>|\\|\\\\|:|://|https://|www.|@|.|.example|$|$$|\\(|\\)|\\[|\\]|\"|'|(|#|;|"+
	"alpha|Beta|c|7|42|重点|「|」|。|，|注意|テスト|중요|ไทย|نص|C:\\|\\\\srv|%X%\\|été|—|“|”|😀|-|+|=|/|?|{|}|%|^", "|")

// tablePieces are further parts, which need a bar.
var tablePieces = []string{"|", " | ", "\n|---|---|\n", "\n| a | b |\n|---|---|\n| ", "\\|"}

func randomMarkdown(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(24) {
		if r.IntN(8) == 0 {
			b.WriteString(tablePieces[r.IntN(len(tablePieces))])
		} else {
			b.WriteString(markdownPieces[r.IntN(len(markdownPieces))])
		}
	}
	return b.String()
}

// markupSigns are the signs that Markdown may take as its own.
const markupSigns = "*_~`#>-+=|[]()!\\<:&;^."

// plainPieces are words with signs that are no markup where they stand. The last ones need a line that begins with a
// path.
var (
	plainPieces = strings.Fields(`a:b "quoted" it's 'q' $5 $7.50 ~3 ~/x .5 ... x_y_z 2*3*4 a|b 50% C:\_a D:\[b]\.c path=C:\_x;D:\_y ` +
		`\\srv\_share \\[fe80::1]\_x (x86)\.a s/\./\//g \d+\.\d+ a\.b \- k="v" :: == -> (a) [b] {c} #5 1.2.3 a~b~c US$5 重点：“x” ~5天`)
	pathPieces = strings.Fields(`\_x \*.log a\_b\_c [a]\_b \.\*\.x \[x] x\|y`)
)

// A text of plain words with signs is shown as it is, sign for sign.
func TestMessage_ShowsPlainSigns(t *testing.T) {
	r, random := New(), rand.New(rand.NewPCG(25, 13))
	for range 5000 {
		words, from := []string{"so"}, plainPieces
		if random.IntN(2) == 0 {
			words, from = []string{`C:\x`}, append(slices.Clone(plainPieces), pathPieces...)
		}
		for range 1 + random.IntN(6) {
			words = append(words, from[random.IntN(len(from))])
		}
		source := strings.Join(words, " ")
		h := string(r.Message(source))
		if got, _ := shownText(t, h); strings.TrimSpace(got) != source {
			t.Fatalf("%s\nis shown as\n%s\n%s", source, got, h)
		}
	}
}

// reference matches the label of a link to a definition, which is markup.
var reference = regexp.MustCompile(`(?s)\[[^\]]*\]:?`)

// missingSigns returns the letters, digits and signs of source that are not in its HTML.
func missingSigns(t testing.TB, source, fragment string) string {
	words, attributes := shownText(t, fragment)
	have := make(map[rune]int)
	shown := words + attributes
	if strings.Contains(attributes, "%") {
		shown += percent.ReplaceAllStringFunc(attributes, unescapePercent)
	}
	for _, c := range strings.ToLower(shown) {
		have[c]++
	}
	var missing []rune
	for _, c := range strings.ToLower(html.UnescapeString(Clean(source))) {
		if unicode.IsSpace(c) || !unicode.IsPrint(c) || strings.ContainsRune(markupSigns, c) {
			continue
		}
		if have[c]--; have[c] < 0 {
			missing = append(missing, c)
		}
	}
	return string(missing)
}

var percent = regexp.MustCompile(`(%[0-9A-Fa-f]{2})+`)

func unescapePercent(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

func TestMessage_KeepsEverySignOfRandomTexts(t *testing.T) {
	r, n := New(), 20_000
	if testing.Short() {
		n = 2000
	}
	random := rand.New(rand.NewPCG(25, 2))
	for range n {
		source := randomMarkdown(random)
		if usesReference(source) {
			continue
		}
		h := string(r.Message(source))
		if missing := missingSigns(t, source, h); missing != "" {
			t.Fatalf("%q lost %q:\n%s", source, missing, h)
		}
		check(t, source, h)
	}
}

// usesReference reports whether a definition may be used, whose label and address then are markup.
func usesReference(source string) bool {
	return strings.Contains(source, "]:") && len(reference.FindAllString(source, -1)) > 1
}

func FuzzMessage_KeepsEverySign(f *testing.F) {
	f.Add("[a]: b **「x」**y C:\\_x ~1~")
	f.Fuzz(func(t *testing.T, source string) {
		// Entities, numbers of lists and marks of tasks are markup with letters and digits.
		if len(source) > 2000 || usesReference(source) || strings.ContainsAny(source, "&\x00") ||
			regexp.MustCompile(`(?i)<br|[0-9][.)]|\[x\]`).MatchString(source) {
			t.Skip()
		}
		h := string(New().Message(source))
		if missing := missingSigns(t, source, h); missing != "" {
			t.Fatalf("%q lost %q:\n%s", source, missing, h)
		}
	})
}
