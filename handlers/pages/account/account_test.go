package account_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/ident"
	"agentsite/internal/testing/sitetest"
)

func TestAccount_TokenIsShownOnce(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	p := ann.Post("/account/tokens", "label", "laptop", "scopes", "chat:read", "scopes", "chat:write", "expires", "30d").Is(http.StatusOK)
	token := sitetest.Words(sitetest.Page{T: t, Doc: p.One("*", "class", "new-secret")}.One("code"))
	actor, err := s.Accounts.Authenticate(t.Context(), token, "192.0.2.9")
	if err != nil || actor.Name != "ann" || !actor.May(ident.ChatRead) || actor.May(ident.AgentsWrite) {
		t.Fatalf("%q is %+v, %v", token, actor, err)
	}
	p = ann.Get("/account").Is(http.StatusOK)
	if strings.Contains(p.Body, token) || !p.Says("chat:read, chat:write") {
		t.Error("shown again, or not listed")
	}
	action := ""
	for _, f := range p.All("form") {
		if strings.HasSuffix(sitetest.Attribute(f, "action"), "/revoke") {
			action = sitetest.Attribute(f, "action")
		}
	}
	s.Person("bob").Post(action).Is(http.StatusNotFound)
	ann.Post(action).Leads("/account?done=revoked")
	if _, err := s.Accounts.Authenticate(t.Context(), token, "192.0.2.9"); err == nil {
		t.Error("still valid")
	}
}

func TestAccount_TokenFormKeepsWhatWasChosen(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	p := ann.Post("/account/tokens", "label", "laptop", "expires", "7d").Is(http.StatusBadRequest)
	p.Field("label", "laptop", "")
	if !strings.Contains(sitetest.Words(p.One("*", "id", "scopes-error")), "at least one") {
		t.Error("scopes are not asked for")
	}
	if !p.Has("option", "value", "7d", "selected", "") {
		t.Error("the time is lost")
	}
	ann.Post("/account/tokens", "label", strings.Repeat("x", 101), "scopes", "tasks", "expires", "9y").Is(http.StatusBadRequest).Field("label", strings.Repeat("x", 101), "")
	ann.Post("/account/tokens", "label", strings.Repeat("x", 101), "scopes", "tasks", "expires", "7d").Is(http.StatusBadRequest).Field("label", strings.Repeat("x", 101), "at most 100")
	s.Guest().Post("/account/tokens", "label", "x", "scopes", "tasks", "expires", "7d").Is(http.StatusUnauthorized)
	if ann.Get("/account").Has("input", "value", "admin") {
		t.Error("a person is offered the operator's rights")
	}
}

func TestAccount_PasswordAndSessions(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	p := ann.Post("/account/password", "current_password", "wrong", "password", "short").Is(http.StatusBadRequest)
	p.Field("current_password", "", "not your present")
	p.Field("password", "", "10")
	ann.Post("/account/password", "current_password", sitetest.GoodPassword, "password", "a wholly new password").Leads("/account?done=password")
	if p := ann.Get("/account?done=password").Is(http.StatusOK); !p.Says("password is changed") {
		t.Error("does not say that it worked")
	}
	old := ann.Cookie
	ann.Post("/account/sessions/end").Leads("/login")
	ann.Cookie = old
	ann.Get("/account").Is(http.StatusSeeOther)
	s.Guest().Post("/account/password", "current_password", "x", "password", "y").Is(http.StatusUnauthorized)
	s.Guest().Post("/account/sessions/end").Is(http.StatusUnauthorized)
}

func TestAdmin_PeopleAreFoundDisabledAndEnabled(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	op, ann := s.Operator("root-op"), s.Person("ann")
	s.Person("anton")
	s.Person("zoe")
	if p := op.Get("/admin/people?q=an"); len(p.All("li", "class", "row")) != 2 {
		t.Errorf("%d people called an…", len(p.All("li", "class", "row")))
	}
	if p := op.Get("/admin").Is(http.StatusOK); !p.Says("Conversations") || !p.Says("1.2.3") {
		t.Error("the overview tells nothing")
	}
	op.Post("/admin/people/ann/disable").Leads("/admin/people")
	ann.Get("/account").Is(http.StatusSeeOther)
	s.Guest().Post("/login", "name", "ann", "password", sitetest.GoodPassword).Is(http.StatusUnauthorized)
	op.Post("/admin/people/ann/enable").Leads("/admin/people")
	s.Guest().Post("/login", "name", "ann", "password", sitetest.GoodPassword).Leads("/")
	op.Post("/admin/people/root-op/disable").Is(http.StatusConflict)
	s.Person("eve").Post("/admin/people/ann/disable").Is(http.StatusForbidden)
	op.Post("/admin/invites", "note", strings.Repeat("n", 101)).Is(http.StatusBadRequest).Field("note", strings.Repeat("n", 101), "at most 100")
}
