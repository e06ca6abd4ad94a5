package handlers

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/ident"
)

func TestAccount_TokenIsShownOnce(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	p := ann.post("/account/tokens", "label", "laptop", "scopes", "chat:read", "scopes", "chat:write", "expires", "30d").is(http.StatusOK)
	token := words(page{t: t, doc: p.one("*", "class", "new-secret")}.one("code"))
	actor, err := s.accounts.Authenticate(t.Context(), token, "192.0.2.9")
	if err != nil || actor.Name != "ann" || !actor.May(ident.ChatRead) || actor.May(ident.AgentsWrite) {
		t.Fatalf("%q is %+v, %v", token, actor, err)
	}
	p = ann.get("/account").is(http.StatusOK)
	if strings.Contains(p.body, token) || !p.says("chat:read, chat:write") {
		t.Error("shown again, or not listed")
	}
	action := ""
	for _, f := range p.all("form") {
		if strings.HasSuffix(attribute(f, "action"), "/revoke") {
			action = attribute(f, "action")
		}
	}
	s.person("bob").post(action).is(http.StatusNotFound)
	ann.post(action).leads("/account?done=revoked")
	if _, err := s.accounts.Authenticate(t.Context(), token, "192.0.2.9"); err == nil {
		t.Error("still valid")
	}
}

func TestAccount_TokenFormKeepsWhatWasChosen(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	p := ann.post("/account/tokens", "label", "laptop", "expires", "7d").is(http.StatusBadRequest)
	p.field("label", "laptop", "")
	if !strings.Contains(words(p.one("*", "id", "scopes-error")), "at least one") {
		t.Error("scopes are not asked for")
	}
	if !p.has("option", "value", "7d", "selected", "") {
		t.Error("the time is lost")
	}
	ann.post("/account/tokens", "label", strings.Repeat("x", 101), "scopes", "tasks", "expires", "9y").is(http.StatusBadRequest).field("label", strings.Repeat("x", 101), "")
	ann.post("/account/tokens", "label", strings.Repeat("x", 101), "scopes", "tasks", "expires", "7d").is(http.StatusBadRequest).field("label", strings.Repeat("x", 101), "at most 100")
	s.guest().post("/account/tokens", "label", "x", "scopes", "tasks", "expires", "7d").is(http.StatusUnauthorized)
	if ann.get("/account").has("input", "value", "admin") {
		t.Error("a person is offered the operator's rights")
	}
}

func TestAccount_PasswordAndSessions(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	p := ann.post("/account/password", "current_password", "wrong", "password", "short").is(http.StatusBadRequest)
	p.field("current_password", "", "not your present")
	p.field("password", "", "10")
	ann.post("/account/password", "current_password", goodPassword, "password", "a wholly new password").leads("/account?done=password")
	if p := ann.get("/account?done=password").is(http.StatusOK); !p.says("password is changed") {
		t.Error("does not say that it worked")
	}
	old := ann.cookie
	ann.post("/account/sessions/end").leads("/login")
	ann.cookie = old
	ann.get("/account").is(http.StatusSeeOther)
	s.guest().post("/account/password", "current_password", "x", "password", "y").is(http.StatusUnauthorized)
	s.guest().post("/account/sessions/end").is(http.StatusUnauthorized)
}

func TestAdmin_PeopleAreFoundDisabledAndEnabled(t *testing.T) {
	s := newSite(t, account.Open)
	op, ann := s.operator("root-op"), s.person("ann")
	s.person("anton")
	s.person("zoe")
	if p := op.get("/admin/people?q=an"); len(p.all("li", "class", "row")) != 2 {
		t.Errorf("%d people called an…", len(p.all("li", "class", "row")))
	}
	if p := op.get("/admin").is(http.StatusOK); !p.says("people") || !p.says("1.2.3") {
		t.Error("the overview tells nothing")
	}
	op.post("/admin/people/ann/disable").leads("/admin/people")
	ann.get("/account").is(http.StatusSeeOther)
	s.guest().post("/login", "name", "ann", "password", goodPassword).is(http.StatusUnauthorized)
	op.post("/admin/people/ann/enable").leads("/admin/people")
	s.guest().post("/login", "name", "ann", "password", goodPassword).leads("/")
	op.post("/admin/people/root-op/disable").is(http.StatusConflict)
	s.person("eve").post("/admin/people/ann/disable").is(http.StatusForbidden)
	op.post("/admin/invites", "note", strings.Repeat("n", 101)).is(http.StatusBadRequest).field("note", strings.Repeat("n", 101), "at most 100")
}
