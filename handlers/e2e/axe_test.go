package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/wasmtest"
)

// needAxe is the source of axe-core, a checker of accessibility, which
// AGENTSITE_TEST_AXE names. It skips the test where there is none.
func needAxe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("AGENTSITE_TEST_AXE")
	if path == "" {
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "axe") {
			t.Fatal("AGENTSITE_TEST_AXE names no axe.min.js")
		}
		t.Skip("AGENTSITE_TEST_AXE names no axe.min.js (npm pack axe-core has it)")
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// axeRun has axe look at the page; what it finds, with the elements it means,
// stands in window.__axe after that.
const axeRun = `(window.__axe = null, axe.run(document, { resultTypes: ["violations"], runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] } })
	.then((r) => r.violations.map((v) => v.id + " (" + v.impact + "): " + v.help + v.nodes.slice(0, 4).map((n) =>
		"\n\t" + n.html.slice(0, 160) + "\n\t\t" + n.any.concat(n.all, n.none).map((c) => c.message).join("; ").slice(0, 300)).join("") + (v.nodes.length > 4 ? "\n\tand " + (v.nodes.length - 4) + " more" : "")), (err) => ["axe: " + err])
	.then((found) => { window.__axe = found; }), true)`

// axeScreens are what pages are checked on.
var axeScreens = []screen{{width: 1280, height: 900}, {width: 390, height: 844, phone: true}}

// axed is a tab whose every page holds axe from its beginning. The browser
// puts it there, so the page's own policy stays as it is.
func (b *tab) axed(source string) *tab {
	b.t.Helper()
	command(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: source})
	return b
}

// axe checks the page at every size, light and dark. prepare, when there is
// one, brings the page into the state to be checked at each size.
func (b *tab) axe(name string, prepare func()) {
	b.t.Helper()
	for _, s := range axeScreens {
		b.resize(s)
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			if prepare != nil {
				prepare()
			}
			eval[bool](b, axeRun)
			b.until("what axe finds", "window.__axe")
			for _, f := range eval[[]string](b, "window.__axe") {
				b.t.Errorf("%s at %d, %s: %s", name, s.width, scheme, f)
			}
		}
	}
	b.resize(desk)
	b.scheme("light")
}

// checked is a tab in which axeHere runs axe, if AGENTSITE_TEST_AXE names it.
func (b *tab) checked() *tab {
	b.t.Helper()
	if path := os.Getenv("AGENTSITE_TEST_AXE"); path != "" && b.screen.scripts {
		source, err := os.ReadFile(path)
		if err != nil {
			b.t.Fatal(err)
		}
		return b.axed(string(source))
	}
	return b
}

// axeHere checks the page as it is, light and dark, in a tab that is checked.
func (b *tab) axeHere(name string) {
	b.t.Helper()
	if !b.screen.scripts || !eval[bool](b, `Boolean(window.axe)`) {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		eval[bool](b, axeRun)
		b.until("what axe finds", "window.__axe")
		for _, f := range eval[[]string](b, "window.__axe") {
			b.t.Errorf("%s at %d, %s: %s", name, b.screen.width, scheme, f)
		}
	}
	b.scheme("light")
}

