package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"agentsite/internal/testing/apptest"
)

// listed returns the handles of the agents on a page of results, in order, by where their cards lead.
func (b *tab) listed() []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll(".results .agent-card .agent-card-title a")].map((a) => decodeURIComponent(a.pathname.replace(/^\/agents\//, "")))`)
}

// TestFind_AsPeopleSearch looks for an agent with a typo, narrows, sorts and
// turns pages, and is helped on when nothing fits.
func TestFind_AsPeopleSearch(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	far := newModel(t)
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	for _, r := range agents(far.base()) {
		register(ada, r)
	}
	type clerk struct {
		Name      string    `json:"name"`
		CreatedAt time.Time `json:"created_at"`
	}
	clerks := make([]clerk, 24)
	for i := range clerks {
		ada.Get(http.MethodPost, "/api/v1/agents", map[string]any{"name": fmt.Sprintf("clerk-%02d", i), "title": fmt.Sprintf("Clerk %02d", i), "kind": "openai", "endpoint": far.base(),
			"description": "Copies ledgers.", "visibility": "public", "config": map[string]string{"model": "story-1"}}, http.StatusCreated, &clerks[i])
	}
	// Those of one millisecond stand in the order of their names.
	slices.SortStableFunc(clerks, func(a, b clerk) int { return b.CreatedAt.Compare(a.CreatedAt) })
	var newest []string
	for _, c := range clerks {
		newest = append(newest, c.Name)
	}
	for name, s := range walked("phone without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := visit(t, root, p, s)
			b.open("/agents")
			b.fill("#q", "transalte")
			b.press(".search button")
			b.until("why it was found", `[...document.querySelectorAll(".agent-card")].find((x) => x.querySelector(".agent-card-title a[href='/agents/lingua']"))?.querySelector(".agent-card-matched")?.innerText.includes("“transalte” read as “translate”")`)
			if got := eval[string](b, `document.querySelector(".agent-card-matched").innerText`); !strings.HasPrefix(got, "Found in ") || !strings.Contains(got, "skills") {
				t.Errorf("the first result says %q", got)
			}

			// Filters are switched on beside their counts, and off again.
			b.open("/agents?q=ledgers")
			b.says("24 agents for")
			if s.width < 800 {
				b.click(".facets summary")
			}
			count := eval[string](b, `[...document.querySelectorAll(".facet-option")].find((x) => x.innerText.startsWith("model")).querySelector(".facet-count").firstChild.data`)
			b.press(`.facet-option[href*="kind=openai"]`)
			if count != "24" || !eval[bool](b, `document.querySelector(".filters .filter").innerText.includes("model")`) {
				t.Errorf("the filter counts %s", count)
			}
			b.press(".filters .filter")
			if got := eval[string](b, "location.search"); got != "?q=ledgers" {
				t.Errorf("without the filter: %s", got)
			}

			// Orders and pages.
			eval[bool](b, `document.querySelector("#sort").scrollIntoView(), true`)
			b.leaves(func() {
				eval[bool](b, `(() => { const s = document.querySelector("#sort"); s.value = "newest"; s.dispatchEvent(new Event("change", { bubbles: true })); return true })()`)
				if !s.scripts {
					b.click(".sort button")
				}
			})
			first := b.listed()
			if !slices.Equal(first, newest[:20]) {
				t.Fatalf("newest first: %v, want %v", first, newest)
			}
			b.press(`.pager a`)
			if rest := b.listed(); !slices.Equal(rest, newest[20:]) {
				t.Errorf("the next page: %v, want %v", rest, newest[20:])
			}
			b.press(`.results p a[href="/agents?q=ledgers&sort=newest"]`)
			if again := b.listed(); fmt.Sprint(again) != fmt.Sprint(first) {
				t.Errorf("the first page again: %v", again)
			}

			// Nothing fits: what would is one press away, and finds as many as it says.
			b.open("/agents?q=ledgers&tag=sea&kind=openai")
			b.says("No agent fits that")
			ways := eval[[]string](b, `[...document.querySelectorAll(".way-on")].map((x) => x.innerText.replace(/\s+/g, " ").trim())`)
			if fmt.Sprint(ways) != "[without “Tag: sea” 24 agents]" {
				t.Errorf("ways: %q", ways)
			}
			b.press(".way-on")
			b.says("24 agents for")
			b.open("/agents?q=" + url.QueryEscape(`"ledgers copies"`))
			b.until("it without quotes", `[...document.querySelectorAll(".way-on")].some((x) => x.innerText.startsWith("ledgers copies") && x.innerText.includes("24 agents"))`)
			if !eval[bool](b, `Boolean(document.querySelector('form input[name=agent][value=guide]'))`) {
				t.Error("the guide is not offered")
			}
			b.clean("searching")
		})
	}
}

