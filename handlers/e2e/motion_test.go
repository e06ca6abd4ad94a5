package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"agentsite/internal/testing/apptest"
)

// moving lists the elements of a page that an animation or a transition may move.
const moving = `[...document.querySelectorAll("*")].flatMap((e) => [null, "::before", "::after"].map((part) => getComputedStyle(e, part))
	.filter((s) => s.animationName !== "none" || s.transitionDuration.split(", ").some((d) => parseFloat(d) > 0) || s.scrollBehavior === "smooth")
	.map(() => e.tagName + "." + e.getAttribute("class")))`

// TestMotion_NoneForPeopleWhoWantLess opens pages with motion, as people see them who want less of it and as others do.
func TestMotion_NoneForPeopleWhoWantLess(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ann := p.User(t, "ann")
	room := ann.Conversation("calc")
	for _, name := range []string{"desk", "phone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := visit(t, root, p, screens[name]).as(ann)
			for _, path := range []string{"/", "/agents", "/network", "/agents/new", "/account", "/chat/" + room} {
				for _, want := range []string{"no-preference", "reduce"} {
					command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
						{Name: "prefers-reduced-motion", Value: want}}})
					b.open(path)
					got := eval[[]string](b, moving)
					if want == "reduce" && len(got) > 0 {
						t.Errorf("%s moves %v", path, got)
					}
					if want != "reduce" && len(got) == 0 {
						t.Errorf("%s has no motion at all", path)
					}
				}
			}
			b.clean("pages with less motion")
		})
	}
}
