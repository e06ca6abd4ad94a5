package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/account"
)

func TestLogin_LeadsOnlyToOurOwnPages(t *testing.T) {
	s := newSite(t, account.Open)
	s.person("ann")
	for next, want := range map[string]string{
		"": "/", "/chat": "/chat", "/agents?q=a%20b": "/agents?q=a%20b", "/chat/01X#m3": "/chat/01X#m3",
		"//evil.example": "/", `/\evil.example`: "/", `\\evil.example`: "/", "https://evil.example": "/", "https:evil.example": "/", "http:///evil.example": "/",
		"javascript:alert(1)": "/", "evil.example": "/", "/%2f%2fevil.example": "/", "/%5cevil.example": "/", "/\tevil": "/", "/\r\nSet-Cookie: a=b": "/", "///evil.example": "/", "/..//evil.example": "/evil.example",
	} {
		b := s.guest()
		p := b.post("/login", "name", "ann", "password", goodPassword, "next", next)
		if p.status != http.StatusSeeOther || p.location != want {
			t.Errorf("next=%q: %d to %q, want %q", next, p.status, p.location, want)
		}
		if hidden := s.guest().get("/login?next="+url.QueryEscape(next)).all("input", "name", "next"); len(hidden) == 1 && ownPath(attribute(hidden[0], "value"), "bad") == "bad" {
			t.Errorf("the form carries %q", attribute(hidden[0], "value"))
		}
		if b.cookie == "" {
			t.Error("no session")
		}
	}
}

func TestLogin_WrongIsTheSameForEverybody(t *testing.T) {
	s := newSite(t, account.Open)
	s.person("ann")
	a := s.guest().post("/login", "name", "ann", "password", "wrong", "next", "/chat").is(http.StatusUnauthorized)
	b := s.guest().post("/login", "name", "nobody", "password", "wrong", "next", "/chat").is(http.StatusUnauthorized)
	same(t, a, b, "ann", "nobody")
	a.field("name", "ann", "")
	a.field("password", "", "")
	if attribute(a.one("input", "name", "next"), "value") != "/chat" {
		t.Error("where to go next is lost")
	}
	guest := s.guest()
	for range 40 {
		if p := guest.post("/login", "name", "ann", "password", ""); p.status == http.StatusTooManyRequests {
			if p.header.Get("Retry-After") == "" || !p.has("input", "name", "password") {
				t.Error("does not say when to come back")
			}
			return
		}
	}
	t.Error("guessing is not limited")
}

func TestLogout_EndsTheSession(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	old := ann.cookie
	ann.post("/logout").leads("/")
	if ann.cookie != "" {
		t.Error("the cookie stays")
	}
	ann.cookie = old
	ann.get("/account").is(http.StatusSeeOther)
}

func TestSignup_FollowsThePolicy(t *testing.T) {
	form := []string{"name", "ann", "password", goodPassword}
	s := newSite(t, account.Open)
	b := s.guest()
	b.post("/signup", form...).leads("/")
	b.get("/account").is(http.StatusOK)
	p := s.guest().post("/signup", form...).is(http.StatusConflict)
	p.field("name", "ann", "taken")
	p = s.guest().post("/signup", "name", "Root!", "password", "short").is(http.StatusBadRequest)
	p.field("name", "Root!", "a–z")
	p.field("password", "", "10")

	s = newSite(t, account.Closed)
	if p := s.guest().get("/signup").is(http.StatusOK); p.has("input", "name", "password") {
		t.Error("a closed portal shows a form")
	}
	s.guest().post("/signup", form...).is(http.StatusForbidden)

	s = newSite(t, account.Invite)
	p = s.guest().post("/signup", form...).is(http.StatusForbidden)
	p.field("invite", "", "needed")
	p = s.guest().post("/signup", append(form, "invite", "agsi_wrong")...).is(http.StatusBadRequest)
	p.field("invite", "agsi_wrong", "unknown")
	op := s.operator("root-op")
	link := words(op.post("/admin/invites", "note", "for ann").is(http.StatusOK).one("code"))
	path, ok := strings.CutPrefix(link, "http://portal.test")
	if !ok {
		t.Fatalf("the link is %q", link)
	}
	code := attribute(s.guest().get(path).is(http.StatusOK).one("input", "id", "invite"), "value")
	s.guest().post("/signup", append(form, "invite", code)...).leads("/")
	s.guest().post("/signup", "name", "eve", "password", goodPassword, "invite", code).is(http.StatusBadRequest)
	if p := op.get("/admin/invites"); strings.Contains(p.body, code) || p.says("for ann") {
		t.Error("a used invitation is still listed")
	}
}

