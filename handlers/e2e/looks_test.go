package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// as gives the tab the session of somebody.
func (b *tab) as(c *apptest.Client) *tab {
	b.t.Helper()
	base, err := url.Parse(b.base)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, k := range c.HTTP.Jar.Cookies(base) {
		command(b, network.SetCookie, network.SetCookieParams{Name: k.Name, Value: k.Value, URL: b.base, HTTPOnly: new(true)})
	}
	return b
}

// skill is a skill as the API takes it.
type skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Examples    []string `json:"examples,omitempty"`
}

// registration is an agent of kind openai as the API takes it.
type registration struct {
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Kind        string            `json:"kind"`
	Endpoint    string            `json:"endpoint"`
	Visibility  string            `json:"visibility"`
	Config      map[string]string `json:"config"`
	Skills      []skill           `json:"skills"`
}

// register registers an agent and has it checked.
func register(c *apptest.Client, r registration) {
	r.Kind, r.Config = "openai", map[string]string{"model": "story-1"}
	if r.Visibility == "" {
		r.Visibility = "public"
	}
	c.Must(http.MethodPost, "/api/v1/agents", r, http.StatusCreated)
	c.Must(http.MethodPost, "/api/v1/agents/"+r.Name+"/check", nil, http.StatusOK)
}

// long words are what layouts break on.
const (
	longName  = "an-agent-with-the-longest-name-allowed-4"
	longTitle = "Sachverständigenhaftpflichtversicherungsgesellschaft for Donaudampfschiffe and all of that"
)

// agents are what a portal in use may list.
func agents(base string) []registration {
	one := func(name, title, text string, tags []string, skillName string, examples ...string) registration {
		return registration{Name: name, Title: title, Description: text, Endpoint: base,
			Skills: []skill{{ID: "main", Name: skillName, Description: "What it is asked most.", Tags: tags, Examples: examples}}}
	}
	return []registration{
		one("invoice-reader", "Invoice reader", "Turns photos and PDFs of invoices into a table with dates, sums and what is overdue. Reads German, English and French, and says which lines it is unsure of.", []string{"finance", "pdf", "tables"},
			"Read invoices", "Which of these invoices are overdue?", "Make a CSV of everything from May"),
		one("tide-tables", "Tide tables", "High and low water for 4,200 harbours of the world, with wind and light. Times are local.", []string{"weather", "sea"},
			"Tides", "When can I cross the bar at Brest on Sunday?"),
		one("code-review", "Second pair of eyes", "Reviews a diff as a careful colleague would: bugs first, taste last.", []string{"code", "go", "review"},
			"Review", "Review this diff for races"),
		one("lingua", "Lingua", "Translates between 40 languages and explains the choice of words.", []string{"languages", "translation"},
			"Translate", "Translate this letter to French", "What does “Feierabend” mean?"),
		one("recipe-box", "Recipe box", "Suggests what to cook from what is in the fridge. Knows allergies.", []string{"food", "home"},
			"Cook", "Dinner from leeks, eggs and old bread"),
		one("archivist", "The archivist", "Finds passages in 19th-century newspapers and gives the source for each.", []string{"history", "search"},
			"Look up", "What did papers say about the comet of 1858?"),
		one("city-bikes", "City bikes", "Free bikes and docks near you, and whether there will be one in half an hour.", []string{"transport"},
			"Bikes", "Is there a bike at the station at 8?"),
		one("night-watch", "Night watch", "Reads your server's logs and says in one sentence what is wrong.", []string{"code", "logs", "servers"},
			"Explain", "Why did the deploy fail last night?"),
	}
}

