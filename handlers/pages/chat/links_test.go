package chat_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	chatpages "agentsite/handlers/pages/chat"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/internal/testing/sitetest"
)

func TestJoin_SaysWhatItIsAndLetsInOnce(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	s.AgentOf(ann, "echo", hub.Public)
	path := ann.Post("/chat", "agent", "echo", "title", "Plans").Location
	join := ann.LinkTo(path, chat.JoinLink)

	// Who has no account is led to one, and from there back.
	next := "/login?next=" + strings.ReplaceAll(join, "/", "%2F")
	s.Guest().Get(join).Leads(next)
	if p := s.Guest().Get(next); !p.Has("a", "href", "/signup?next="+strings.ReplaceAll(join, "/", "%2F")) {
		t.Error("the log-in page does not lead on to signing up")
	}
	s.Guest().Post("/signup", "name", "eve", "password", sitetest.GoodPassword, "next", join).Leads(join)
	s.Guest().Post(join).Is(http.StatusUnauthorized)

	p := bob.Get(join).Is(http.StatusOK)
	for _, want := range []string{"Plans", "ann invites you", "all earlier messages", "echo.example"} {
		if !p.Says(want) {
			t.Errorf("does not say %q", want)
		}
	}
	if !p.Has("meta", "name", "robots") || p.Header.Get("Referrer-Policy") != "no-referrer" || len(p.All("form", "action", join)) != 1 {
		t.Error("the page tells its secret, or has no button")
	}
	bob.Get(path).Is(http.StatusNotFound)
	bob.Post(join).Leads(path)
	if p := bob.Get(path).Is(http.StatusOK); !p.Says("bob joined by a link of ann") {
		t.Error("nobody is told")
	}
	if p := bob.Get(join).Is(http.StatusOK); !p.Has("a", "href", path) || p.Has("form", "action", join) {
		t.Error("a member is asked again")
	}
	bob.Post(join).Leads(path)
	bob.Get("/join/agsj_nothing").Is(http.StatusNotFound)
	bob.Post("/join/agsj_nothing").Is(http.StatusNotFound)

	ann.Post(path+"/settings", "form", "room", "past", "nothing").Leads(path + "/settings?saved=1")
	if p := s.Person("cleo").Get(join).Is(http.StatusOK); !p.Says("no earlier ones") {
		t.Error("does not say what a joiner sees now")
	}
}

func TestShared_IsASnapshotWithoutActions(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	path := ann.Post("/chat", "agent", "guide", "title", "Taxes", "text", "Deduct **all** of it").Location
	id := strings.TrimPrefix(path, "/chat/")
	f, err := s.Chat.Files.Put(t.Context(), ann.Actor, chat.FileDraft{Name: "a.txt", Content: strings.NewReader("notes")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Chat.Post(t.Context(), ann.Actor, id, chat.Draft{ClientID: "f", Parts: []task.Part{task.TextPart("See"), {URL: chat.FileURL(f.Hash), Filename: "a.txt"}}, Quotes: 1}); err != nil {
		t.Fatal(err)
	}
	link := ann.LinkTo(path, chat.ReadLink)
	ann.Post(path, "text", "Said later", "client_id", "later").Leads(path)
	for _, who := range []*sitetest.Browser{s.Guest(), s.Person("bob"), ann} {
		p := who.Get(link).Is(http.StatusOK)
		if !p.Says("Shared by ann") || !p.Says("Deduct all") || p.Says("Said later") || !p.Has("strong") {
			t.Errorf("shows %.300s", sitetest.Words(p.One("main")))
		}
		main := sitetest.Page{T: t, Doc: p.One("main")}
		if main.Has("form") || main.Has("button") || main.Has("details") || strings.Contains(p.Body, id) {
			t.Error("there is something to do, or the conversation's id")
		}
		if !p.Has("meta", "name", "robots") || p.Header.Get("X-Robots-Tag") == "" {
			t.Error("search engines may list it")
		}
		if !main.Has("a", "href", link+chat.FileURL(f.Hash)) || !main.Has("a", "href", "#m1") {
			t.Error("the file or the quote leads elsewhere")
		}
	}
	if p := s.Guest().Get(link + chat.FileURL(f.Hash)).Is(http.StatusOK); p.Body == "" || p.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%v", p.Header)
	}
	s.Guest().Get(chat.FileURL(f.Hash)).Leads("/login?next=%2Ffiles%2F" + f.Hash)
	// What is taken away is gone here too.
	ann.Post(path + "/m/1/unsay").Leads(path + "?at=1#m1")
	if p := s.Guest().Get(link); p.Says("Deduct all") {
		t.Error("shows what was taken away")
	}
	ann.Post(path + "/delete").Leads("/chat")
	s.Guest().Get(link).Is(http.StatusNotFound)
	s.Guest().Get("/shared/agsr_nothing").Is(http.StatusNotFound)
}

func TestShared_PagesBack(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	path := ann.Post("/chat", "agent", "", "title", "Notes", "text", "first of all").Location
	for i := range chatpages.SharedPage + 4 {
		ann.Post(path, "text", fmt.Sprintf("note %d", i), "client_id", fmt.Sprint(i)).Leads(path)
	}
	link := ann.LinkTo(path, chat.ReadLink)
	p := s.Guest().Get(link).Is(http.StatusOK)
	if n := len(p.All("article", "class", "message")); n != chatpages.SharedPage || p.Says("first of all") {
		t.Errorf("%d messages", n)
	}
	p = s.Guest().Get(sitetest.Attribute(sitetest.Page{T: t, Doc: p.One("p", "class", "earlier")}.One("a"), "href")).Is(http.StatusOK)
	if !p.Says("first of all") || !p.Has("a", "href", link) {
		t.Error("the beginning is not there, or nothing leads to the end")
	}
}