func TestSignup_OperatorsLinkWorksOnce(t *testing.T) {
	s := newSite(t, account.Closed)
	secret, err := s.accounts.Setup(t.Context())
	if err != nil || secret == "" {
		t.Fatal(err)
	}
	path := "/signup?setup=" + secret
	for range 2 { // looking does not use it up
		if p := s.guest().get(path).is(http.StatusOK); !p.says("Set up this portal") || attribute(p.one("input", "name", "setup"), "value") != secret {
			t.Fatal("no form")
		}
	}
	b := s.guest()
	p := b.post("/signup", "name", "x", "password", goodPassword, "setup", secret).is(http.StatusBadRequest)
	p.field("name", "x", "")
	if attribute(p.one("input", "name", "setup"), "value") != secret {
		t.Error("a mistake loses the link")
	}
	b.post("/signup", "name", "boss", "password", goodPassword, "setup", secret).leads("/admin")
	b.get("/admin").is(http.StatusOK)
	if p := s.guest().post("/signup", "name", "eve", "password", goodPassword, "setup", secret).is(http.StatusBadRequest); !p.says("used or expired") {
		t.Error("does not say why")
	}
}

func TestReset_LinkWorksOnce(t *testing.T) {
	s := newSite(t, account.Open)
	ann, op := s.person("ann"), s.operator("root-op")
	p := op.post("/admin/people/ann/reset").is(http.StatusOK)
	link := words(p.one("*", "class", "new-secret").LastChild)
	at := strings.Index(link, "http://portal.test/reset?link=")
	if at < 0 {
		t.Fatalf("no link in %q", link)
	}
	path := strings.TrimPrefix(strings.Fields(link[at:])[0], "http://portal.test")
	b := s.guest()
	token := attribute(b.get(path).is(http.StatusOK).one("input", "name", "token"), "value")
	b.post("/reset", "token", token, "password", "short").is(http.StatusBadRequest).field("password", "", "10")
	b.post("/reset", "token", token, "password", "a wholly new password").leads("/account?done=password")
	b.get("/account").is(http.StatusOK)
	ann.get("/account").is(http.StatusSeeOther) // other sessions have ended
	s.guest().post("/login", "name", "ann", "password", "a wholly new password").leads("/")
	if p := s.guest().post("/reset", "token", token, "password", "yet another password").is(http.StatusNotFound); p.has("input", "name", "password") {
		t.Error("a used link shows a form")
	}
}

// box keeps mail instead of sending it.
type box struct{ mails chan string }

func (b *box) Send(_ context.Context, to, _, text string) error {
	b.mails <- to + "\n" + text
	return nil
}

func TestResetMail_TellsNobodyWhoHasAnAccount(t *testing.T) {
	mails := &box{make(chan string, 8)}
	s := newSite(t, account.Open, func(c *account.Config) { c.Mailer = mails })
	if _, err := s.accounts.Add(t.Context(), system, account.SignUp{Name: "ann", Password: goodPassword, Email: "ann@example.org"}, false); err != nil {
		t.Fatal(err)
	}
	b := s.guest()
	b.get("/reset").is(http.StatusOK).one("form", "action", "/reset/mail")
	same(t, b.post("/reset/mail", "name", "ann").is(http.StatusOK), b.post("/reset/mail", "name", "nobody").is(http.StatusOK), "ann", "nobody")
	go s.accounts.Run(t.Context())
	if m := <-mails.mails; !strings.HasPrefix(m, "ann@example.org\n") || !strings.Contains(m, "/reset?link=") {
		t.Errorf("sent %q", m)
	}
	if s := newSite(t, account.Open); s.guest().post("/reset/mail", "name", "ann").status != http.StatusNotFound {
		t.Error("a portal that cannot mail takes the form")
	}
}

func TestGuestsOff_OnlyLookAround(t *testing.T) {
	s := newSite(t, account.Open, func(c *account.Config) { c.Guests = false })
	b := s.guest()
	if p := b.get("/agents/guide").is(http.StatusOK); p.has("textarea", "name", "text") || !p.says("Log in to talk") {
		t.Error("a visitor is asked to talk")
	}
	b.get("/chat").leads("/login?next=%2Fchat")
	if p := b.post("/chat", "agent", "guide", "text", "Hello").is(http.StatusUnauthorized); !p.says("Sign in to talk") || b.cookie != "" {
		t.Error("a visitor talks")
	}
}