// TestFind_SuggestsWhileTyping goes through suggestions with the keyboard, as
// a screen reader is told of them, and with a finger.
func TestFind_SuggestsWhileTyping(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	far := newModel(t)
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	for _, r := range agents(far.base()) {
		register(ada, r)
	}
	open := func(b *tab, path string) {
		b.open(path)
		b.fill("#q", "tra")
		b.until("suggestions", `document.querySelector("#q").getAttribute("aria-expanded") === "true" && [...document.querySelectorAll("[role=option]")].some((x) => x.innerText.includes("translation"))`)
	}
	for _, path := range []string{"/", "/agents"} {
		t.Run("keyboard on "+path, func(t *testing.T) {
			t.Parallel()
			b := visit(t, root, p, desk)
			open(b, path)
			active := func() string {
				return eval[string](b, `(() => {
					const q = document.querySelector("#q"), id = q.getAttribute("aria-activedescendant");
					const marked = [...document.querySelectorAll('[role=option][aria-selected="true"]')];
					if (!id) return marked.length === 0 ? "" : "marked without being named";
					return marked.length === 1 && marked[0].id === id && marked[0].closest("[role=listbox]").id === q.getAttribute("aria-controls") ? marked[0].innerText : "not told";
				})()`)
			}
			if got := active(); got != "" {
				t.Fatalf("something is chosen to begin with: %s", got)
			}
			n := eval[int](b, `document.querySelectorAll("[role=option]").length`)
			seen := map[string]bool{}
			for range n {
				b.do(chromedp.KeyEvent(kb.ArrowDown))
				seen[active()] = true
			}
			if len(seen) != n || seen["not told"] || seen[""] {
				t.Errorf("%d suggestions, went through %v", n, seen)
			}
			b.do(chromedp.KeyEvent(kb.ArrowDown))
			first := active()
			b.do(chromedp.KeyEvent(kb.ArrowUp))
			if last := active(); last == first || !seen[last] {
				t.Errorf("up from the first leads to %q", last)
			}
			b.do(chromedp.KeyEvent(kb.Escape))
			b.until("the list to close", `document.querySelector("[role=listbox]").hidden && document.querySelector("#q").getAttribute("aria-expanded") === "false"`)
			b.holds("#q", "tra")
			b.fill("#q", "translati")
			b.until("the tag alone", `document.querySelectorAll("[role=option]").length > 0 && [...document.querySelectorAll("[role=option]")].at(-1).innerText.startsWith("translation")`)
			b.do(chromedp.KeyEvent(kb.ArrowUp))
			b.leaves(b.enter)
			if got := eval[string](b, "location.pathname + location.search"); got != "/agents?tag=translation" {
				t.Errorf("the tag leads to %s", got)
			}
			if got := b.listed(); fmt.Sprint(got) != "[lingua]" {
				t.Errorf("it finds %v", got)
			}
			// Enter without a choice searches for what was typed.
			open(b, path)
			b.leaves(b.enter)
			if got := eval[string](b, "location.pathname + location.search"); got != "/agents?q=tra" {
				t.Errorf("Enter leads to %s", got)
			}
			b.clean("suggestions")
		})
		t.Run("finger on "+path, func(t *testing.T) {
			t.Parallel()
			b := visit(t, root, p, screens["phone"])
			b.open(path)
			b.fill("#q", "ling")
			b.until("the agent", `document.querySelector("[role=option]")?.innerText.includes("@lingua")`)
			b.press("[role=option]")
			if b.path() != "/agents/lingua" {
				t.Errorf("a suggestion leads to %s", b.path())
			}
			b.clean("suggestions")
		})
	}
}
