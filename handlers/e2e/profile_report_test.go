package e2e

import (
	"net/http"
	"net/url"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestReport_OperatorWithdraws has a visitor report an agent and the operator
// take it out of use, which its owner cannot undo.
func TestReport_OperatorWithdraws(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	far := newModel(t).answers(func(string) []string { return []string{"Yes."} })
	op, ada, bea := p.Operator(t, "root-op"), p.User(t, "ada"), p.User(t, "bea")
	register(ada, registration{Name: "bargain", Title: "Bargain", Description: "Buy now.", Endpoint: far.base()})

	g := visit(t, root, p, screen{width: 390, height: 844, phone: true, scripts: true})
	g.allow("400 (Bad Request)")
	g.open("/agents/bargain")
	g.press(`a[href="/agents/bargain/report"]`)
	g.click(`label[for="reason-other"]`)
	g.press(".report-form button")
	g.wrong("text")
	g.fill("#text", "It sells <i>shoes</i>.\nTo everybody.")
	g.look("report-form")
	g.press(".report-form button")
	g.says("Thank you")
	g.look("report-done")
	bea.Must(http.MethodPost, "/agents/bargain/report", url.Values{"reason": {"spam"}}, http.StatusSeeOther)

	o := visit(t, root, p, desk).as(op)
	o.open("/admin/reports")
	o.until("two reports", `document.querySelectorAll(".report").length === 2`)
	o.says("It sells <i>shoes</i>.")
	o.look("admin-reports")
	o.click(".report:first-child .confirm summary")
	o.fill(".report:first-child .confirm input[name=message]", "It is advertising.")
	o.press(".report:first-child .confirm form button")
	o.until("both marked", `[...document.querySelectorAll(".report h3")].every((h) => h.innerText.includes("withdrawn"))`)
	o.fill(".report:first-child input[name=outcome]", "It is gone.")
	o.press(".report:first-child .report-close button")
	o.until("one report", `document.querySelectorAll(".report").length === 1`)
	o.press(".report:first-child .report-close button")
	o.says("No open reports")
	o.open("/admin/reports?closed=1")
	o.says("It is gone.")
	o.look("admin-reports-closed")

	a := visit(t, root, p, desk).as(ada)
	a.open("/agents/bargain")
	a.says("The operator of this portal withdrew it")
	a.says("It is advertising.")
	a.until("nothing to talk to", `!document.querySelector("#text")`)
	a.look("profile-held")
	a.open("/agents/bargain/owner")
	a.until("no way to put it back", `!document.querySelector('form[action$="/status"]')`)
	ada.Must(http.MethodPost, "/agents/bargain/status", url.Values{"state": {"active"}}, http.StatusForbidden)
	ada.Must(http.MethodPatch, "/api/v1/agents/bargain", map[string]any{"status": map[string]string{"state": "active", "message": ""}}, http.StatusForbidden)
	bea.Must(http.MethodPost, "/chat", url.Values{"agent": {"bargain"}, "text": {"Hello"}, "told": {"bargain"}}, http.StatusConflict)
	op.Must(http.MethodPost, "/admin/agents/bargain/restore", url.Values{}, http.StatusSeeOther)
	bea.Must(http.MethodPost, "/chat", url.Values{"agent": {"bargain"}, "text": {"Hello"}, "told": {"bargain"}}, http.StatusSeeOther)
}
