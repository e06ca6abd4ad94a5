package account_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/handlers/request"
	"agentsite/internal/account"
	"agentsite/internal/testing/sitetest"
)

func TestLogin_LeadsOnlyToOurOwnPages(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	s.Person("ann")
	for next, want := range map[string]string{
		"": "/", "/chat": "/chat", "/agents?q=a%20b": "/agents?q=a%20b", "/chat/01X#m3": "/chat/01X#m3",
		"//evil.example": "/", `/\evil.example`: "/", `\\evil.example`: "/", "https://evil.example": "/", "https:evil.example": "/", "http:///evil.example": "/",
		"javascript:alert(1)": "/", "evil.example": "/", "/%2f%2fevil.example": "/", "/%5cevil.example": "/", "/\tevil": "/", "/\r\nSet-Cookie: a=b": "/", "///evil.example": "/", "/..//evil.example": "/evil.example",
	} {
		b := s.Guest()
		p := b.Post("/login", "name", "ann", "password", sitetest.GoodPassword, "next", next)
		if p.Status != http.StatusSeeOther || p.Location != want {
			t.Errorf("next=%q: %d to %q, want %q", next, p.Status, p.Location, want)
		}
		if hidden := s.Guest().Get("/login?next="+url.QueryEscape(next)).All("input", "name", "next"); len(hidden) == 1 && request.OwnPath(sitetest.Attribute(hidden[0], "value"), "bad") == "bad" {
			t.Errorf("the form carries %q", sitetest.Attribute(hidden[0], "value"))
		}
		if b.Cookie == "" {
			t.Error("no session")
		}
	}
}

func TestLogin_WrongIsTheSameForEverybody(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	s.Person("ann")
	a := s.Guest().Post("/login", "name", "ann", "password", "wrong", "next", "/chat").Is(http.StatusUnauthorized)
	b := s.Guest().Post("/login", "name", "nobody", "password", "wrong", "next", "/chat").Is(http.StatusUnauthorized)
	sitetest.Same(t, a, b, "ann", "nobody")
	a.Field("name", "ann", "")
	a.Field("password", "", "")
	if sitetest.Attribute(a.One("input", "name", "next"), "value") != "/chat" {
		t.Error("where to go next is lost")
	}
	guest := s.Guest()
	for range 40 {
		if p := guest.Post("/login", "name", "ann", "password", ""); p.Status == http.StatusTooManyRequests {
			if p.Header.Get("Retry-After") == "" || !p.Has("input", "name", "password") {
				t.Error("does not say when to come back")
			}
			return
		}
	}
	t.Error("guessing is not limited")
}

func TestLogout_EndsTheSession(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	old := ann.Cookie
	ann.Post("/logout").Leads("/")
	if ann.Cookie != "" {
		t.Error("the cookie stays")
	}
	ann.Cookie = old
	ann.Get("/account").Is(http.StatusSeeOther)
}

func TestSignup_FollowsThePolicy(t *testing.T) {
	form := []string{"name", "ann", "password", sitetest.GoodPassword}
	s := sitetest.NewSite(t, account.Open)
	b := s.Guest()
	b.Post("/signup", form...).Leads("/")
	b.Get("/account").Is(http.StatusOK)
	p := s.Guest().Post("/signup", form...).Is(http.StatusConflict)
	p.Field("name", "ann", "taken")
	p = s.Guest().Post("/signup", "name", "Root!", "password", "short").Is(http.StatusBadRequest)
	p.Field("name", "Root!", "a–z")
	p.Field("password", "", "10")

	s = sitetest.NewSite(t, account.Closed)
	if p := s.Guest().Get("/signup").Is(http.StatusOK); p.Has("input", "name", "password") {
		t.Error("a closed portal shows a form")
	}
	s.Guest().Post("/signup", form...).Is(http.StatusForbidden)

	s = sitetest.NewSite(t, account.Invite)
	p = s.Guest().Post("/signup", form...).Is(http.StatusForbidden)
	p.Field("invite", "", "needed")
	p = s.Guest().Post("/signup", append(form, "invite", "agsi_wrong")...).Is(http.StatusBadRequest)
	p.Field("invite", "agsi_wrong", "unknown")
	op := s.Operator("root-op")
	link := sitetest.Words(op.Post("/admin/invites", "note", "for ann").Is(http.StatusOK).One("code"))
	path, ok := strings.CutPrefix(link, "http://portal.test")
	if !ok {
		t.Fatalf("the link is %q", link)
	}
	code := sitetest.Attribute(s.Guest().Get(path).Is(http.StatusOK).One("input", "id", "invite"), "value")
	s.Guest().Post("/signup", append(form, "invite", code)...).Leads("/")
	s.Guest().Post("/signup", "name", "eve", "password", sitetest.GoodPassword, "invite", code).Is(http.StatusBadRequest)
	if p := op.Get("/admin/invites"); strings.Contains(p.Body, code) || p.Says("for ann") {
		t.Error("a used invitation is still listed")
	}
}

