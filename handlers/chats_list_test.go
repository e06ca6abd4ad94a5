package handlers

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/hub"
)

func TestChats_PinnedFirstArchivedApart(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	one := ann.post("/chat", "agent", "guide", "text", "One").location
	two := ann.post("/chat", "agent", "bob, guide", "title", "Shared one").location
	three := ann.post("/chat", "agent", "guide", "text", "Three").location
	ann.post(one + "/pin").is(http.StatusSeeOther)
	ann.post(three + "/archive").is(http.StatusSeeOther)
	bob.post(two, "text", "a", "client_id", "1").leads(two)
	bob.post(two, "text", "b", "client_id", "2").leads(two)
	p := ann.get("/chat").is(http.StatusOK)
	rows := p.all("a", "class", "chat-row")
	if len(rows) != 2 || attribute(rows[0], "href") != one || attribute(rows[1], "href") != two {
		t.Fatalf("%d rows", len(rows))
	}
	if w := words(rows[0]); !strings.Contains(w, "Pinned") || !strings.Contains(w, "Private: One") {
		t.Errorf("the pinned one says %q", w)
	}
	if w := words(rows[1]); !strings.Contains(w, "Shared: Shared one") || !strings.Contains(w, "2 unread") {
		t.Errorf("the shared one says %q", w)
	}
	p = ann.get("/chat?archived=1").is(http.StatusOK)
	if rows := p.all("a", "class", "chat-row"); len(rows) != 1 || attribute(rows[0], "href") != three {
		t.Errorf("%d archived", len(rows))
	}
}

func TestChats_SearchLeadsToTheMessage(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	path := ann.post("/chat", "agent", "guide", "text", "The <b>walrus</b> and the carpenter").location
	p := ann.get("/chat?q=walrus").is(http.StatusOK)
	row := p.one("a", "class", "chat-row")
	if attribute(row, "href") != path+"?at=1#m1" || !strings.Contains(words(row), "walrus") {
		t.Errorf("leads to %q: %q", attribute(row, "href"), words(row))
	}
	p.field("q", "walrus", "")
	if p := bob.get("/chat?q=walrus").is(http.StatusOK); p.has("a", "class", "chat-row") || !p.says("Nothing found") {
		t.Error("somebody else finds it")
	}
	p = ann.get("/chat?q=" + strings.Repeat("x", 600)).is(http.StatusBadRequest)
	p.field("q", strings.Repeat("x", 600), "use at most")
	s.guest().get("/chat?q=walrus").is(http.StatusOK)
}

func TestStartChat_SaysFirstWhereTextGoes(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	s.agentOf(ann, "echo", hub.Public)
	p := ann.post("/chat", "agent", "echo", "text", "My secret").is(http.StatusConflict)
	if !p.says("Nothing was sent yet") || !p.says("echo.example") || !p.has("input", "name", "told", "value", "echo") {
		t.Errorf("says %.400s", words(p.one("main")))
	}
	p.field("text", "My secret", "")
	if rows := ann.get("/chat").all("a", "class", "chat-row"); len(rows) != 0 {
		t.Error("an empty conversation is left")
	}
	path := ann.post("/chat", "agent", "echo", "text", "My secret", "told", "echo").is(http.StatusSeeOther).location
	if !ann.get(path).says("My secret") {
		t.Error("it was not said")
	}
	// An agent's own page says where text goes.
	if p := s.guest().get("/agents/echo").is(http.StatusOK); !p.says("goes to echo.example") || !p.has("input", "name", "told", "value", "echo") {
		t.Error("the profile does not say it")
	}
}

func TestAccount_WhenToBeTold(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	ann.post("/account/chat", "notify", "mentions", "quiet_from", "22:00", "quiet_to", "07:30", "zone", "Europe/Berlin").leads("/account?done=told")
	p := ann.get("/account?done=told").is(http.StatusOK)
	p.field("quiet_from", "22:00", "")
	p.field("quiet_to", "07:30", "")
	p.field("zone", "Europe/Berlin", "")
	if !p.has("option", "value", "mentions", "selected", "") {
		t.Error("the choice is lost")
	}
	p = ann.post("/account/chat", "notify", "", "quiet_from", "22:00", "quiet_to", "", "zone", "Moon/Base").is(http.StatusBadRequest)
	p.field("zone", "Moon/Base", "")
	p.field("quiet_to", "", "both times")
	ann.post("/account/chat", "zone", "Moon/Base").is(http.StatusBadRequest).field("zone", "Moon/Base", "no time zone")
	s.guest().post("/account/chat", "notify", "").is(http.StatusUnauthorized)
}
