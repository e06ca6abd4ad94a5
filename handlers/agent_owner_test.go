package handlers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/hub"
)

func TestOwner_StatusIsSetAndShown(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	s.agentOf(ann, "echo", hub.Public)
	bob.get("/agents/echo/owner").is(http.StatusForbidden)
	s.guest().get("/agents/echo/owner").leads("/login?next=%2Fagents%2Fecho%2Fowner")
	bob.post("/agents/echo/status", "state", "withdrawn").is(http.StatusForbidden)
	ann.post("/agents/echo/status", "state", "deprecated", "message", "Use calc instead.").leads("/agents/echo/owner?done=status#status")
	p := bob.get("/agents/echo").is(http.StatusOK)
	if !p.says("deprecated") || !p.says("Use calc instead.") || !p.has("textarea", "name", "text") {
		t.Error("a deprecated agent does not say what to use, or takes no work")
	}
	// A mistake leaves what was typed where it was.
	p = ann.post("/agents/echo/status", "state", "gone", "message", "Bye.").is(http.StatusBadRequest)
	p.field("message", "Bye.", "")
	if !p.has("p", "id", "state-error") {
		t.Error("no word of what is wrong with the status")
	}
	ann.post("/agents/echo/status", "state", "withdrawn", "message", "It moved.").is(http.StatusSeeOther)
	if p := bob.get("/agents/echo").is(http.StatusOK); p.has("textarea", "name", "text") || !p.says("It moved.") || p.says("agentsite chat") {
		t.Error("a withdrawn agent is offered")
	}
	ann.post("/agents/echo/status", "state", "active", "message", "ignored").is(http.StatusSeeOther)
	if p := bob.get("/agents/echo"); !p.has("textarea", "name", "text") || p.says("ignored") {
		t.Error("put back, it is not as before")
	}
}

func TestOwner_OperatorHelpsButReadsNoText(t *testing.T) {
	s := newSite(t, account.Open)
	op, ann := s.operator("root-op"), s.person("ann")
	s.agentOf(ann, "echo", hub.Public)
	p := op.get("/agents/echo/owner").is(http.StatusOK)
	if p.says("agentsite-owner=") || !p.says("ann") {
		t.Error("the operator is shown a token of their own as if it proved something")
	}
	if p := ann.get("/agents/echo/owner").is(http.StatusOK); !p.says("agentsite-owner=") || !p.says("https://echo.example/.well-known/agentsite-owner") {
		t.Error("the owner is not told how to prove the address")
	}
	op.get("/agents/echo/owner/calls/01M7WX0Q9XPGPEDS3VANT2MVZ3").is(http.StatusForbidden)
}

func TestOwner_HeldIsForTheOperatorAlone(t *testing.T) {
	s := newSite(t, account.Open)
	op, ann := s.operator("root-op"), s.person("ann")
	s.agentOf(ann, "echo", hub.Public)
	op.post("/admin/agents/echo/withdraw", "message", "Spam.", "back", "reports").leads("/admin/reports")
	if p := ann.get("/agents/echo/owner").is(http.StatusOK); p.has("form", "action", "/agents/echo/status") || p.has("form", "action", "/admin/agents/echo/restore") || !p.says("Spam.") {
		t.Error("the owner is offered to put back what the operator withdrew")
	}
	ann.post("/agents/echo/status", "state", "active").is(http.StatusForbidden)
	if p := op.get("/agents/echo/owner").is(http.StatusOK); p.has("form", "action", "/agents/echo/status") || !p.has("form", "action", "/admin/agents/echo/restore") {
		t.Error("the operator is not offered to give it back")
	}
	op.post("/admin/agents/echo/restore").leads("/admin/agents")
	if p := ann.get("/agents/echo/owner").is(http.StatusOK); !p.has("form", "action", "/agents/echo/status") {
		t.Error("given back, its owner still cannot set its status")
	}
}

func TestReport_NeedsAReasonAndReachesTheOperator(t *testing.T) {
	s := newSite(t, account.Open)
	op, ann, bob := s.operator("root-op"), s.person("ann"), s.person("bob")
	s.agentOf(ann, "echo", hub.Public)
	if p := bob.post("/agents/echo/report").is(http.StatusBadRequest); !p.has("p", "id", "reason-error") {
		t.Error("no word of the missing reason")
	}
	bob.post("/agents/echo/report", "reason", "other", "text", " ").is(http.StatusBadRequest).field("text", "", "say what is wrong")
	bob.post("/agents/echo/report", "reason", "spam", "text", "Buy <b>now</b>").leads("/agents/echo/report?done=1")
	s.guest().post("/agents/echo/report", "reason", "broken").leads("/agents/echo/report?done=1")
	p := op.get("/admin/reports").is(http.StatusOK)
	if len(p.all("li", "class", "report")) != 2 || !p.says("Buy <b>now</b>") || !p.says("a visitor") {
		t.Errorf("the operator sees %s", words(p.one("main")))
	}
	bob.get("/admin/reports").is(http.StatusForbidden)
	action := ""
	for _, f := range p.all("form") {
		for _, a := range f.Attr {
			if a.Key == "action" && strings.HasSuffix(a.Val, "/close") {
				action = a.Val
			}
		}
	}
	p = op.post(action, "outcome", strings.Repeat("x", 301)).is(http.StatusBadRequest)
	if !p.says("at most 300") {
		t.Error("no word of an outcome that is too long")
	}
	op.post(action, "outcome", "Looked at it.").leads("/admin/reports")
	if p := op.get("/admin/reports?closed=1").is(http.StatusOK); !p.says("Looked at it.") || !p.says("root-op") {
		t.Error("the closed one is not kept")
	}
}

func TestStatChart_DrawsDays(t *testing.T) {
	t.Parallel()
	today := time.Now().UTC().Truncate(24 * time.Hour)
	p := statChart([]hub.Day{{Day: today.AddDate(0, 0, -40), Calls: 9}, {Day: today.AddDate(0, 0, -29), Calls: 1}, {Day: today, Calls: 4, Failed: 1}})
	if len(p.Bars) != 3 || p.Bars[0].X != "0" || p.Bars[1].X != "290" || p.Bars[2].State != "failed" {
		t.Errorf("bars: %+v", p.Bars)
	}
}

func TestWirePairs_PutAnswersBesideRequests(t *testing.T) {
	t.Parallel()
	got := wirePairs([]hub.Trace{{Sent: true, Head: "POST /a", Body: `{"a":1}`, Size: 7}, {Head: "200", Body: "half", Size: 4096}, {Head: "again"}, {Sent: true, Head: "GET /b"}})
	if len(got) != 3 || got[0].Sent.Head != "POST /a" || got[0].Sent.Body != "{\n  \"a\": 1\n}" || got[0].Got.Cut != "The first 4 bytes of 4 KiB." || got[1].Sent != nil || got[2].Got != nil {
		t.Errorf("pairs: %+v", got)
	}
}