func TestSignup_OperatorsLinkWorksOnce(t *testing.T) {
	s := sitetest.NewSite(t, account.Closed)
	secret, err := s.Accounts.Setup(t.Context())
	if err != nil || secret == "" {
		t.Fatal(err)
	}
	path := "/signup?setup=" + secret
	for range 2 { // looking does not use it up
		if p := s.Guest().Get(path).Is(http.StatusOK); !p.Says("Set up this portal") || sitetest.Attribute(p.One("input", "name", "setup"), "value") != secret {
			t.Fatal("no form")
		}
	}
	b := s.Guest()
	p := b.Post("/signup", "name", "x", "password", sitetest.GoodPassword, "setup", secret).Is(http.StatusBadRequest)
	p.Field("name", "x", "")
	if sitetest.Attribute(p.One("input", "name", "setup"), "value") != secret {
		t.Error("a mistake loses the link")
	}
	b.Post("/signup", "name", "boss", "password", sitetest.GoodPassword, "setup", secret).Leads("/admin/welcome")
	b.Get("/admin").Is(http.StatusOK)
	if p := s.Guest().Post("/signup", "name", "eve", "password", sitetest.GoodPassword, "setup", secret).Is(http.StatusBadRequest); !p.Says("used or expired") {
		t.Error("does not say why")
	}
}

func TestReset_LinkWorksOnce(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, op := s.Person("ann"), s.Operator("root-op")
	p := op.Post("/admin/people/ann/reset").Is(http.StatusOK)
	link := sitetest.Words(p.One("*", "class", "new-secret").LastChild)
	at := strings.Index(link, "http://portal.test/reset?link=")
	if at < 0 {
		t.Fatalf("no link in %q", link)
	}
	path := strings.TrimPrefix(strings.Fields(link[at:])[0], "http://portal.test")
	b := s.Guest()
	token := sitetest.Attribute(b.Get(path).Is(http.StatusOK).One("input", "name", "token"), "value")
	b.Post("/reset", "token", token, "password", "short").Is(http.StatusBadRequest).Field("password", "", "10")
	b.Post("/reset", "token", token, "password", "a wholly new password").Leads("/account?done=password")
	b.Get("/account").Is(http.StatusOK)
	ann.Get("/account").Is(http.StatusSeeOther) // other sessions have ended
	s.Guest().Post("/login", "name", "ann", "password", "a wholly new password").Leads("/")
	if p := s.Guest().Post("/reset", "token", token, "password", "yet another password").Is(http.StatusNotFound); p.Has("input", "name", "password") {
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
	s := sitetest.NewSite(t, account.Open, func(c *account.Config) { c.Mailer = mails })
	if _, err := s.Accounts.Add(t.Context(), sitetest.System, account.SignUp{Name: "ann", Password: sitetest.GoodPassword, Email: "ann@example.org"}, false); err != nil {
		t.Fatal(err)
	}
	b := s.Guest()
	b.Get("/reset").Is(http.StatusOK).One("form", "action", "/reset/mail")
	sitetest.Same(t, b.Post("/reset/mail", "name", "ann").Is(http.StatusOK), b.Post("/reset/mail", "name", "nobody").Is(http.StatusOK), "ann", "nobody")
	go s.Accounts.Run(t.Context())
	if m := <-mails.mails; !strings.HasPrefix(m, "ann@example.org\n") || !strings.Contains(m, "/reset?link=") {
		t.Errorf("sent %q", m)
	}
	if s := sitetest.NewSite(t, account.Open); s.Guest().Post("/reset/mail", "name", "ann").Status != http.StatusNotFound {
		t.Error("a portal that cannot mail takes the form")
	}
}

func TestGuestsOff_OnlyLookAround(t *testing.T) {
	s := sitetest.NewSite(t, account.Open, func(c *account.Config) { c.Guests = false })
	b := s.Guest()
	if p := b.Get("/agents/guide").Is(http.StatusOK); p.Has("textarea", "name", "text") || !p.Says("Log in to talk") {
		t.Error("a visitor is asked to talk")
	}
	b.Get("/chat").Leads("/login?next=%2Fchat")
	if p := b.Post("/chat", "agent", "guide", "text", "Hello").Is(http.StatusUnauthorized); !p.Says("Sign in to talk") || b.Cookie != "" {
		t.Error("a visitor talks")
	}
}

// A guest who is sent to the login page reads why, and how to get an account under each policy.
func TestLogIn_SaysWhyAndHowToGetAnAccount(t *testing.T) {
	for policy, hint := range map[account.Policy]string{
		account.Open: "New here? Sign up", account.Closed: "This portal makes no new accounts.",
		account.Invite: "New here? This portal takes new people by invitation: Sign up with an invite code"} {
		s := sitetest.NewSite(t, policy)
		for path, reason := range map[string]string{"/agents/new": "Log in to register one.", "/account": "Log in to see your account.",
			"/goals/new?preview=1&goal=x": "A team works for an account."} {
			p := s.Guest().Get("/login?next=" + url.QueryEscape(path)).Is(http.StatusOK)
			if !p.Says(reason) || !p.Says(hint) {
				t.Errorf("%s, %s: %s", policy, path, sitetest.Words(p.One("main")))
			}
		}
		if p := s.Guest().Get("/login"); p.Has("div", "class", "notice notice-info") || !p.Says(hint) {
			t.Errorf("%s: %s", policy, sitetest.Words(p.One("main")))
		}
		if p := s.Guest().Post("/login", "name", "x", "password", "y", "next", "/agents/new"); !p.Says("Log in to register one.") {
			t.Error("the reason is lost after a wrong password")
		}
	}
}
