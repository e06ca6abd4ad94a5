package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// foreignSite is a page of somebody else that shows an address in a frame. It
// answers for 127.0.0.1, which is the portal's own site at another port, and
// for localhost, which is another site.
func foreignSite(t *testing.T, frame string) (same, other string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!DOCTYPE html><html lang="en"><title>A shop</title><body style="margin:0"><iframe src="%s" title="Chat" style="border:0;width:100vw;height:100vh"></iframe>`, frame)
	}))
	t.Cleanup(s.Close)
	return s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
}

// sites lets an agent be shown by these.
func sites(c *apptest.Client, agent string, list ...string) {
	c.Must(http.MethodPatch, "/api/v1/agents/"+agent, map[string]any{"embed_origins": append([]string{}, list...)}, http.StatusOK)
}

// frame is what a page of another site shows in a frame: a part of the page for
// some browsers, and for those that keep sites apart a target of its own.
type frame struct {
	b       *tab
	address *url.URL

	mu   sync.Mutex // guards part
	part string     // the frame's context in the page
	own  *tab       // the frame as a target
}

// shows opens a page of another site and returns its frame.
func (b *tab) shows(address string) *frame {
	b.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.allow("request elsewhere: "+u.Scheme+"://"+u.Host, "request elsewhere: "+b.base)
	f := &frame{b: b, address: u}
	if err := chromedp.Listen(b.ctx, func(ev any) {
		if c, ok := ev.(*runtime.EventExecutionContextCreated); ok && c.Context.Name == "" && c.Context.Origin == u.Scheme+"://"+u.Host {
			f.mu.Lock()
			f.part = c.Context.UniqueID
			f.mu.Unlock()
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	b.open("/")
	return f
}

// is the truth of an expression in the frame; false while there is none.
func (f *frame) is(expression string) bool {
	f.b.t.Helper()
	ctx, cancel := context.WithTimeout(f.b.ctx, patience)
	defer cancel()
	f.mu.Lock()
	part := f.part
	f.mu.Unlock()
	if part != "" {
		out, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: "Boolean(" + expression + ")", UniqueContextID: part})
		return err == nil && out.ExceptionDetails == nil && string(out.Result.Value) == "true"
	}
	if f.own == nil {
		list, err := chromedp.Targets(ctx)
		if err != nil {
			f.b.fail("look for the frame: %v", err)
		}
		for _, info := range list {
			if info.Type == "iframe" && info.URL == f.address.String() {
				own, end := chromedp.NewContext(f.b.ctx, chromedp.WithTargetID(info.TargetID))
				f.b.t.Cleanup(end)
				f.own = &tab{t: f.b.t, ctx: own, base: f.b.base, screen: f.b.screen}
				f.own.do(chromedp.Func(func(context.Context, *chromedp.Target) error { return nil }))
			}
		}
		return false
	}
	out, err := chromedp.Run(f.own.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
	return err == nil && out
}

// until waits for a condition in the frame.
func (f *frame) until(what, condition string) {
	f.b.t.Helper()
	if !eventually(func() bool { return f.is(condition) }) {
		f.b.fail("never saw %s in the frame: %s", what, condition)
	}
}

// says waits for words in the frame.
func (f *frame) says(text string) {
	f.b.t.Helper()
	f.until(fmt.Sprintf("%q", text), "document.body && document.body.innerText.includes("+js(text)+")")
}

// asking says something in the chat, as a script.
func asking(text string) string {
	return `((f) => { f.elements.text.value = ` + js(text) + `; f.requestSubmit(); return true; })(document.querySelector("[data-form]"))`
}

// asks says something in the chat of the frame.
func (f *frame) asks(text string) {
	f.b.t.Helper()
	f.until("the form", `document.querySelector("[data-form]:not([hidden])")`)
	f.is(asking(text))
}

func TestEmbed_AnotherSiteShowsTheChat(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	far := newModel(t)
	ada := p.User(t, "ada")
	register(ada, agents(far.base())[0])
	address := p.URL() + "/agents/invoice-reader/embed"
	_, other := foreignSite(t, address)
	sites(ada, "invoice-reader", other)

	b := visitAt(t, root, other, screen{width: 400, height: 600, scripts: true})
	f := b.shows(address)
	f.says("Turns photos and PDFs of invoices")
	f.says("What you write goes to")
	f.until("links that open outside", `document.querySelector("base").target === "_blank"`)
	f.asks("Which are overdue?")
	if q := <-far.asked; q != "Which are overdue?" {
		t.Errorf("the agent is asked %q", q)
	}
	far.pieces <- "Three **of"
	f.until("what came so far", `document.querySelector("[data-streamed]").textContent === "Three **of"`)
	far.pieces <- " them**."
	far.pieces <- ""
	f.until("the answer", `document.querySelector(".embed-message:last-child strong")?.textContent === "of them" && document.querySelector("[data-working]").hidden`)

	// It goes on, and Stop stops it.
	f.asks("And now?")
	<-far.asked
	far.pieces <- "One"
	f.until("what came so far", `document.querySelector("[data-streamed]").textContent === "One"`)
	f.is(`(document.querySelector("[data-stop]").click(), true)`)
	<-far.stopped
	f.says("Stopped before it was finished.")

	// A reload finds the conversation again; starting over forgets it.
	f = b.shows(address)
	f.says("of them")
	f.says("Stopped before it was finished.")
	f.until("four messages", `document.querySelectorAll(".embed-message").length === 4`)
	f.is(`(document.querySelector("[data-new]").click(), true)`)
	f.until("nothing", `document.querySelectorAll(".embed-message").length === 0 && sessionStorage.length === 1`)
	far.answers(func(s string) []string { return []string{"You said " + s} })
	f.asks("Hello again")
	f.says("You said Hello again")

	// No cookie was needed, and none was set.
	if c := command(b, network.GetCookies, network.GetCookiesParams{URLs: []string{p.URL()}}).Cookies; len(c) > 0 {
		t.Errorf("the browser has %v", c)
	}
	b.clean("another site")
}

func TestEmbed_SitesThatAreNotNamedShowNothing(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	register(ada, agents(newModel(t).base())[0])
	frame := p.URL() + "/agents/invoice-reader/embed"
	same, other := foreignSite(t, frame)
	for what, x := range map[string]struct {
		at    string
		named []string
	}{"nobody is named": {other, nil}, "another is named": {other, []string{"https://example.org", same}}, "another port is named": {same, []string{"http://127.0.0.1:1"}}} {
		sites(ada, "invoice-reader", x.named...)
		b := visitAt(t, root, x.at, desk)
		b.allow("request elsewhere: " + frame)
		b.open("/")
		// The console tells that the browser refused, or that there is no such page.
		b.until("the frame has ended loading", `document.readyState === "complete"`)
		refused := eventually(func() bool {
			return slices.ContainsFunc(b.happened(), func(problem string) bool {
				return strings.Contains(problem, "frame-ancestors") || strings.Contains(problem, "404")
			})
		})
		if !refused {
			t.Errorf("%s: the browser refuses nothing", what)
		}
	}
}

// TestEmbed_NobodyActsAsThemselves shows the frame on the portal's own site, at
// another port, where the browser sends the cookie of whoever is logged in.
func TestEmbed_NobodyActsAsThemselves(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	far := newModel(t).answers(func(s string) []string { return []string{"You said " + s} })
	ada := p.User(t, "ada")
	register(ada, agents(far.base())[0])
	ada.Must(http.MethodPatch, "/api/v1/agents/invoice-reader", map[string]any{"title": "Ada's own"}, http.StatusOK)
	address := p.URL() + "/agents/invoice-reader/embed"
	same, _ := foreignSite(t, address)
	sites(ada, "invoice-reader", same)

	bob := p.User(t, "bob-the-builder")
	b := visit(t, root, p, desk).as(bob)
	b.open("/account")
	b.says("bob-the-builder")
	f := (&tab{t: t, ctx: b.ctx, base: same, screen: b.screen}).shows(address)
	f.says("Ada's own")
	if f.is(`document.body.innerHTML.includes("bob-the-builder")`) {
		t.Error("the frame knows who is logged in")
	}
	f.asks("Hello")
	f.says("You said Hello")
	var mine struct {
		Conversations []any `json:"conversations"`
	}
	bob.Get(http.MethodGet, "/api/v1/conversations", nil, http.StatusOK, &mine)
	if len(mine.Conversations) != 0 {
		t.Errorf("it stands among his conversations: %v", mine.Conversations)
	}
	var stats struct {
		Calls []struct {
			CallerKind string `json:"caller_kind"`
			Face       string
			Own        bool
		}
	}
	ada.Get(http.MethodGet, "/api/v1/agents/invoice-reader/stats", nil, http.StatusOK, &stats)
	if len(stats.Calls) != 1 || stats.Calls[0].CallerKind != "guest" || stats.Calls[0].Face != "embed" || stats.Calls[0].Own {
		t.Errorf("the calls are %+v", stats.Calls)
	}
}

// TestEmbedLooks looks at the frame as small as it gets, with all it can show.
func TestEmbedLooks(t *testing.T) {
	onlyDrawn(t)
	source := needAxe(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	far := newModel(t)
	far.answers(func(s string) []string { return strings.SplitAfter(report, " ") })
	ada := p.User(t, "ada")
	register(ada, agents(far.base())[0])
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "club", "title": longTitle, "description": "For members.", "kind": "openai", "endpoint": far.base(), "visibility": "public",
		"config": map[string]string{"model": "story-1"}, "limits": map[string]any{"callers": "accounts"}, "embed_origins": []string{"https://example.org"}}, http.StatusCreated)
	sites(ada, "invoice-reader", "https://example.org")
	sizes := []screen{{width: 320, height: 480, scripts: true}, {width: 400, height: 600, scripts: true}}
	look := func(b *tab, name string) {
		t.Helper()
		for _, s := range sizes {
			b.resize(s)
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				if wide := eval[int](b, "document.documentElement.scrollWidth"); int64(wide) > s.width {
					t.Errorf("%s is %d wide at %d", name, wide, s.width)
				}
				if (s.width == 400) == (scheme == "dark") { // each size and each scheme once
					eval[bool](b, axeRun)
					b.until("what axe finds", "window.__axe")
					for _, found := range eval[[]string](b, "window.__axe") {
						t.Errorf("%s at %d, %s: %s", name, s.width, scheme, found)
					}
				}
				b.shot(fmt.Sprintf("%s-%d-%s", name, s.width, scheme), false)
			}
		}
		b.clean(name)
	}
	b := visit(t, root, p, desk).axed(source)
	b.open("/agents/invoice-reader/embed")
	b.has("[data-form]:not([hidden])")
	look(b, "embed-new")
	eval[bool](b, asking("Which of these invoices are overdue?"))
	b.until("the answer", `document.querySelector(".embed-message table") && document.querySelector("[data-working]").hidden`)
	look(b, "embed-answered")
	far.answers(nil)
	eval[bool](b, asking("And who wrote them?"))
	<-far.asked
	far.pieces <- "Let me look at the names on the letterheads first. "
	b.until("what came so far", `document.querySelector("[data-streamed]").textContent.startsWith("Let me")`)
	look(b, "embed-streaming")
	far.pieces <- ""
	b.open("/agents/club/embed")
	b.says("takes calls only from people with an account")
	look(b, "embed-members")
	plain := visit(t, root, p, screen{width: 320, height: 480})
	plain.open("/agents/invoice-reader/embed")
	plain.says("This chat needs JavaScript")
	plain.shot("embed-plain", false)
	plain.clean("without a script")
}

// TestShareLooks looks at how a page is handed on.
func TestShareLooks(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	far := newModel(t)
	far.answers(func(s string) []string { return []string{"You said " + s} })
	ada := p.User(t, "ada")
	register(ada, agents(far.base())[0])
	sites(ada, "invoice-reader", "https://www.example.org", "http://localhost:3000")

	g := visit(t, root, p, desk)
	g.open("/agents/invoice-reader")
	g.click(".hand-on > summary")
	g.until("the code", `((i) => i.complete && i.naturalWidth > 0)(document.querySelector(".hand-on-code img"))`)
	if got := eval[string](g, `document.querySelector(".hand-on [data-copy-source]").innerText`); got != p.URL()+"/agents/invoice-reader" {
		t.Errorf("the link is %q", got)
	}
	owner := visit(t, root, p, desk).as(ada)
	owner.open("/agents/invoice-reader")
	owner.click(".hand-on > summary")
	for who, b := range map[string]*tab{"guest": g, "owner": owner} {
		for _, s := range []screen{{width: 320, height: 640}, {width: 390, height: 844, phone: true}, desk} {
			b.resize(s)
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				if eval[bool](b, fmt.Sprintf(`((r) => r.left < 0 || r.right > %d)(document.querySelector(".hand-on-body").getBoundingClientRect())`, s.width)) {
					t.Errorf("%s at %d: it leaves the page", who, s.width)
				}
				b.shot(fmt.Sprintf("share-%s-%d-%s", who, s.width, scheme), false)
			}
		}
	}
	g.resize(desk)
	g.open("/agents/invoice-reader#uses")
	for _, id := range []string{"a2a", "mcp", "openai"} {
		g.click("#use-" + id + " > summary")
		if n := eval[int](g, `document.querySelectorAll(".use[open]").length`); n != 1 {
			t.Errorf("%d ways are open", n)
		}
	}
	g.look("uses-openai")

	// An example fills the form in, and sends nothing.
	g.open("/agents/invoice-reader")
	g.press(".talk .ask")
	g.says("has not been sent")
	g.holds("#text", "Which of these invoices are overdue?")
	g.look("new-ask")
	g.press(".say button")
	g.says("You said Which of these invoices are overdue?")

	a := visit(t, root, p, desk).as(ada)
	a.open("/agents/invoice-reader/owner#embed")
	a.fill("#embed_origins", "example.org")
	a.allow("400 (Bad Request)")
	a.press(`form[action="/agents/invoice-reader/sites"] button`)
	a.has("#embed_origins-error")
	a.holds("#embed_origins", "example.org")
	a.fill("#embed_origins", "https://www.example.org\nhttps://shop.example.org")
	a.press(`form[action="/agents/invoice-reader/sites"] button`)
	a.says("The sites that may show it are set.")
	a.look("owner-embed")
	snippet := eval[string](a, `document.querySelector("#embed [data-copy-source]").innerText`)
	src, err := url.Parse(strings.Split(snippet, `"`)[1])
	if err != nil || src.String() != p.URL()+"/agents/invoice-reader/embed" {
		t.Errorf("the frame shows %v", src)
	}
	a.fill("#embed_origins", "")
	a.press(`form[action="/agents/invoice-reader/sites"] button`)
	p.Guest(t).Must(http.MethodGet, src.Path, nil, http.StatusNotFound)
}
