package handlers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// linkTo makes a link to a conversation and returns its path.
func (b *browser) linkTo(path string, kind chat.LinkKind) string {
	b.t.Helper()
	_, secret, err := b.chat.NewLink(b.t.Context(), b.actor, strings.TrimPrefix(path, "/chat/"), chat.LinkDraft{Kind: kind})
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimPrefix(b.door.portal.linkURL(kind, secret), "http://portal.test")
}

func TestJoin_SaysWhatItIsAndLetsInOnce(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	s.agentOf(ann, "echo", hub.Public)
	path := ann.post("/chat", "agent", "echo", "title", "Plans").location
	join := ann.linkTo(path, chat.JoinLink)

	// Who has no account is led to one, and from there back.
	next := "/login?next=" + strings.ReplaceAll(join, "/", "%2F")
	s.guest().get(join).leads(next)
	if p := s.guest().get(next); !p.has("a", "href", "/signup?next="+strings.ReplaceAll(join, "/", "%2F")) {
		t.Error("the log-in page does not lead on to signing up")
	}
	s.guest().post("/signup", "name", "eve", "password", goodPassword, "next", join).leads(join)
	s.guest().post(join).is(http.StatusUnauthorized)

	p := bob.get(join).is(http.StatusOK)
	for _, want := range []string{"Plans", "ann invites you", "all earlier messages", "echo.example"} {
		if !p.says(want) {
			t.Errorf("does not say %q", want)
		}
	}
	if !p.has("meta", "name", "robots") || p.header.Get("Referrer-Policy") != "no-referrer" || len(p.all("form", "action", join)) != 1 {
		t.Error("the page tells its secret, or has no button")
	}
	bob.get(path).is(http.StatusNotFound)
	bob.post(join).leads(path)
	if p := bob.get(path).is(http.StatusOK); !p.says("bob joined by a link of ann") {
		t.Error("nobody is told")
	}
	if p := bob.get(join).is(http.StatusOK); !p.has("a", "href", path) || p.has("form", "action", join) {
		t.Error("a member is asked again")
	}
	bob.post(join).leads(path)
	bob.get("/join/agsj_nothing").is(http.StatusNotFound)
	bob.post("/join/agsj_nothing").is(http.StatusNotFound)

	ann.post(path+"/settings", "form", "room", "past", "nothing").leads(path + "/settings?saved=1")
	if p := s.person("cleo").get(join).is(http.StatusOK); !p.says("no earlier ones") {
		t.Error("does not say what a joiner sees now")
	}
}

func TestShared_IsASnapshotWithoutActions(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	path := ann.post("/chat", "agent", "guide", "title", "Taxes", "text", "Deduct **all** of it").location
	id := strings.TrimPrefix(path, "/chat/")
	f, err := s.chat.PutFile(t.Context(), ann.actor, chat.FileDraft{Name: "a.txt", Content: strings.NewReader("notes")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.chat.Post(t.Context(), ann.actor, id, chat.Draft{ClientID: "f", Parts: []task.Part{task.TextPart("See"), {URL: chat.FileURL(f.Hash), Filename: "a.txt"}}, Quotes: 1}); err != nil {
		t.Fatal(err)
	}
	link := ann.linkTo(path, chat.ReadLink)
	ann.post(path, "text", "Said later", "client_id", "later").leads(path)
	for _, who := range []*browser{s.guest(), s.person("bob"), ann} {
		p := who.get(link).is(http.StatusOK)
		if !p.says("Shared by ann") || !p.says("Deduct all") || p.says("Said later") || !p.has("strong") {
			t.Errorf("shows %.300s", words(p.one("main")))
		}
		main := page{t: t, doc: p.one("main")}
		if main.has("form") || main.has("button") || main.has("details") || strings.Contains(p.body, id) {
			t.Error("there is something to do, or the conversation's id")
		}
		if !p.has("meta", "name", "robots") || p.header.Get("X-Robots-Tag") == "" {
			t.Error("search engines may list it")
		}
		if !main.has("a", "href", link+chat.FileURL(f.Hash)) || !main.has("a", "href", "#m1") {
			t.Error("the file or the quote leads elsewhere")
		}
	}
	if p := s.guest().get(link + chat.FileURL(f.Hash)).is(http.StatusOK); p.body == "" || p.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%v", p.header)
	}
	s.guest().get(chat.FileURL(f.Hash)).leads("/login?next=%2Ffiles%2F" + f.Hash)
	// What is taken away is gone here too.
	ann.post(path + "/m/1/unsay").leads(path + "?at=1#m1")
	if p := s.guest().get(link); p.says("Deduct all") {
		t.Error("shows what was taken away")
	}
	ann.post(path + "/delete").leads("/chat")
	s.guest().get(link).is(http.StatusNotFound)
	s.guest().get("/shared/agsr_nothing").is(http.StatusNotFound)
}

func TestShared_PagesBack(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	path := ann.post("/chat", "agent", "", "title", "Notes", "text", "first of all").location
	for i := range sharedPage + 4 {
		ann.post(path, "text", fmt.Sprintf("note %d", i), "client_id", fmt.Sprint(i)).leads(path)
	}
	link := ann.linkTo(path, chat.ReadLink)
	p := s.guest().get(link).is(http.StatusOK)
	if n := len(p.all("article", "class", "message")); n != sharedPage || p.says("first of all") {
		t.Errorf("%d messages", n)
	}
	p = s.guest().get(attribute(page{t: t, doc: p.one("p", "class", "earlier")}.one("a"), "href")).is(http.StatusOK)
	if !p.says("first of all") || !p.has("a", "href", link) {
		t.Error("the beginning is not there, or nothing leads to the end")
	}
}
