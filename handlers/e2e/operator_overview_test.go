package e2e

import (
	"net/http"
	"net/url"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestOperator_SeesWhatNeedsAttention shows a report on the overview and as a count on its tab, until the operator closes
// it, and reads the figures of each day as plots and as a table.
func TestOperator_SeesWhatNeedsAttention(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for _, name := range []string{"desk", "phone", "phone without scripts"} {
		s := screens[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			client := p.Operator(t, "op")
			p.User(t, "ann").Must(http.MethodPost, "/api/v1/agents/calc/report",
				map[string]any{"reason": "broken", "text": "It is slow."}, http.StatusNoContent)
			op := visit(t, root, p, s).as(client)
			op.open("/admin")
			op.says("1 report about an agent waits.")
			if n := eval[int](op, `document.querySelectorAll(".daily-plot svg[role=img] desc").length`); n != 5 {
				t.Errorf("%d plots with a text", n)
			}
			fits := `document.documentElement.scrollWidth <= document.documentElement.clientWidth`
			if !eval[bool](op, fits) {
				t.Error("the overview is wider than the screen")
			}
			if !eval[bool](op, `[...document.querySelectorAll(".tabs a")].every((a) => {
				const at = a.getBoundingClientRect();
				return at.left >= 0 && at.right <= document.documentElement.clientWidth;
			})`) {
				t.Error("a tab is out of the screen")
			}
			op.says("Agents are all of this portal, also unlisted and private ones.")
			op.shot("operator-overview-"+name, true)
			op.click(".daily-plots ~ .more-notes summary")
			op.has(".daily-table tbody tr:nth-child(30)")
			if !eval[bool](op, fits) {
				t.Error("the table makes the page wider than the screen")
			}
			op.shot("operator-overview-table-"+name, true)
			op.press(`.matter a[href="/admin/reports"]`)
			if got := eval[string](op, `document.querySelector('.tabs a[href="/admin/reports"] .due').innerText`); got == "" {
				t.Error("the tab has no count")
			}
			op.has(`form[action$="/close"]`)
			client.Must(http.MethodPost, eval[string](op, `document.querySelector('form[action$="/close"]').getAttribute("action")`),
				url.Values{"outcome": {"Seen."}}, http.StatusSeeOther)
			op.open("/admin")
			op.until("no report", `!document.body.innerText.includes("about an agent waits")`)
			op.until("no count", `!document.querySelector('.tabs a[href="/admin/reports"] .due')`)
			op.press(`form[action="/admin/examine"] button`)
			op.says("Needs attention")
			op.clean("the overview")
		})
	}
}