// report is a long answer with all that Markdown can.
const report = "Here is what I found in the **12 invoices** you sent.\n\n## Overdue\n\n| No. | Customer | Due | Sum | Days late |\n|---|---|---|---:|---:|\n" +
	"| 2026-041 | Bakery Lindner | 3 May | 1,204.00 € | 12 |\n| 2026-044 | Harbour office, department for moorings and permits | 7 May | 88.50 € | 8 |\n| 2026-047 | J. Ó Briain | 9 May | 12,400.99 € | 6 |\n\n" +
	"Three things to know:\n\n1. `2026-044` names **no tax number**; ask for a corrected one.\n2. The sum of `2026-041` differs by *0.02 €* from its lines.\n3. Nothing is due before [Monday](https://example.org/calendar).\n   - Except the rent,\n   - and the rent is paid.\n\n" +
	"> Payment is due within 14 days of receipt.\n\nTo make the list again:\n\n```go\nfunc overdue(list []Invoice, now time.Time) []Invoice {\n\treturn slices.DeleteFunc(slices.Clone(list), func(i Invoice) bool { return i.Paid || i.Due.After(now) }) // the clone keeps the caller's list whole\n}\n```\n\n" +
	"---\n\nA word without a break: " + "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft/" + "v1/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"

// audit is what must hold on every page, for those who hear it and those who
// see it. It returns what does not.
const audit = `(() => {
	const wrong = [];
	const visible = (el) => el.checkVisibility({ visibilityProperty: true }) && el.getClientRects().length > 0;
	const name = (el) => el.outerHTML.slice(0, 120);
	if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1 but " + document.querySelectorAll("h1").length);
	if (!document.title) wrong.push("no title");
	let level = 0;
	for (const h of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
		if (!h.getClientRects().length && !h.classList.contains("visually-hidden")) continue;
		const l = Number(h.tagName[1]);
		if (level && l > level + 1) wrong.push("heading jumps from " + level + " to " + name(h));
		level = l;
	}
	const ids = new Map();
	for (const el of document.querySelectorAll("[id]")) ids.set(el.id, (ids.get(el.id) || 0) + 1);
	for (const [id, n] of ids) if (n > 1) wrong.push("id " + id + " " + n + " times");
	for (const el of document.querySelectorAll("input:not([type=hidden]), textarea, select")) {
		if (!(el.labels && [...el.labels].some((l) => l.textContent.trim())) && !el.getAttribute("aria-label")) wrong.push("no label: " + name(el));
		for (const id of (el.getAttribute("aria-describedby") || "").split(" ").filter(Boolean)) if (!ids.has(id)) wrong.push("described by nothing, " + id + ": " + name(el));
	}
	for (const el of document.querySelectorAll("button, a[href], summary")) {
		if (!el.textContent.trim() && !el.getAttribute("aria-label")) wrong.push("no name: " + name(el));
	}
	for (const el of document.querySelectorAll("[aria-labelledby]")) if (!ids.has(el.getAttribute("aria-labelledby"))) wrong.push("labelled by nothing: " + name(el));
	for (const el of document.querySelectorAll("img:not([alt])")) wrong.push("no alt: " + name(el));
	for (const el of document.querySelectorAll("ul > :not(li), ol > :not(li)")) wrong.push("in a list but no item: " + name(el));

	// What sticks out sideways, unless something around it scrolls or cuts.
	const wide = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth > wide) wrong.push("the page is " + document.documentElement.scrollWidth + " wide");
	out: for (const el of document.querySelectorAll("body *")) {
		const r = el.getBoundingClientRect();
		if (r.right <= wide + 1 && r.left >= -1 || r.width <= 1 || !visible(el)) continue;
		for (let up = el.parentElement; up && up !== document.body; up = up.parentElement) if (getComputedStyle(up).overflowX !== "visible") continue out;
		if (getComputedStyle(el).transform !== "none") continue;
		wrong.push("sticks out to " + Math.round(r.right) + ": " + name(el));
	}
	// What can be touched is large enough to be hit.
	if (matchMedia("(pointer: coarse)").matches) {
		for (const el of document.querySelectorAll("button, summary, .button, input:not([type=hidden], [type=radio], [type=checkbox]), textarea, select")) {
			const r = el.getBoundingClientRect();
			if (visible(el) && !el.closest(".visually-hidden") && r.width > 1 && (r.height < 24 || r.width < 24)) wrong.push("hard to hit, " + Math.round(r.width) + "×" + Math.round(r.height) + ": " + name(el));
		}
	}
	return wrong;
})()`

