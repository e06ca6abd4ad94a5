package e2e

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// TestNetworkMap_ShowsTeamWork gives a goal to an agent of another portal. While that agent works, the map shows it to
// the owner of the goal: on the line to the portal, on its card and in the table. Others see nothing of it.
func TestNetworkMap_ShowsTeamWork(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := newModel(t)
			second := apptest.Start(t)
			first := apptest.Start(t, func(c *app.Config) { c.Join = second.URL() })
			second.User(t, "cy").Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "tides", "title": "Tide tables",
				"description": "High water and low water of harbours.", "kind": "openai", "visibility": "public",
				"endpoint": far.base(), "config": map[string]any{"model": "story-1"}}, http.StatusCreated)
			ada := first.User(t, "ada")
			if !eventually(func() bool {
				a, err := ada.Try(http.MethodGet, "/api/v1/agents?q=tide+tables", nil)
				return err == nil && strings.Contains(a.Body, "tides@"+second.Host)
			}) {
				t.Fatal("the agent of the other portal is not found")
			}
			b, guest := visit(t, root, first, s).as(ada), visit(t, root, first, s)
			b.open("/network")
			b.until("a portal without work", `document.querySelector('.map-node:not(.map-self)')?.dataset.work === "" && !document.querySelector(".map-work")`)
			ada.Must(http.MethodPost, "/api/v1/goals", map[string]any{"goal": "Tide tables: when is high water in the harbour?"}, http.StatusAccepted)
			<-far.asked
			b.until("the work, without another visit", `document.querySelector('.map-node:not(.map-self)')?.dataset.work === "1 task of your goals there now"`)
			b.until("a line of the work", `[...document.querySelectorAll("line.map-work")].some((e) => e.getClientRects().length > 0)`)
			if s.phone {
				b.click(".map-small .map-node:not(.map-self)")
			} else {
				eval[bool](b, `document.querySelector(".map-node:not(.map-self)").focus(), true`)
			}
			b.until("the card", `document.querySelector("[data-map-card]").innerText.includes("1 task of your goals there now")`)
			b.until("the table", `document.querySelector("table.portals a[href='/goals']")?.innerText === "1 task of your goals there now"`)
			b.until("the legend", `document.querySelector(".map-legend").innerText.includes("works for your goals")`)
			if !eval[bool](b, fits) {
				t.Error("the page is wider than the screen")
			}
			b.shot("network-work-"+name, true)
			moves := `getComputedStyle(document.querySelector("line.map-work")).animationName`
			if got := eval[string](b, moves); got != "map-work" {
				t.Errorf("the line moves by %q", got)
			}
			b.scheme("light") // and less motion
			if got := eval[string](b, moves); got != "none" {
				t.Errorf("the line moves by %q for people who want less motion", got)
			}
			guest.open("/network")
			guest.until("a map without the work of others", `document.querySelector('.map-node:not(.map-self)')?.dataset.work === "" && !document.querySelector(".map-work")`)
			far.pieces <- "At 04:12."
			far.pieces <- ""
			b.until("no work any more", `document.querySelector('.map-node:not(.map-self)')?.dataset.work === ""`)
			b.clean("the map with work")
			guest.clean("the map of a guest")
		})
	}
}