// TestAxe has axe look at the main pages: what it finds is a failure.
func TestAxe(t *testing.T) {
	onlyDrawn(t)
	source := needAxe(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	far, sea := newModel(t), newModel(t)
	far.answers(func(string) []string { return strings.SplitAfter(report, " ") })
	sea.answers(func(string) []string { return []string{"High water is at 04:12 and 16:38."} })
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	register(ada, agents(far.base())[0])
	register(ada, agents(sea.base())[1])
	room, asked := axeRoom(t, ada, bob)
	path := "/chat/" + room
	var join, read struct{ URL string }
	ada.Get(http.MethodPost, "/api/v1/conversations/"+room+"/links", map[string]any{"kind": "join", "role": "member"}, http.StatusCreated, &join)
	ada.Get(http.MethodPost, "/api/v1/conversations/"+room+"/links", map[string]any{"kind": "read"}, http.StatusCreated, &read)
	at := func(link string) string {
		u, err := url.Parse(link)
		if err != nil || u.Path == "" {
			t.Fatalf("the link is %q", link)
		}
		return u.Path
	}

	t.Run("strangers", func(t *testing.T) {
		t.Parallel()
		g := visit(t, root, p, desk).axed(source)
		g.allow("400 (Bad Request)", "404 (Not Found)")
		for _, x := range []struct{ name, path string }{
			{"home", "/"}, {"agents", "/agents"}, {"found", "/agents?q=invoices"}, {"nothing", "/agents?q=xylophone"}, {"profile", "/agents/invoice-reader"},
			{"login", "/login"}, {"signup", "/signup"}, {"no chats", "/chat"}, {"shared", at(read.URL)}, {"docs", "/docs"}, {"docs of chat", "/docs/talk"}, {"lost", "/agents/nobody-at-all"},
			{"ask", "/chat/new?agent=invoice-reader&text=Hello"}, {"ways to use it", "/agents/invoice-reader#use-openai"},
		} {
			g.open(x.path)
			g.axe(x.name, nil)
		}
		g.open("/agents/invoice-reader")
		g.axe("share", func() { eval[bool](g, `document.querySelector(".hand-on").open = true`) })
		g.clean("pages for strangers")
	})
	t.Run("people", func(t *testing.T) {
		t.Parallel()
		a := visit(t, root, p, desk).as(ada.With(t)).axed(source)
		a.allow("400 (Bad Request)")
		for _, x := range []struct{ name, path string }{
			{"register", "/agents/new"}, {"register instructions", "/agents/new?kind=prompt"}, {"register a model", "/agents/new?kind=openai"}, {"connect a program", "/agents/new/program"}, {"edit", "/agents/invoice-reader/edit"}, {"own profile", "/agents/invoice-reader"}, {"manage", "/agents/invoice-reader/owner"}, {"chats", "/chat"}, {"search in chats", "/chat?q=harbour"},
			{"settings of a room", path + "/settings"}, {"a message", path + "/m/" + asked}, {"account", "/account"}, {"webhooks", "/account/webhooks"},
		} {
			a.open(x.path)
			a.axe(x.name, nil)
		}
		a.allow("409 (Conflict)")
		a.form("openai")
		a.fill("#name", "calc")
		a.fill("#description", "Mine.")
		a.fill("#endpoint", "http://example.org")
		a.press(`button[name="save"]`)
		a.axe("register with mistakes", nil)
		c := visit(t, root, p, desk).as(p.User(t, "cyd")).axed(source)
		c.open(at(join.URL))
		c.axe("join", nil)
		a.clean("pages for people")
	})
	t.Run("packages", func(t *testing.T) {
		t.Parallel()
		rob := p.Operator(t, "rob")
		token := rob.NewToken()
		var m struct{ Hash string }
		token.Get(http.MethodPost, "/api/v1/hosting/modules", bytes.NewReader(wasmtest.Says("Hello.").Bytes()),
			http.StatusCreated, &m)
		token.Must(http.MethodPost, "/api/v1/packages", map[string]any{"name": "hello", "version": "1.0.0",
			"summary": "Says hello.", "licence": "MIT", "module": m.Hash, "readme": "# Hello\n\nIt says hello.",
			"grants": []map[string]string{{"name": "find", "why": "It looks for others."}}}, http.StatusCreated)
		token.Must(http.MethodPut, "/api/v1/hosting/kills/"+strings.Repeat("ab", 32), map[string]any{"reason": "Spam."},
			http.StatusOK)
		a := visit(t, root, p, desk).as(rob).axed(source)
		for _, x := range []struct{ name, path string }{
			{"packages", "/packages"}, {"publish", "/packages/new"}, {"package", "/packages/hello"}, {"hosting", "/admin/hosting"},
			{"overview", "/admin"}, {"first page", "/admin/welcome"}, {"settings", "/admin/settings"}, {"people", "/admin/people"},
			{"invites", "/admin/invites"}, {"agents of the portal", "/admin/agents"}, {"storage", "/admin/storage"},
			{"reports", "/admin/reports"}, {"queue", "/admin/queue"}, {"portals", "/admin/peers"},
			{"person", "/people/rob"}, {"library", "/library"}, {"models", "/account/models"}, {"usage", "/account/usage"},
		} {
			a.open(x.path)
			a.axe(x.name, nil)
		}
		a.open("/packages/hello")
		a.fill("#name", "greeter")
		a.click(`label[for="grant-find"]`)
		a.press(`form.card button`)
		a.until("the page of the agent", `location.pathname == "/agents/greeter" && document.querySelector('a[href="/packages/hello"]')`)
		a.axe("agent of a package", nil)
		a.clean("pages of packages")
	})
	t.Run("room", func(t *testing.T) {
		t.Parallel()
		a := visit(t, root, p, desk).as(ada.With(t)).axed(source)
		a.allow("404 (Not Found)")
		a.enterRoom(room)
		a.axe("room", nil)
		a.axe("room, menu of a message", func() {
			eval[bool](a, `[...document.querySelectorAll("[data-messages] [data-actions]")].at(-1).open = true`)
		})
		a.enterRoom(room)
		a.axe("room, side", func() { eval[bool](a, `document.querySelector("[data-side]").open = true`) })
		a.axe("room, menu of a member", func() {
			eval[bool](a, `document.querySelector("[data-side]").open = document.querySelector("[data-member] [data-menu]").open = true`)
		})
		a.enterRoom(room)
		a.axe("room, palette", func() {
			eval[bool](a, `(document.querySelector("[data-palette]").open || document.querySelector("[data-palette-open]").click(), true)`)
		})
		a.enterRoom(room)
		a.axe("room, keys", func() {
			eval[bool](a, `(document.querySelector("[data-shortcuts]").open || document.querySelector("[data-shortcuts-open]").click(), true)`)
		})
		a.enterRoom(room)
		a.fill("#text", "@")
		a.until("the names", `!document.querySelector("[data-mentions]").hidden`)
		a.axe("room, names to mention", nil)
		a.open(path + "?reply=" + asked + "#composer")
		a.axe("room, replying", nil)
		a.open(path + "?at=" + asked)
		a.axe("room, middle", nil)
		sea.answers(nil)
		a.enterRoom(room)
		a.send("@tide-tables and tomorrow?")
		<-sea.asked
		sea.pieces <- "Tomorrow it is "
		a.streaming("Tomorrow it is")
		a.axe("room, streaming", nil)
		a.stops()
		<-sea.stopped
		a.answered("Stopped before it was finished.")
		a.axe("room, stopped", nil)
		a.clean("a room")
	})
}

// axeRoom is a conversation with all that messages can show, and the seq of
// its question.
func axeRoom(t *testing.T, ada, bob *apptest.Client) (id, asked string) {
	t.Helper()
	id = ada.Conversation("invoice-reader", "tide-tables", "guide", "bob")
	path := "/chat/" + id
	stream := ada.Socket(id)
	defer stream.Close()
	told := url.Values{"told": {"invoice-reader", "tide-tables"}, "share": {"all"}}
	say := func(c *apptest.Client, text, key string, files map[string][]byte) apptest.Event {
		t.Helper()
		in := url.Values{"text": {text}, "client_id": {key}, "told": told["told"], "share": told["share"]}
		if a := posts(t, c, path, in, files); a.Status >= 400 {
			t.Fatalf("%q answered %d: %.300s", text, a.Status, a.Body)
		}
		return stream.Wait(text, func(e apptest.Event) bool { return e.Type == "message" && strings.Contains(e.Plain(), text) })
	}
	act := func(c *apptest.Client, to string, in url.Values) {
		t.Helper()
		if a := c.Do(http.MethodPost, path+to, in); a.Status >= 400 {
			t.Fatalf("%s answered %d: %.300s", to, a.Status, a.Body)
		}
	}
	say(ada, "Here is the plan of the harbour.", "x1", map[string][]byte{"harbour.png": gradient(t), "moorings.csv": []byte("no,boat\n1,Luise\n")})
	q := say(ada, "@invoice-reader which of these are overdue?", "x2", nil)
	asked = fmt.Sprint(q.Seq)
	answer := func(text string) apptest.Event {
		return stream.Wait(text, func(e apptest.Event) bool {
			return e.Type == "message" && e.Sender.Kind == "agent" && strings.Contains(e.Plain(), text)
		})
	}
	answer("overdue")
	say(bob, "Thanks. @tide-tables when is high water?", "y1", nil)
	tide := answer("High water")
	there := say(bob, "I will be there.", "y2", nil)
	gone := say(bob, "Or not.", "y3", nil)
	act(ada, fmt.Sprintf("/m/%d/react", there.Seq), url.Values{"emoji": {"👍"}})
	act(bob, fmt.Sprintf("/m/%d/edit", there.Seq), url.Values{"text": {"I will be there **at four**."}, "client_id": {"y4"}})
	act(bob, fmt.Sprintf("/m/%d/unsay", gone.Seq), nil)
	act(bob, fmt.Sprintf("/m/%d/again", tide.Seq), nil)
	stream.Wait("another answer", func(e apptest.Event) bool {
		return e.Type == "message" && e.Sender.Kind == "agent" && e.Seq > tide.Seq && e.Kind == "text"
	})
	act(ada, "", url.Values{"text": {"Then we meet at four."}, "reply_to": {fmt.Sprint(tide.Seq)}, "client_id": {"x5"}})
	return id, asked
}