// contrast returns the text that stands out too little from its ground: WCAG
// 2.2 AA.
const contrast = `(() => {
	const wrong = new Map();
	const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
	const seen = new Map();
	const rgba = (c) => {
		if (!seen.has(c)) {
			pen.clearRect(0, 0, 1, 1);
			pen.fillStyle = c;
			pen.fillRect(0, 0, 1, 1);
			seen.set(c, [...pen.getImageData(0, 0, 1, 1).data]);
		}
		return seen.get(c);
	};
	const over = (top, under) => top.slice(0, 3).map((v, i) => (v * top[3] + under[i] * (255 - top[3])) / 255).concat(255);
	const light = (c) => {
		const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const once = (f, known = new Map()) => (el) => {
		if (!known.has(el)) known.set(el, f(el));
		return known.get(el);
	};
	const ground = once((el) => {
		if (!el) return [255, 255, 255, 255];
		const c = rgba(getComputedStyle(el).backgroundColor);
		return c[3] === 255 ? c : c[3] ? over(c, ground(el.parentElement)) : ground(el.parentElement);
	});
	const opacity = once((el) => el ? Number(getComputedStyle(el).opacity) * opacity(el.parentElement) : 1);
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n = walk.nextNode(); n; n = walk.nextNode()) {
		const el = n.parentElement;
		if (!n.data.trim() || !el.checkVisibility() || el.closest(".visually-hidden, svg, script, style, template, :disabled, .skip")) continue;
		const style = getComputedStyle(el);
		const under = ground(el);
		const c = rgba(style.color);
		const ink = over([c[0], c[1], c[2], c[3] * opacity(el)], under);
		const [a, b] = [light(ink), light(under)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		const size = parseFloat(style.fontSize);
		const least = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700 ? 3 : 4.5;
		if (ratio < least - 0.01) wrong.set(el.className + "|" + style.color, ratio.toFixed(2) + " of " + least + ": " + el.outerHTML.slice(0, 100));
	}
	return [...wrong.values()];
})()`

// sizes end with the desk, the screen that tests continue with.
var sizes = []screen{{width: 390, height: 844, phone: true}, {width: 360, height: 720, phone: true}, {width: 1280, height: 900}}

// look checks the contrast of the page a tab is on, in both color schemes, and
// its layout at every size. In the reduced form the narrower of the two phones
// stands for both. Pictures are taken of every size in both schemes.
func (b *tab) look(name string) {
	b.t.Helper()
	pictures := os.Getenv("E2E_SHOTS") != ""
	for _, s := range sizes {
		wide := s.width == desk.width
		if s.width == 390 && !full() && !pictures {
			continue
		}
		b.resize(s)
		for _, scheme := range []string{"light", "dark"} {
			if !wide && !pictures {
				continue // the layout is the same in both
			}
			b.scheme(scheme)
			where := fmt.Sprintf("%s-%d-%s", name, s.width, scheme)
			if wide {
				for _, w := range eval[[]string](b, contrast) {
					b.t.Errorf("%s: contrast %s", where, w)
				}
			}
			b.shot(where, !eval[bool](b, `document.body.classList.contains("page-chat")`))
		}
		for _, w := range eval[[]string](b, audit) {
			b.t.Errorf("%s at %d: %s", name, s.width, w)
		}
	}
	b.clean(name)
	b.scheme("light")
}

