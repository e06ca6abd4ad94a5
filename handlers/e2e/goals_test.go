package e2e

import (
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestGoals gives a goal with two parts to the agents of the portal, and watches it until it has concluded.
func TestGoals(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			b := visit(t, root, p, s).as(p.User(t, "ada"))
			b.open("/goals")
			b.says("You have given no goal yet")
			b.has(`.main-nav a[href="/goals"][aria-current="page"]`)
			b.shot("goals-empty-"+name, true)
			b.open("/goals/new")
			b.fill("#goal", "What is 15% of 80? How do I register an agent?")
			b.press(`button[name="preview"]`)
			b.says("Nothing has started.")
			b.holds("#goal", "What is 15% of 80? How do I register an agent?")
			b.has(`.goal-pick a[href="/agents/calc"]`)
			b.shot("goals-preview-"+name, true)
			b.press(`form[action="/goals"] .button-primary`)
			if !s.scripts {
				return
			}
			b.until("the conclusion", `document.querySelector(".goal-concluded") && document.querySelector(".goal-conclusion").innerText.includes("12")`)
			b.until("the tree and the board", `document.querySelectorAll(".tree-done").length === 2 && document.querySelectorAll(".goal-task-completed").length === 2`)
			b.has(".goal-event-opened")
			b.shot("goals-end-"+name, true)
			if s.width == desk.width {
				b.look("goal")
				b.open("/goals")
				b.look("goals")
			}
			b.clean("goals")
		})
	}
}
