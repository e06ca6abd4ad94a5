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

func TestStart_GuestsTalkWithoutAnAccount(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	b := s.Guest()
	p := b.Post("/chat", "agent", "guide", "text", "Hello **there**\r\n<b>you</b>").Is(http.StatusSeeOther)
	if b.Cookie == "" || !strings.HasPrefix(p.Location, "/chat/0") {
		t.Fatalf("no session, or leads to %q", p.Location)
	}
	p = b.Get(p.Location).Is(http.StatusOK)
	m := p.One("article", "class", "message-mine")
	q := sitetest.Page{T: t, Doc: m}
	if sitetest.Words(q.One("strong")) != "there" || q.Has("b") || sitetest.Attribute(m, "data-seq") != "1" {
		t.Errorf("the message is %s", sitetest.Words(m))
	}
	root := p.One("*", "id", "chat")
	if sitetest.Attribute(root, "data-after") != "1" || sitetest.Attribute(root, "data-me") != sitetest.Attribute(m, "data-sender") {
		t.Errorf("the socket starts wrong: %v", root.Attr)
	}
	if len(p.All("article", "class", "message-working")) != 2 { // one is the template's
		t.Error("the answer in the making is not shown")
	}
	if p := b.Get("/chat").Is(http.StatusOK); !p.Has("a", "class", "chat-row") || p.Has("a", "class", "chat-unread") {
		t.Error("the list lacks the conversation, or calls it unread")
	}
	if p := s.Guest().Get("/chat").Is(http.StatusOK); p.Has("a", "class", "chat-row") {
		t.Error("another guest sees it")
	}
}

func TestStart_KeepsWhatWasTyped(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	p := ann.Post("/chat", "agent", "nobody", "text", "My words").Is(http.StatusNotFound)
	p.Field("agent", "nobody", "There is no agent or person")
	p.Field("text", "My words", "")
	long := strings.Repeat("x", chat.MaxGuestTextBytes+1)
	p = s.Guest().Post("/chat", "agent", "guide", "text", long).Is(http.StatusBadRequest)
	p.Field("text", long, "use at most")
	if !strings.Contains(s.Counts(), "conversations=0") {
		t.Errorf("an empty conversation stays: %s", s.Counts())
	}
	ann.Post("/chat", "agent", "guide").Is(http.StatusSeeOther) // without words: an empty one
	ann.Post("/chat", "agent", "", "text", "A note to myself").Is(http.StatusSeeOther)
}

func TestConversation_ForeignLooksLikeAbsent(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	path := ann.Post("/chat", "agent", "guide", "text", "Mine").Location
	absent := "/chat/01JZZZZZZZZZZZZZZZZZZZZZZZ"
	sitetest.Same(t, bob.Get(path).Is(http.StatusNotFound), bob.Get(absent).Is(http.StatusNotFound), path, absent)
	for _, what := range []string{"", "/stop", "/rename", "/members", "/members/remove", "/leave", "/delete"} {
		pairs := []string{"text", "x", "client_id", "1", "title", "x", "member", "guide"}
		sitetest.Same(t, bob.Post(path+what, pairs...).Is(http.StatusNotFound), bob.Post(absent+what, pairs...).Is(http.StatusNotFound), path, absent)
	}
	if p := ann.Get(path).Is(http.StatusOK); len(p.All("article", "class", "message-mine")) != 1 {
		t.Error("something was done to it")
	}
}

func TestSay_TwiceIsOnceAndErrorsKeepTheText(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	path := ann.Post("/chat", "agent", "guide", "text", "One").Location
	for range 2 {
		ann.Post(path, "text", "Two", "client_id", "same").Leads(path)
	}
	if p := ann.Get(path); len(p.All("article", "class", "message-mine")) != 2 {
		t.Errorf("%d messages, want 2", len(p.All("article", "class", "message-mine")))
	}
	p := ann.Post(path, "text", strings.Repeat("é", chat.MaxTextBytes), "client_id", "2").Is(http.StatusBadRequest)
	p.Field("text", strings.Repeat("é", chat.MaxTextBytes), "")
	if !strings.Contains(sitetest.Words(p.One("*", "id", "composer-error")), "use at most") {
		t.Error("does not say what is wrong")
	}
	ann.Post(path, "text", "  ", "client_id", "3").Is(http.StatusBadRequest)
}

