package e2e

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// puppyNeed shares no word with the vet that answers it.
const puppyNeed = "/agents?q=my+puppy+has+a+fever"

// registerCarers registers a vet, and agents that do other work, as a person of a portal.
func registerCarers(c *apptest.Client) {
	for _, a := range []struct{ name, title, description, skill string }{
		{"vetta", "Canine veterinarian", "Examines dogs and treats what ails them.", "Canine illness"},
		{"pipes", "Plumber", "Repairs leaking taps and burst pipes.", "Leak repair"},
		{"ledger", "Tax adviser", "Prepares income tax returns.", "Tax returns"},
		{"crumb", "Baker", "Answers on sourdough and baking times.", "Bread baking"},
	} {
		c.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": a.name, "title": a.title,
			"description": a.description, "kind": "link", "visibility": "public",
			"skills": []map[string]any{{"id": "s", "name": a.skill, "description": a.description}}}, http.StatusCreated)
	}
}

// TestFind_ByMeaning searches a fresh portal, which has neither a model nor a key, for a vet by words that no profile
// has.
func TestFind_ByMeaning(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	registerCarers(p.User(t, "ada"))
	for name, s := range walked("desk", "phone", "phone without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := visit(t, root, p, s)
			b.open("/agents")
			b.fill("#q", "my puppy has a fever")
			b.press(".search button")
			b.findsVet("vetta")
			b.shot("meaning-"+strings.ReplaceAll(name, " ", "-"), true)
			b.open(puppyNeed + "&mode=words")
			if got := b.listed(); len(got) != 0 {
				t.Errorf("by words the page lists %v", got)
			}
			b.open("/agents?q=how+do+volcanoes+erupt")
			if got := b.listed(); len(got) != 0 {
				t.Errorf("for what nothing fits the page lists %v", got)
			}
			b.shot("meaning-nothing-"+strings.ReplaceAll(name, " ", "-"), true)
			b.clean("the searcher")
		})
	}
}

// findsVet checks that a page of results has the vet first, and only it, and the reason.
func (b *tab) findsVet(handle string) {
	b.t.Helper()
	b.until("the reason", `document.querySelector(".agent-card-matched")?.innerText.includes("Canine illness")`)
	if got := b.listed(); len(got) != 1 || got[0] != handle {
		b.t.Errorf("the page lists %v, want %s", got, handle)
	}
	why := eval[string](b, `document.querySelector(".agent-card-matched").innerText`)
	if !strings.Contains(why, "imilar in meaning to its skill “Canine illness”") {
		b.t.Errorf("the reason is %q", why)
	}
}

// TestFind_ByMeaningOverThreePortals finds the vet of a third portal, which the first one knows through a second.
func TestFind_ByMeaningOverThreePortals(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	second := apptest.Start(t)
	joins := func(c *app.Config) { c.Join = second.URL() }
	first, third := apptest.Start(t, joins), apptest.Start(t, joins)
	registerCarers(third.User(t, "cy"))
	guest := first.Guest(t)
	if !eventually(func() bool {
		a, err := guest.Try(http.MethodGet, "/api/v1/agents?q=veterinarian", nil)
		return err == nil && strings.Contains(a.Body, "vetta@"+third.Host)
	}) {
		t.Fatal("the first portal does not know the vet")
	}
	for name, s := range walked("desk", "phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := visit(t, root, first, s)
			b.open(puppyNeed)
			b.findsVet("vetta@" + third.Host)
			if got := eval[string](b, `document.querySelector(".results .agent-card .badge-portal bdi").innerText`); got != third.Host {
				t.Errorf("the card names the portal %q, want %s", got, third.Host)
			}
			b.shot("meaning-portals-"+name, false)
			b.clean("the searcher")
		})
	}
}
