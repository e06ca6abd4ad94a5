package e2e

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// walkKeys notes each element that gets the focus: whether it is on the screen, not covered and marked. reachable are
// the elements that Tab must reach: of a group of radio buttons one, of the map one, of a closed list of details none.
const walkKeys = `(() => {
	const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length > 0;
	const groups = new Set();
	window.__reachable = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")].filter((e) => {
		if (e.tabIndex < 0 || e.disabled || e.closest("[inert]") || !shown(e)) return false;
		if (e.type !== "radio") return true;
		const group = (e.form?.action || "") + " " + e.name;
		if (groups.has(group)) return false;
		const all = [...document.querySelectorAll("input[type=radio]")].filter((o) => o.name === e.name && o.form === e.form);
		if (all.some((o) => o.checked) && !e.checked) return false;
		groups.add(group);
		return true;
	});
	window.__reached = new Set();
	window.__unmarked = [];
	window.__style = new Map(window.__reachable.map((e) => [e, look(e)]));
	// A field of a file or a radio button may show the focus on its label.
	function look(e) {
		return [e, ...(e.labels || []), e.closest(".field, label, td, li, .start-way") || e, e.querySelector(".map-shape") || e].map((x) => {
			const s = getComputedStyle(x);
			return [s.outlineStyle, s.outlineWidth, s.outlineColor, s.boxShadow, s.borderColor, s.backgroundColor, s.stroke].join();
		}).join(" ");
	}
	window.__step = () => {
		const e = document.activeElement;
		if (!e || e === document.body) return "end";
		if (e === window.__last) return ""; // the next part of a field with several, as that of a time
		window.__last = e;
		if (window.__reached.has(e)) return "again";
		window.__reached.add(e);
		const said = e.outerHTML.slice(0, 140), r = e.getBoundingClientRect();
		const bad = (why) => window.__unmarked.push(why + ": " + said);
		if (look(e) === window.__style.get(e) && getComputedStyle(e).outlineStyle === "none") bad("not marked");
		if (r.bottom < 0 || r.top > innerHeight || r.right < 0 || r.left > innerWidth) bad("off the screen");
		else if (r.width > 1 && r.height > 1 && e.type !== "radio" && e.type !== "checkbox" && e.type !== "file") {
			const parts = [...e.getClientRects()];
			const seen = parts.some((p) => [[.5, .5], [.1, .5], [.9, .5]].some(([x, y]) => {
				const hit = document.elementFromPoint(p.x + p.width * x, p.y + p.height * y);
				return hit && (e.contains(hit) || hit.contains(e) || [...(e.labels || [])].some((l) => l.contains(hit)));
			}));
			if (!seen) bad("covered");
		}
		return "";
	};
	return window.__reachable.length;
})()`

// tabThrough presses Tab until the page ends. It fails for elements that are not reached or whose focus is not seen.
func (b *tab) tabThrough(name string) {
	b.t.Helper()
	b.until("the page", `document.readyState === "complete"`)
	// The parts of a field of a time are up to three stops.
	most := 3*eval[int](b, walkKeys) + 20
	eval[bool](b, `document.querySelector("a.skip").focus(), true`)
	for range most {
		if eval[string](b, `window.__step()`) != "" {
			break
		}
		b.hit(kb.Tab)
	}
	for _, w := range eval[[]string](b, `[...window.__unmarked, ...window.__reachable.filter((e) => !window.__reached.has(e) && e.isConnected).map((e) => "not reached: " + e.outerHTML.slice(0, 140))]`) {
		b.t.Errorf("%s at %d: %s", name, b.screen.width, w)
	}
}

// TestKeyboard_ReachesEverything goes through the pages by Tab alone, at both widths.
func TestKeyboard_ReachesEverything(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) {
		c.Name = "Agora"
		seedPeers(t, c.Data, 6)
	})
	far := newModel(t)
	ada, op := p.User(t, "ada"), p.Operator(t, "op")
	for _, r := range agents(far.base()) {
		register(ada, r)
	}
	ada.Must(http.MethodPost, "/api/v1/agents/calc/report", map[string]any{"reason": "broken", "text": "It is slow."},
		http.StatusNoContent)
	type stop struct{ name, path string }
	for _, walk := range []struct {
		name  string
		who   *apptest.Client
		stops []stop
	}{
		{"guest", nil, []stop{{"home", "/"}, {"directory", "/agents"}, {"search", "/agents?q=invoices"},
			{"agent", "/agents/invoice-reader"}, {"network", "/network"}, {"person", "/people/ada"},
			{"sign-up", "/signup"}, {"login", "/login"}}},
		{"author", ada, []stop{{"home", "/"}, {"register", "/agents/new"}, {"instructions", "/agents/new?kind=prompt"},
			{"model", "/agents/new?kind=openai"}, {"program", "/agents/new/program"}, {"hosted", "/agents/new?kind=wasm"},
			{"edit", "/agents/invoice-reader/edit"}, {"account", "/account"}, {"own page", "/people/ada"},
			{"usage", "/account/usage"}, {"models", "/account/models"}, {"notices", "/notices"}, {"library", "/library"},
			{"goals", "/goals"}, {"packages", "/packages"}}},
		{"operator", op, []stop{{"overview", "/admin"}, {"first page", "/admin/welcome"}, {"settings", "/admin/settings"},
			{"storage", "/admin/storage"}, {"reports", "/admin/reports"}, {"people", "/admin/people"},
			{"invites", "/admin/invites"}, {"agents", "/admin/agents"}, {"portals", "/admin/peers"}, {"queue", "/admin/queue"},
			{"hosting", "/admin/hosting"}}},
	} {
		for _, width := range []int64{desk.width, 360} {
			t.Run(walk.name+" "+strconv.FormatInt(width, 10), func(t *testing.T) {
				t.Parallel()
				b := visit(t, root, p, screen{width: width, height: 800, scripts: true})
				if walk.who != nil {
					b.as(walk.who)
				}
				for _, s := range walk.stops {
					b.open(s.path)
					b.tabThrough(s.name)
				}
				b.clean(walk.name)
			})
		}
	}
}