func TestConversation_RenameInviteRemoveLeaveDelete(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	s.AgentOf(ann, "echo", hub.Public)
	path := ann.Post("/chat", "agent", "guide", "text", "One").Location
	ann.Post(path+"/rename", "title", "New <title>").Leads(path)
	if p := ann.Get(path); sitetest.Words(p.One("h1")) != "New <title>" {
		t.Errorf("titled %q", sitetest.Words(p.One("h1")))
	}
	if p := ann.Post(path+"/members", "member", "nobody").Is(http.StatusNotFound); !p.Has("textarea", "id", "text") || !p.Says("There is no agent") {
		t.Error("a wrong name leads away from the conversation")
	}
	ann.Post(path+"/members", "member", "bob").Leads(path)
	ann.Post(path+"/members", "member", "echo").Leads(path)
	p := bob.Get(path).Is(http.StatusOK)
	if !p.Says("ann added echo") || !p.Has("form", "action", path+"/leave") || p.Has("form", "action", path+"/delete") {
		t.Error("a member sees the wrong things")
	}
	if !p.Says("goes to echo.example") {
		t.Error("nobody tells that text leaves the portal")
	}
	bob.Post(path, "text", "Hi", "client_id", "1", "told", "echo").Leads(path)
	if p := bob.Get(path); p.Says("goes to echo.example") {
		t.Error("the notice stays after the first message")
	}
	ann.Post(path+"/members/remove", "member", "echo").Leads(path)
	bob.Post(path + "/leave").Leads("/chat")
	bob.Get(path).Is(http.StatusNotFound)
	ann.Post(path + "/stop").Leads(path)
	ann.Post(path + "/delete").Leads("/chat")
	ann.Get(path).Is(http.StatusNotFound)
}

func TestConversation_PagesBack(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	path := ann.Post("/chat", "agent", "", "text", "first of all").Location
	for i := range chatpages.TranscriptPage + 5 {
		ann.Post(path, "text", fmt.Sprintf("note %d", i), "client_id", fmt.Sprint(i)).Leads(path)
	}
	p := ann.Get(path).Is(http.StatusOK)
	if n := len(p.All("article", "class", "message-mine")); n != chatpages.TranscriptPage || p.Has("article", "id", "m1") {
		t.Errorf("%d messages on the page", n)
	}
	p = ann.Get(path + "?before=7").Is(http.StatusOK)
	if n := len(p.All("article", "class", "message-mine")); n != 6 || !p.Has("article", "id", "m1") {
		t.Errorf("%d earlier messages", n)
	}
	ann.Get(path + "?before=x").Is(http.StatusBadRequest)
}

func TestMessage_MarksWhatWentWrong(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	for _, c := range []struct {
		result task.Result
		mark   string
		retry  bool
	}{
		{task.Result{State: task.Failed, Reason: "It broke."}, "mark-failed", true},
		{task.Result{State: task.Failed, Reason: "It broke.", Parts: []task.Part{task.TextPart("half an ans")}}, "mark-interrupted", true},
		{task.Result{State: task.Canceled, Reason: "Stopped by ann."}, "mark-canceled", true},
		{task.Result{State: task.Rejected, Reason: "Not for me."}, "mark-rejected", true},
		{task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart("Which one?")}}, "mark-input_required", false},
		{task.Done("**Fine**"), "", false},
	} {
		path := ann.Post("/chat", "agent", "guide", "text", "Do "+string(c.result.State)).Location
		list, _, err := s.Tasks.List(t.Context(), ann.Actor, strings.TrimPrefix(path, "/chat/"), "", "", 1)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d tasks, %v", len(list), err)
		}
		if err := s.Chat.Finish(t.Context(), list[0], c.result); err != nil {
			t.Fatal(err)
		}
		p := ann.Get(path).Is(http.StatusOK)
		if c.mark == "" {
			if p.Has("*", "class", "mark") || !p.Has("strong") {
				t.Errorf("%s: marked, or without its words", c.result.State)
			}
			continue
		}
		if !p.Has("*", "class", c.mark) || !p.Says(c.result.Reason) {
			t.Errorf("%s: not marked %s", c.result.State, c.mark)
		}
		if retry := p.Has("form", "action", path+"/m/2/again"); retry != c.retry {
			t.Errorf("%s: can be tried again: %v", c.result.State, retry)
		}
		if goOn := p.Has("input", "value", "Continue where you stopped."); goOn != (c.mark == "mark-interrupted") {
			t.Errorf("%s: can be continued: %v", c.result.State, goOn)
		}
		if len(p.All("article", "class", "message-working")) != 1 {
			t.Errorf("%s: still in the making", c.result.State)
		}
	}
}
