package e2e

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestFind_IsToldOfNewAgents saves a search, hears of what it finds since,
// looks, and forgets it.
func TestFind_IsToldOfNewAgents(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			ada, far := p.User(t, "ada"), newModel(t)
			for _, r := range agents(far.base()) {
				register(ada, r)
			}
			// A visitor is led through the login back to the search.
			b := visit(t, root, p, s)
			p.User(t, "bob")
			b.open("/agents?q=ferry")
			b.says("No agent fits that")
			b.press(".keep-ways a")
			b.fill("#name", "bob")
			b.fill("#password", apptest.Password)
			b.press("main form button")
			if got := eval[string](b, "location.pathname + location.search"); got != "/agents?q=ferry" {
				t.Fatalf("the login leads to %s", got)
			}
			b.press(`form[action="/searches"] button`)
			b.says("The search is saved.")
			b.open("/account")
			b.until("the search", `document.querySelector("#searches .row").innerText.includes("ferry") && document.querySelector("#searches .row").innerText.includes("nothing new")`)
			for _, n := range []string{"one", "two", "three"} {
				register(ada, registration{Name: "ferry-" + n, Title: "Ferry " + n, Description: "Knows when the ferry leaves.", Endpoint: far.base()})
			}
			register(ada, registration{Name: "ferry-mine", Title: "Ferry", Description: "A private ferry.", Endpoint: far.base(), Visibility: "private"})
			b.open("/account")
			b.until("what is new", `document.querySelector("#searches .row").innerText.includes("3 new")`)
			feed := eval[string](b, `document.querySelector("#searches a[type='application/atom+xml']").getAttribute("href")`)
			if got := readFeed(t, p.URL()+feed); strings.Join(got, ",") != "Ferry three,Ferry two,Ferry one" {
				t.Errorf("the feed has %v", got)
			}
			b.press("#searches .row-actions button")
			if got := strings.Join(b.listed(), ","); got != "ferry-three,ferry-two,ferry-one" {
				t.Errorf("looking shows %s", got)
			}
			if got := eval[string](b, `document.querySelector('link[rel=alternate][type="application/atom+xml"]').getAttribute("href")`); !strings.HasPrefix(got, "/agents/feed?q=ferry") {
				t.Errorf("the page names the feed %q", got)
			}
			b.open("/account")
			b.until("nothing new", `document.querySelector("#searches .row").innerText.includes("nothing new")`)
			b.press(`#searches form[action$="/delete"] button`)
			b.says("The search is forgotten.")
			if eval[bool](b, `Boolean(document.querySelector("#searches"))`) {
				t.Error("the search is still there")
			}
			b.clean("saved searches")
		})
	}
}

// readFeed returns the titles of a feed.
func readFeed(t *testing.T, address string) (titles []string) {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("a browser may take the feed for something else")
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var feed struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		Entries []struct {
			Title string `xml:"title"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal(body, &feed); err != nil || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/atom+xml") {
		t.Fatalf("%s is no feed: %v", res.Header.Get("Content-Type"), err)
	}
	for _, e := range feed.Entries {
		titles = append(titles, e.Title)
	}
	return titles
}

// TestFind_NoticesAndOffers hears of what concerns an account, and answers an
// offer.
func TestFind_NoticesAndOffers(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			ada, bob, far := p.User(t, "ada"), p.User(t, "bob"), newModel(t)
			for _, r := range agents(far.base())[:3] {
				register(ada, r)
			}
			b := visit(t, root, p, s).as(bob)
			b.open("/notices")
			b.says("No notifications")
			if eval[bool](b, `Boolean(document.querySelector(".who-notices .unread"))`) {
				t.Error("something is unread to begin with")
			}
			ada.Must(http.MethodPost, "/api/v1/agents/tide-tables/owners", map[string]string{"name": "bob"}, http.StatusOK)
			for _, name := range []string{"invoice-reader", "code-review"} {
				ada.Must(http.MethodPost, "/agents/"+name+"/offer", url.Values{"to": {"bob"}, "sure": {"1"}}, http.StatusSeeOther)
			}
			b.open("/agents")
			b.until("the count", `document.querySelector(".who-notices").textContent.replace(/\s+/g, " ").includes("3 unread notices")`)
			b.press(".who-notices")
			if n := eval[int](b, `document.querySelectorAll(".notices .row-new").length`); n != 3 {
				t.Errorf("%d new notices", n)
			}
			b.press(`.page-head button`)
			b.until("all read", `document.querySelectorAll(".notices .row").length === 3 && !document.querySelector(".row-new") && !document.querySelector(".who-notices .unread") && !document.querySelector(".page-head button")`)
			// The newest is about the second offer and leads to it.
			b.press(".notices .row:first-child a.button")
			b.until("the offers", `location.pathname === "/account" && document.querySelectorAll("#offers .row").length === 2`)
			b.press(`#offers form[action="/agents/code-review/answer"] button[value="no"]`)
			b.says("You declined the agent.")
			b.press(`#offers form[action="/agents/invoice-reader/answer"] button[value="yes"]`)
			b.open("/account")
			if eval[bool](b, `Boolean(document.querySelector("#offers"))`) {
				t.Error("an answered offer is still there")
			}
			if !eval[bool](b, `Boolean(document.querySelector('a[href="/agents/invoice-reader/edit"]')) && !document.querySelector('a[href="/agents/code-review/edit"]')`) {
				t.Error("what was accepted is not bob's, or what was declined is")
			}
			b.clean("notices")
		})
	}
}

// TestFind_ProvesADomain follows the steps on the account page.
func TestFind_ProvesADomain(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("phone without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			var file atomic.Pointer[string]
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text := file.Load()
				if r.URL.Path != "/.well-known/agentsite-owner" || text == nil {
					http.NotFound(w, r)
					return
				}
				io.WriteString(w, *text)
			}))
			defer site.Close()
			domain := strings.TrimPrefix(site.URL, "http://")
			b := visit(t, root, p, s).as(p.User(t, "bob"))
			b.allow("400 (Bad Request)")
			b.open("/account#domains")
			b.click("#domains details summary")
			token := eval[string](b, `document.querySelector("#domains .steps code:not(p code), #domains .copyable").innerText.trim()`)
			check := func(typed string) {
				b.fill("#domain", typed)
				b.press(`form[action="/account/domains"] button`)
			}
			check("not a domain/at all")
			b.until("what is wrong", `document.querySelector("#domain-error")?.innerText.includes("write it like example.org")`)
			b.holds("#domain", "not a domain/at all")
			check(domain)
			b.until("that there is no file", `document.querySelector("#domain-error")?.innerText.length > 10`)
			b.holds("#domain", domain)
			text := "# who may list what is here\n" + token + "\n"
			file.Store(&text)
			check(domain)
			b.says("The domain is proved.")
			b.until("the domain", `document.querySelector("#domains .row").innerText.includes(`+js(domain)+`)`)
			b.press(`form[action="/account/domains/remove"] button`)
			b.says("The domain is removed")
			if eval[bool](b, `Boolean(document.querySelector("#domains .row"))`) {
				t.Error("the domain is still there")
			}
			b.clean("domains")
		})
	}
}
