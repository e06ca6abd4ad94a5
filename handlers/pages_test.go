package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/docs"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/testing/sitetest"
)

func TestPages_OpenForWhoMaySeeThem(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, op, guest := s.Person("ann"), s.Operator("root-op"), s.Guest()
	s.AgentOf(ann, "echo", hub.Public)
	const ok, login = http.StatusOK, http.StatusSeeOther
	for _, c := range []struct {
		path                string
		guest, person, oper int
	}{
		{"/", ok, ok, ok}, {"/about", ok, ok, ok}, {"/docs", ok, ok, ok}, {"/docs/api", ok, ok, ok}, {"/docs/nothing", 404, 404, 404}, {"/nothing", 404, 404, 404},
		{"/agents", ok, ok, ok}, {"/agents?q=echo&kind=a2a&live=alive&tag=talk", ok, ok, ok}, {"/agents?live=x", 400, 400, 400}, {"/agents?cursor=x", 400, 400, 400},
		{"/agents/guide", ok, ok, ok}, {"/agents/echo", ok, ok, ok}, {"/agents/echo@portal.test", ok, ok, ok}, {"/agents/echo%40portal.test", ok, ok, ok}, {"/agents/echo@other.example", 404, 404, 404}, {"/agents/nobody", 404, 404, 404},
		{"/agents/new", login, ok, ok}, {"/agents/echo/edit", login, ok, ok}, {"/agents/guide/edit", login, 403, 403}, {"/agents/echo/versions", ok, ok, ok},
		{"/chat", ok, ok, ok}, {"/chat?cursor=!", 400, 400, 400}, {"/chat/x", 303, 404, 404}, {"/chat/01JZZZZZZZZZZZZZZZZZZZZZZZ", 303, 404, 404},
		{"/login", ok, login, login}, {"/signup", ok, login, login}, {"/reset", ok, ok, ok}, {"/reset?link=x", ok, ok, ok},
		{"/account", login, ok, ok}, {"/admin", login, 403, ok}, {"/admin/people", login, 403, ok}, {"/admin/invites", login, 403, ok}, {"/admin/agents", login, 403, ok},
		{"/logout", 405, 405, 405}, {"/agents/echo/delete", 405, 405, 405},
	} {
		for who, want := range map[*sitetest.Browser]int{guest: c.guest, ann: c.person, op: c.oper} {
			p := who.Get(c.path)
			if want == 405 {
				want = http.StatusNotFound // no page: a form's address cannot be visited
			}
			if p.Status != want {
				t.Errorf("%s as %s: status %d, want %d: %.200s", c.path, who.Actor.Name, p.Status, want, sitetest.Words(p.Doc))
				continue
			}
			if p.Status == login {
				continue
			}
			if len(p.All("h1")) != 1 || len(p.All("main")) != 1 {
				t.Errorf("%s as %s: %d h1, %d main", c.path, who.Actor.Name, len(p.All("h1")), len(p.All("main")))
			}
			if csp := p.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
				t.Errorf("%s: policy %q", c.path, csp)
			}
			if strings.Contains(p.Header.Get("Cache-Control"), "public") {
				t.Errorf("%s: a page with a name on it may be cached by others", c.path)
			}
		}
	}
}

func TestPages_GetChangesNothing(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	op := s.Operator("root-op")
	s.AgentOf(op, "echo", hub.Public)
	op.Post("/chat", "agent", "guide", "text", "Hello").Is(http.StatusSeeOther)
	secret, err := s.Accounts.Invitation(t.Context(), op.Actor, "")
	if err != nil {
		t.Fatal(err)
	}
	link, err := s.Accounts.ResetLink(t.Context(), op.Actor, "root-op")
	if err != nil {
		t.Fatal(err)
	}
	chats, _ := s.Chat.List(t.Context(), op.Actor, chat.RoomFilter{Limit: 10})
	before := s.Counts()
	guest := s.Guest()
	for _, path := range []string{"/", "/agents", "/agents/echo", "/agents/new", "/agents/echo/edit", "/agents/echo/versions", "/agents/echo/check", "/agents/echo/delete", "/chat", "/chat/" + chats[0].ID, "/chat/" + chats[0].ID + "/delete",
		"/chat/" + chats[0].ID + "/stop", "/logout", "/account", "/account/sessions/end", "/admin", "/admin/people/root-op/disable", "/admin/agents/echo/withdraw", "/signup?invite=" + secret, "/login?next=/chat", strings.TrimPrefix(link, "http://portal.test")} {
		op.Get(path)
		guest.Get(path)
		op.Do(http.MethodHead, path, nil)
	}
	if guest.Cookie != "" {
		t.Error("looking around started a session")
	}
	if after := s.Counts(); after != before {
		t.Errorf("%s became %s", before, after)
	}
	if a, err := s.Hub.Get(t.Context(), op.Actor, "echo"); err != nil || a.Status.State != hub.Active || a.Version != 1 {
		t.Errorf("the agent is %+v, %v", a, err)
	}
	// What a link promised still holds.
	guest.Post("/reset", "token", strings.TrimPrefix(link, "http://portal.test/reset?link="), "password", "another good password").Is(http.StatusSeeOther)
	s.Guest().Post("/signup", "name", "bob", "password", sitetest.GoodPassword, "invite", secret).Is(http.StatusSeeOther)
}

func TestManual_HasEveryPageAndTurnsThem(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	b := s.Guest()
	for _, d := range docs.Pages() {
		path := "/docs/" + d.Stem
		p := b.Get(path).Is(http.StatusOK)
		if got := sitetest.Words(p.One("h1")); got != d.Title {
			t.Errorf("%s: titled %q, want %q", path, got, d.Title)
		}
		for _, toc := range p.All("nav", "class", "docs-toc") {
			q := sitetest.Page{T: t, Doc: toc}
			for _, a := range q.All("a") {
				p.One("*", "id", strings.TrimPrefix(sitetest.Attribute(a, "href"), "#"))
			}
		}
	}
	for _, path := range []string{"/docs/connect", "/docs/register", "/docs/api", "/docs/link", "/docs/operate"} {
		if p := b.Get(path); p.Says("127.0.0.1:8080") || !p.Says("portal.test") {
			t.Errorf("%s calls another portal than the one that shows it", path)
		}
	}
	if p := b.Get("/docs/start"); !p.Says("http://127.0.0.1:8080") {
		t.Error("the page about starting a portal has lost the address of one that was just started")
	}
	if p := b.Get("/docs"); !p.Has("a", "rel", "next") || p.Has("a", "rel", "prev") {
		t.Error("the first page turns back or not on")
	}
}

func TestHome_ShowsWhoIsAliveAndAsksTheGuide(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	s.AgentOf(s.Person("ann"), "echo", hub.Public)
	s.AgentOf(s.Person("bob"), "hidden", hub.Unlisted)
	p := s.Guest().Get("/").Is(http.StatusOK)
	if cards := p.All("article", "class", "agent-card"); len(cards) != 2 {
		t.Errorf("%d cards, want guide and echo", len(cards))
	}
	if p.Says("hidden") {
		t.Error("an unlisted agent is listed")
	}
	if !p.Has("textarea", "name", "text") {
		t.Error("the guide cannot be asked")
	}
}
