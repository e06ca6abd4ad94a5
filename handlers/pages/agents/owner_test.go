package agents_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/hub"
	"agentsite/internal/testing/sitetest"
)

func TestOwner_StatusIsSetAndShown(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.AgentOf(ann, "echo", hub.Public)
	bob.Get("/agents/echo/owner").Is(http.StatusForbidden)
	bob.Get("/agents/echo/owner/work").Is(http.StatusForbidden)
	ann.Get("/agents/echo/owner/work").Is(http.StatusOK)
	s.Guest().Get("/agents/echo/owner").Leads("/login?next=%2Fagents%2Fecho%2Fowner")
	bob.Post("/agents/echo/status", "state", "withdrawn").Is(http.StatusForbidden)
	ann.Post("/agents/echo/status", "state", "deprecated", "message", "Use calc instead.").Leads("/agents/echo/owner?done=status#status")
	p := bob.Get("/agents/echo").Is(http.StatusOK)
	if !p.Says("deprecated") || !p.Says("Use calc instead.") || !p.Has("textarea", "name", "text") {
		t.Error("a deprecated agent does not say what to use, or takes no work")
	}
	// A mistake leaves what was typed where it was.
	p = ann.Post("/agents/echo/status", "state", "gone", "message", "Bye.").Is(http.StatusBadRequest)
	p.Field("message", "Bye.", "")
	if !p.Has("p", "id", "state-error") {
		t.Error("no word of what is wrong with the status")
	}
	ann.Post("/agents/echo/status", "state", "withdrawn", "message", "It moved.").Is(http.StatusSeeOther)
	if p := bob.Get("/agents/echo").Is(http.StatusOK); p.Has("textarea", "name", "text") || !p.Says("It moved.") || p.Says("agentsite chat") {
		t.Error("a withdrawn agent is offered")
	}
	ann.Post("/agents/echo/status", "state", "active", "message", "ignored").Is(http.StatusSeeOther)
	if p := bob.Get("/agents/echo"); !p.Has("textarea", "name", "text") || p.Says("ignored") {
		t.Error("put back, it is not as before")
	}
}

func TestOwner_OperatorHelpsButReadsNoText(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	op, ann := s.Operator("root-op"), s.Person("ann")
	s.AgentOf(ann, "echo", hub.Public)
	p := op.Get("/agents/echo/owner").Is(http.StatusOK)
	if p.Says("agentsite-owner=") || !p.Says("ann") {
		t.Error("the operator is shown a token of their own as if it proved something")
	}
	if p := ann.Get("/agents/echo/owner").Is(http.StatusOK); !p.Says("agentsite-owner=") || !p.Says("https://echo.example/.well-known/agentsite-owner") {
		t.Error("the owner is not told how to prove the address")
	}
	op.Get("/agents/echo/owner/calls/01M7WX0Q9XPGPEDS3VANT2MVZ3").Is(http.StatusForbidden)
}

func TestOwner_HeldIsForTheOperatorAlone(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	op, ann := s.Operator("root-op"), s.Person("ann")
	s.AgentOf(ann, "echo", hub.Public)
	op.Post("/admin/agents/echo/withdraw", "message", "Spam.", "back", "reports").Leads("/admin/reports")
	if p := ann.Get("/agents/echo/owner").Is(http.StatusOK); p.Has("form", "action", "/agents/echo/status") || p.Has("form", "action", "/admin/agents/echo/restore") || !p.Says("Spam.") {
		t.Error("the owner is offered to put back what the operator withdrew")
	}
	ann.Post("/agents/echo/status", "state", "active").Is(http.StatusForbidden)
	if p := op.Get("/agents/echo/owner").Is(http.StatusOK); p.Has("form", "action", "/agents/echo/status") || !p.Has("form", "action", "/admin/agents/echo/restore") {
		t.Error("the operator is not offered to give it back")
	}
	op.Post("/admin/agents/echo/restore").Leads("/admin/agents")
	if p := ann.Get("/agents/echo/owner").Is(http.StatusOK); !p.Has("form", "action", "/agents/echo/status") {
		t.Error("given back, its owner still cannot set its status")
	}
}

func TestReport_NeedsAReasonAndReachesTheOperator(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	op, ann, bob := s.Operator("root-op"), s.Person("ann"), s.Person("bob")
	s.AgentOf(ann, "echo", hub.Public)
	if p := bob.Post("/agents/echo/report").Is(http.StatusBadRequest); !p.Has("p", "id", "reason-error") {
		t.Error("no word of the missing reason")
	}
	bob.Post("/agents/echo/report", "reason", "other", "text", " ").Is(http.StatusBadRequest).Field("text", "", "say what is wrong")
	bob.Post("/agents/echo/report", "reason", "spam", "text", "Buy <b>now</b>").Leads("/agents/echo/report?done=1")
	s.Guest().Post("/agents/echo/report", "reason", "broken").Leads("/agents/echo/report?done=1")
	p := op.Get("/admin/reports").Is(http.StatusOK)
	if len(p.All("li", "class", "report")) != 2 || !p.Says("Buy <b>now</b>") || !p.Says("a visitor") {
		t.Errorf("the operator sees %s", sitetest.Words(p.One("main")))
	}
	bob.Get("/admin/reports").Is(http.StatusForbidden)
	action := ""
	for _, f := range p.All("form") {
		for _, a := range f.Attr {
			if a.Key == "action" && strings.HasSuffix(a.Val, "/close") {
				action = a.Val
			}
		}
	}
	p = op.Post(action, "outcome", strings.Repeat("x", 301)).Is(http.StatusBadRequest)
	if !p.Says("at most 300") {
		t.Error("no word of an outcome that is too long")
	}
	op.Post(action, "outcome", "Looked at it.").Leads("/admin/reports")
	if p := op.Get("/admin/reports?closed=1").Is(http.StatusOK); !p.Says("Looked at it.") || !p.Says("root-op") {
		t.Error("the closed one is not kept")
	}
}