// TestLooks opens every page, with much and with nothing on it, at three
// widths, light and dark.
func TestLooks(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	far := newModel(t)
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/locked/") {
			w.WriteHeader(http.StatusUnauthorized)
		}
		w.Write([]byte("<!DOCTYPE html><title>Welcome</title>"))
	}))
	defer odd.Close()
	ada, op := p.User(t, "ada"), p.Operator(t, "op")
	ada.Meets(p.User(t, "a-person-with-the-longest-name-allowed-4"))
	for _, r := range agents(far.base()) {
		register(ada, r)
	}
	register(ada, registration{Name: longName, Title: longTitle, Description: strings.Repeat("unbroken", 60), Endpoint: nowhere(t) + "/v1",
		Skills: []skill{{ID: "one", Name: longTitle[:90], Description: strings.Repeat("unbroken", 60), Tags: []string{strings.Repeat("tag", 10), "x"}, Examples: []string{strings.Repeat("example", 40)}}}})
	register(ada, registration{Name: "locked", Title: "مساعد الترجمة 👩‍👩‍👧‍👦", Description: "يترجم بين العربية والإنجليزية والفرنسية.", Endpoint: odd.URL + "/locked/v1", Visibility: "unlisted"})
	register(ada, registration{Name: "mislaid", Title: "Mislaid", Description: "Somebody put a web page where it was.\n\n## Notes\n\nAsk **gently**.", Endpoint: odd.URL + "/v1", Visibility: "private"})
	ada.Must(http.MethodPost, "/api/v1/tokens", map[string]any{"label": "laptop"}, http.StatusCreated)
	op.Must(http.MethodPost, "/admin/invites", url.Values{"note": {"For the garden team"}}, http.StatusOK)
	op.Must(http.MethodPost, "/admin/agents/recipe-box/withdraw", url.Values{}, http.StatusSeeOther)

	// A long conversation; the page is on the socket while answers come.
	talk := ada.Conversation("invoice-reader", "guide")
	a := visit(t, root, p, desk).as(ada)
	a.allow("400 (Bad Request)", "409 (Conflict)", "404 (Not Found)")
	far.answers(func(m string) []string {
		switch {
		case strings.Contains(m, "overdue"):
			return strings.SplitAfter(report, " ")
		case strings.Contains(m, "break"):
			return []string{"I began with page one, but"}
		}
		return []string{"Noted. ", "I keep it in mind."}
	})
	a.open("/chat/" + talk)
	a.look("chat-new")
	for i, text := range []string{"@invoice-reader good morning", "@invoice-reader which of these invoices are overdue?\n\n```\n2026-041 Bakery Lindner 1204.00\n2026-044 Harbour office 88.50\n```", "@guide who can translate a letter for me?", "@invoice-reader thank you"} {
		a.send(text)
		a.until("the answer", fmt.Sprintf(`document.querySelectorAll("[data-messages] .message:not(.message-mine)").length === %d && !document.querySelector("[data-working] [data-task]")`, i+1))
	}
	a.until("the title it got", `document.querySelector("h1").innerText === "@invoice-reader good morning" && document.title.startsWith("@invoice-reader good morning")`)
	a.until("no word any more of where text goes", `!document.querySelector(".composer .goes-to")`)
	a.look("chat-end")
	a.leaves(func() { a.open("/chat/" + talk) })
	eval[bool](a, `document.querySelectorAll("[data-messages] .message")[3].scrollIntoView({ block: "start" }), true`)
	a.look("chat-report")
	eval[bool](a, `document.querySelector("[data-menu]").open = true`)
	a.look("chat-menu")
	far.answers(nil)
	a.leaves(func() { a.open("/chat/" + talk) })
	a.send("@invoice-reader and the year before?")
	far.pieces <- "In 2025 there were "
	a.streaming("In 2025")
	a.look("chat-streaming")
	a.stops()
	<-far.stopped
	a.answered("Stopped before it was finished.")
	ada.Must(http.MethodPost, "/api/v1/conversations/"+talk+"/members", map[string]any{"members": []string{longName}}, http.StatusCreated)
	a.send("@" + longName + " are you there?")
	a.until("where it goes", `document.querySelector("[data-disclosure]")`)
	a.look("chat-told")
	a.click("#text")
	a.enter()
	a.answered("did not work")
	a.look("chat-failed")
	ada.Conversation()
	for _, page := range []struct{ name, path string }{
		{"home", "/"}, {"agents", "/agents"}, {"search", "/agents?q=invoices"}, {"filtered", "/agents?live=alive&tag=code"}, {"nothing", "/agents?q=xylophone+repair"},
		{"agent", "/agents/invoice-reader"}, {"agent-text", "/agents/lingua?text=" + url.QueryEscape("Translate this letter") + "#talk-title"}, {"agent-long", "/agents/" + longName},
		{"agent-locked", "/agents/locked"}, {"agent-private", "/agents/mislaid"}, {"versions", "/agents/mislaid/versions"},
		{"register", "/agents/new"}, {"register-prompt", "/agents/new?kind=prompt"}, {"edit", "/agents/" + longName + "/edit"}, {"chats", "/chat"}, {"account", "/account"},
		{"person", "/people/ada"}, {"register-program", "/agents/new/program"}, {"library", "/library"}, {"models", "/account/models"},
		{"usage", "/account/usage"}, {"grants", "/account/grants"}, {"notices", "/notices"}, {"goals", "/goals"}, {"packages", "/packages"},
	} {
		a.open(page.path)
		a.look(page.name)
	}
	a.form("openai")
	a.fill("#name", "calc")
	a.fill("#description", "Mine.")
	a.fill("#endpoint", "http://example.org")
	a.press(`button[name="save"]`)
	a.look("register-wrong")
	a.open("/agents/new")
	a.fill("#url", nowhere(t))
	a.press(".fetch button")
	a.look("register-nobody")
	a.open("/account")
	a.click("#tokens-title ~ details summary")
	a.look("account-token")

	g := visit(t, root, p, desk)
	g.allow("400 (Bad Request)", "404 (Not Found)", "401 (Unauthorized)", "403 (Forbidden)")
	for _, page := range []struct{ name, path string }{
		{"guest-home", "/"}, {"guest-agent", "/agents/guide"}, {"guest-chats", "/chat"}, {"login", "/login"}, {"signup", "/signup"}, {"setup", "/signup?setup=x"}, {"reset", "/reset?link=x"}, {"reset-none", "/reset"},
		{"docs", "/docs"}, {"docs-talk", "/docs/talk"}, {"docs-api", "/docs/api"}, {"about", "/about"}, {"guest-person", "/people/ada"}, {"lost", "/agents/nobody-at-all"}, {"lost-far", "/agents/nobody@elsewhere.example"}, {"withdrawn", "/agents/recipe-box"},
	} {
		g.open(page.path)
		g.look(page.name)
	}
	g.open("/signup")
	g.fill("#name", "ada")
	g.fill("#password", "short")
	g.press("main form button")
	g.look("signup-wrong")

	o := visit(t, root, p, desk).as(op)
	for _, page := range []struct{ name, path string }{
		{"admin", "/admin"}, {"admin-people", "/admin/people"}, {"admin-invites", "/admin/invites"}, {"admin-agents", "/admin/agents"}, {"admin-none", "/admin/agents?q=xylophone"},
		{"welcome", "/admin/welcome"}, {"settings", "/admin/settings"}, {"storage", "/admin/storage"}, {"reports", "/admin/reports"},
		{"queue", "/admin/queue"}, {"hosting", "/admin/hosting"}, {"publish", "/packages/new"},
	} {
		o.open(page.path)
		o.look(page.name)
	}
	o.open("/admin/people")
	o.press(`form[action="/admin/people/ada/reset"] button`)
	o.look("admin-reset")
}

