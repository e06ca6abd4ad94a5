package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/record"
	"agentsite/internal/testing/apptest"
)

// TestLate is a portal that keeps summaries of another one alone: what that one
// answers is added to the page of a search, or waited for by who has no scripts,
// and opened from there.
func TestLate(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	near := apptest.Start(t, func(c *app.Config) { c.Tier = record.TierSummary })
	far := apptest.Start(t, func(c *app.Config) { c.Join = near.URL() }) // whom near joined it would hold
	for name, at := range map[string]*apptest.Portal{"lullaby": near, "storyteller": far} {
		at.Operator(t, "ann").Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "kind": "openai", "title": "Teller of tales",
			"description": "Tells bedtime stories about dragons.", "visibility": "public", "endpoint": newModel(t).base(), "config": map[string]any{"model": "story-1"}}, http.StatusCreated)
	}
	var who struct{ Portal record.PortalID }
	far.Guest(t).Get(http.MethodGet, "/.well-known/agentsite", nil, http.StatusOK, &who)
	host := strings.TrimPrefix(far.URL(), "http://")
	// From when it has the summary it asks.
	guest := near.Guest(t)
	asked := func() bool {
		found := guest.Must(http.MethodGet, "/api/v1/search?q=bedtime+dragon", nil, http.StatusOK).Body
		return strings.Contains(found, "storyteller")
	}
	if !eventually(asked) {
		t.Fatal("the other portal is not asked")
	}
	ref := `a[href="/agents/storyteller@` + host + `"]`
	for name, s := range walked("phone", "desk without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := visit(t, root, near, s)
			axe := func(string) {}
			if s.scripts && os.Getenv("AGENTSITE_TEST_AXE") != "" {
				b.axed(needAxe(t))
				axe = func(what string) { b.axe(what, nil) }
			}
			card := `document.querySelector(` + js("[data-late-list] "+ref) + `)`
			if !s.scripts {
				card = `document.querySelector(` + js(".results "+ref) + `)`
			}
			b.open("/agents?q=bedtime+dragon")
			b.until("what is here", `document.querySelector('.results a[href="/agents/lullaby"]')`)
			if s.scripts {
				b.until("what came late", card)
				b.until("how many", `document.querySelector("[data-late-title]").innerText === "1 more agent from other portals"`)
				b.until("of how many portals", `document.querySelector("[data-coverage]").innerText.includes("of 2 portals")`)
			} else {
				b.press(".late-ask a")
				b.until("what came late", card)
			}
			axe("late answers")
			b.shot("late-answers", true)
			b.press(".agent-card " + ref)
			b.says("Teller of tales")
			b.open("/network/" + string(who.Portal))
			b.says("searches ask the portal")
			axe("a portal that is asked")
			b.shot("late-portal", true)
			b.press(`main a[href^="/agents?portal="]`)
			b.until("its agents, as nothing is shown meanwhile", `document.querySelector(`+js(".results "+ref)+`)`)
			b.clean("late answers")
		})
	}
}
