package e2e

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// TestNetworkMap_ShowsCards looks at cards of portals on the map by pointer, finger and keyboard.
func TestNetworkMap_ShowsCards(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) {
		c.Name = "Agora"
		seedPeers(t, c.Data, 6)
	})
	const card = `document.querySelector("[data-map-card]")`
	named := func(node string) string {
		facts := `[...document.querySelectorAll(".map-node[data-name]")].find((e) => e.getAttribute("href") === ` + node + `.getAttribute("href")).dataset`
		return `!` + card + `.hidden && ` + card + `.innerText.includes(` + facts + `.name) && ` + card + `.innerText.includes(` + facts + `.state)`
	}
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, shown := visit(t, root, p, s), ".map:not(.map-small)"
			if s.phone {
				shown = ".map-small"
			}
			b.open("/network")
			b.until("the map reachable", `document.querySelectorAll('.map-node[tabindex="0"]').length === 1`)
			b.until("one map", `[...document.querySelectorAll(".map")].filter((e) => e.getClientRects().length > 0).length === 1`)
			b.until("dots of 14 pixels", `[...document.querySelectorAll("`+shown+` .map-shape")].every((e) => e.getBoundingClientRect().width >= 14)`)
			b.until("a legible name beside each dot", `[...document.querySelectorAll("`+shown+` .map-node")].every((e) => {
				const name = e.querySelector(".map-name");
				return name && name.textContent !== "" && name.getBoundingClientRect().height >= 11;
			})`)
			b.until("a map in the page", `document.documentElement.scrollWidth <= innerWidth && document.querySelector("`+shown+`").getBoundingClientRect().right <= innerWidth`)
			b.shot("network-map-"+name, true)
			if s.phone {
				b.click(shown + " .map-node:not(.map-self)")
				b.until("the card of the portal tapped", named(`document.querySelector(".map-node[href='" + document.querySelector(".map-small .map-node").getAttribute("href") + "']")`))
				if got := b.path(); got != "/network" {
					t.Errorf("the first tap leads to %s", got)
				}
			}
			eval[bool](b, `document.querySelector('.map-node[tabindex="0"]').focus(), true`)
			b.until("the card of the portal with the focus", named(`document.activeElement`))
			was := eval[string](b, `document.activeElement.getAttribute("href")`)
			b.hit(kb.ArrowRight)
			b.until("the next portal", `document.activeElement.matches(".map-node") && document.activeElement.getAttribute("href") !== `+js(was))
			b.until("its card", named(`document.activeElement`))
			b.hit(kb.Escape)
			b.until("no card", card+`.hidden`)
			b.clean("the map")
		})
	}
	plain := visit(t, root, p, screen{width: 1280, height: 900})
	plain.open("/network")
	plain.until("the table", `document.querySelectorAll("table.portals tbody tr").length > 1 && document.querySelector("[data-map]").getAttribute("aria-hidden") === "true"`)
	plain.clean("the table")
}
