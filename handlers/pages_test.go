package handlers

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/docs"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
)

func TestPages_OpenForWhoMaySeeThem(t *testing.T) {
	s := newSite(t, account.Open)
	ann, op, guest := s.person("ann"), s.operator("root-op"), s.guest()
	s.agentOf(ann, "echo", hub.Public)
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
		for who, want := range map[*browser]int{guest: c.guest, ann: c.person, op: c.oper} {
			p := who.get(c.path)
			if want == 405 {
				want = http.StatusNotFound // no page: a form's address cannot be visited
			}
			if p.status != want {
				t.Errorf("%s as %s: status %d, want %d: %.200s", c.path, who.actor.Name, p.status, want, words(p.doc))
				continue
			}
			if p.status == login {
				continue
			}
			if len(p.all("h1")) != 1 || len(p.all("main")) != 1 {
				t.Errorf("%s as %s: %d h1, %d main", c.path, who.actor.Name, len(p.all("h1")), len(p.all("main")))
			}
			if csp := p.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
				t.Errorf("%s: policy %q", c.path, csp)
			}
			if strings.Contains(p.header.Get("Cache-Control"), "public") {
				t.Errorf("%s: a page with a name on it may be cached by others", c.path)
			}
		}
	}
}

func TestPages_GetChangesNothing(t *testing.T) {
	s := newSite(t, account.Open)
	op := s.operator("root-op")
	s.agentOf(op, "echo", hub.Public)
	op.post("/chat", "agent", "guide", "text", "Hello").is(http.StatusSeeOther)
	secret, err := s.accounts.Invitation(t.Context(), op.actor, "")
	if err != nil {
		t.Fatal(err)
	}
	link, err := s.accounts.ResetLink(t.Context(), op.actor, "root-op")
	if err != nil {
		t.Fatal(err)
	}
	chats, _ := s.chat.List(t.Context(), op.actor, chat.RoomFilter{Limit: 10})
	before := s.counts()
	guest := s.guest()
	for _, path := range []string{"/", "/agents", "/agents/echo", "/agents/new", "/agents/echo/edit", "/agents/echo/versions", "/agents/echo/check", "/agents/echo/delete", "/chat", "/chat/" + chats[0].ID, "/chat/" + chats[0].ID + "/delete",
		"/chat/" + chats[0].ID + "/stop", "/logout", "/account", "/account/sessions/end", "/admin", "/admin/people/root-op/disable", "/admin/agents/echo/withdraw", "/signup?invite=" + secret, "/login?next=/chat", strings.TrimPrefix(link, "http://portal.test")} {
		op.get(path)
		guest.get(path)
		op.do(http.MethodHead, path, nil)
	}
	if guest.cookie != "" {
		t.Error("looking around started a session")
	}
	if after := s.counts(); after != before {
		t.Errorf("%s became %s", before, after)
	}
	if a, err := s.hub.Get(t.Context(), op.actor, "echo"); err != nil || a.Status.State != hub.Active || a.Version != 1 {
		t.Errorf("the agent is %+v, %v", a, err)
	}
	// What a link promised still holds.
	guest.post("/reset", "token", strings.TrimPrefix(link, "http://portal.test/reset?link="), "password", "another good password").is(http.StatusSeeOther)
	s.guest().post("/signup", "name", "bob", "password", goodPassword, "invite", secret).is(http.StatusSeeOther)
}

func TestManual_HasEveryPageAndTurnsThem(t *testing.T) {
	s := newSite(t, account.Open)
	b := s.guest()
	for _, d := range docs.Pages() {
		path := "/docs/" + d.Stem
		p := b.get(path).is(http.StatusOK)
		if got := words(p.one("h1")); got != d.Title {
			t.Errorf("%s: titled %q, want %q", path, got, d.Title)
		}
		for _, toc := range p.all("nav", "class", "docs-toc") {
			q := page{t: t, doc: toc}
			for _, a := range q.all("a") {
				p.one("*", "id", strings.TrimPrefix(attribute(a, "href"), "#"))
			}
		}
	}
	for _, path := range []string{"/docs/connect", "/docs/register", "/docs/api", "/docs/link", "/docs/operate"} {
		if p := b.get(path); p.says("127.0.0.1:8080") || !p.says("portal.test") {
			t.Errorf("%s calls another portal than the one that shows it", path)
		}
	}
	if p := b.get("/docs/start"); !p.says("http://127.0.0.1:8080") {
		t.Error("the page about starting a portal has lost the address of one that was just started")
	}
	if p := b.get("/docs"); !p.has("a", "rel", "next") || p.has("a", "rel", "prev") {
		t.Error("the first page turns back or not on")
	}
}

func TestHome_ShowsWhoIsAliveAndAsksTheGuide(t *testing.T) {
	s := newSite(t, account.Open)
	s.agentOf(s.person("ann"), "echo", hub.Public)
	s.agentOf(s.person("bob"), "hidden", hub.Unlisted)
	p := s.guest().get("/").is(http.StatusOK)
	if cards := p.all("article", "class", "agent-card"); len(cards) != 2 {
		t.Errorf("%d cards, want guide and echo", len(cards))
	}
	if p.says("hidden") {
		t.Error("an unlisted agent is listed")
	}
	if !p.has("textarea", "name", "text") {
		t.Error("the guide cannot be asked")
	}
}