// TestPictures takes those of the README and the manual, when asked to.
func TestPictures(t *testing.T) {
	if os.Getenv("E2E_SHOTS") == "" {
		t.Skip("E2E_SHOTS names no folder")
	}
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	ada, far := p.User(t, "ada"), newModel(t)
	for _, r := range agents(far.base()) {
		register(ada, r)
	}
	g := visit(t, root, p, desk)
	g.scheme("light")
	g.resize(screen{width: 1280, height: 1096})
	g.open("/")
	g.shot("doc-home", false)

	a := visit(t, root, p, desk).as(ada)
	a.scheme("light")
	a.open("/agents/invoice-reader")
	a.press(".talk .ask")
	a.press(".say button")
	<-far.asked
	far.pieces <- "Three of your **12 invoices** are overdue:\n\n| Invoice | Customer | Due | Sum |\n|---|---|---|---:|\n| 2026‑041 | Bakery Lindner | 3 May | 1,204.00 € |\n| 2026‑044 | Harbour office | 7 May | 88.50 € |\n| 2026‑047 | J. Ó Briain | 9 May | 12,400.99 € |\n\nOne line I am unsure of: `2026-044` names **no tax number**; ask for a corrected one."
	far.pieces <- ""
	a.answered("tax number")
	a.send("Write a friendly reminder to the bakery, two sentences.")
	<-far.asked
	far.pieces <- "Dear Lindner team, the invoice of 3 May over 1,204.00 € seems to have slipped between"
	a.streaming("slipped between")
	a.shot("doc-chat", false)
	a.stops()
	<-far.stopped
	a.answered("Stopped before")
}
