package chat_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/hub"
	"agentsite/internal/testing/sitetest"
)

func TestChats_PinnedFirstArchivedApart(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	one := ann.Post("/chat", "agent", "guide", "text", "One").Location
	two := ann.Post("/chat", "agent", "bob, guide", "title", "Shared one").Location
	three := ann.Post("/chat", "agent", "guide", "text", "Three").Location
	ann.Post(one + "/pin").Is(http.StatusSeeOther)
	ann.Post(three + "/archive").Is(http.StatusSeeOther)
	bob.Post(two, "text", "a", "client_id", "1").Leads(two)
	bob.Post(two, "text", "b", "client_id", "2").Leads(two)
	p := ann.Get("/chat").Is(http.StatusOK)
	rows := p.All("a", "class", "chat-row")
	if len(rows) != 2 || sitetest.Attribute(rows[0], "href") != one || sitetest.Attribute(rows[1], "href") != two {
		t.Fatalf("%d rows", len(rows))
	}
	if w := sitetest.Words(rows[0]); !strings.Contains(w, "Pinned") || !strings.Contains(w, "Private: One") {
		t.Errorf("the pinned one says %q", w)
	}
	if w := sitetest.Words(rows[1]); !strings.Contains(w, "Shared: Shared one") || !strings.Contains(w, "2 unread") {
		t.Errorf("the shared one says %q", w)
	}
	p = ann.Get("/chat?archived=1").Is(http.StatusOK)
	if rows := p.All("a", "class", "chat-row"); len(rows) != 1 || sitetest.Attribute(rows[0], "href") != three {
		t.Errorf("%d archived", len(rows))
	}
}

func TestChats_SearchLeadsToTheMessage(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	path := ann.Post("/chat", "agent", "guide", "text", "The <b>walrus</b> and the carpenter").Location
	p := ann.Get("/chat?q=walrus").Is(http.StatusOK)
	row := p.One("a", "class", "chat-row")
	if sitetest.Attribute(row, "href") != path+"?at=1#m1" || !strings.Contains(sitetest.Words(row), "walrus") {
		t.Errorf("leads to %q: %q", sitetest.Attribute(row, "href"), sitetest.Words(row))
	}
	p.Field("q", "walrus", "")
	if p := bob.Get("/chat?q=walrus").Is(http.StatusOK); p.Has("a", "class", "chat-row") || !p.Says("Nothing found") {
		t.Error("somebody else finds it")
	}
	p = ann.Get("/chat?q=" + strings.Repeat("x", 600)).Is(http.StatusBadRequest)
	p.Field("q", strings.Repeat("x", 600), "use at most")
	s.Guest().Get("/chat?q=walrus").Is(http.StatusOK)
}

func TestStartChat_SaysFirstWhereTextGoes(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	s.AgentOf(ann, "echo", hub.Public)
	p := ann.Post("/chat", "agent", "echo", "text", "My secret").Is(http.StatusConflict)
	if !p.Says("Nothing was sent yet") || !p.Says("echo.example") || !p.Has("input", "name", "told", "value", "echo") {
		t.Errorf("says %.400s", sitetest.Words(p.One("main")))
	}
	p.Field("text", "My secret", "")
	if rows := ann.Get("/chat").All("a", "class", "chat-row"); len(rows) != 0 {
		t.Error("an empty conversation is left")
	}
	path := ann.Post("/chat", "agent", "echo", "text", "My secret", "told", "echo").Is(http.StatusSeeOther).Location
	if !ann.Get(path).Says("My secret") {
		t.Error("it was not said")
	}
	// An agent's own page says where text goes.
	if p := s.Guest().Get("/agents/echo").Is(http.StatusOK); !p.Says("goes to echo.example") || !p.Has("input", "name", "told", "value", "echo") {
		t.Error("the profile does not say it")
	}
}

func TestAccount_WhenToBeTold(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	ann.Post("/account/chat", "notify", "mentions", "quiet_from", "22:00", "quiet_to", "07:30", "zone", "Europe/Berlin").Leads("/account?done=told")
	p := ann.Get("/account?done=told").Is(http.StatusOK)
	p.Field("quiet_from", "22:00", "")
	p.Field("quiet_to", "07:30", "")
	p.Field("zone", "Europe/Berlin", "")
	if !p.Has("option", "value", "mentions", "selected", "") {
		t.Error("the choice is lost")
	}
	p = ann.Post("/account/chat", "notify", "", "quiet_from", "22:00", "quiet_to", "", "zone", "Moon/Base").Is(http.StatusBadRequest)
	p.Field("zone", "Moon/Base", "")
	p.Field("quiet_to", "", "both times")
	ann.Post("/account/chat", "zone", "Moon/Base").Is(http.StatusBadRequest).Field("zone", "Moon/Base", "no time zone")
	s.Guest().Post("/account/chat", "notify", "").Is(http.StatusUnauthorized)
}
