package handlers

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"agentsite/handlers/markup"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// counts says how many of everything is stored.
func (s *site) counts() string {
	s.t.Helper()
	n, err := s.db.Stats(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("accounts=%d agents=%d conversations=%d messages=%d", n["accounts"], n["agents"], n["conversations"], n["messages"])
}

func TestStart_GuestsTalkWithoutAnAccount(t *testing.T) {
	s := newSite(t, account.Open)
	b := s.guest()
	p := b.post("/chat", "agent", "guide", "text", "Hello **there**\r\n<b>you</b>").is(http.StatusSeeOther)
	if b.cookie == "" || !strings.HasPrefix(p.location, "/chat/0") {
		t.Fatalf("no session, or leads to %q", p.location)
	}
	p = b.get(p.location).is(http.StatusOK)
	m := p.one("article", "class", "message-mine")
	q := page{t: t, doc: m}
	if words(q.one("strong")) != "there" || q.has("b") || attribute(m, "data-seq") != "1" {
		t.Errorf("the message is %s", words(m))
	}
	root := p.one("*", "id", "chat")
	if attribute(root, "data-after") != "1" || attribute(root, "data-me") != attribute(m, "data-sender") {
		t.Errorf("the socket starts wrong: %v", root.Attr)
	}
	if len(p.all("article", "class", "message-working")) != 2 { // one is the template's
		t.Error("the answer in the making is not shown")
	}
	if p := b.get("/chat").is(http.StatusOK); !p.has("a", "class", "chat-row") || p.has("a", "class", "chat-unread") {
		t.Error("the list lacks the conversation, or calls it unread")
	}
	if p := s.guest().get("/chat").is(http.StatusOK); p.has("a", "class", "chat-row") {
		t.Error("another guest sees it")
	}
}

func TestStart_KeepsWhatWasTyped(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	p := ann.post("/chat", "agent", "nobody", "text", "My words").is(http.StatusNotFound)
	p.field("agent", "nobody", "There is no agent")
	p.field("text", "My words", "")
	long := strings.Repeat("x", chat.MaxGuestTextBytes+1)
	p = s.guest().post("/chat", "agent", "guide", "text", long).is(http.StatusBadRequest)
	p.field("text", long, "use at most")
	if !strings.Contains(s.counts(), "conversations=0") {
		t.Errorf("an empty conversation stays: %s", s.counts())
	}
	ann.post("/chat", "agent", "guide").is(http.StatusSeeOther) // without words: an empty one
	ann.post("/chat", "agent", "", "text", "A note to myself").is(http.StatusSeeOther)
}

func TestConversation_ForeignLooksLikeAbsent(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	path := ann.post("/chat", "agent", "guide", "text", "Mine").location
	absent := "/chat/01JZZZZZZZZZZZZZZZZZZZZZZZ"
	same(t, bob.get(path).is(http.StatusNotFound), bob.get(absent).is(http.StatusNotFound), path, absent)
	for _, what := range []string{"", "/stop", "/rename", "/members", "/members/remove", "/leave", "/delete"} {
		pairs := []string{"text", "x", "client_id", "1", "title", "x", "member", "guide"}
		same(t, bob.post(path+what, pairs...).is(http.StatusNotFound), bob.post(absent+what, pairs...).is(http.StatusNotFound), path, absent)
	}
	if p := ann.get(path).is(http.StatusOK); len(p.all("article", "class", "message-mine")) != 1 {
		t.Error("something was done to it")
	}
}

func TestSay_TwiceIsOnceAndErrorsKeepTheText(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	path := ann.post("/chat", "agent", "guide", "text", "One").location
	for range 2 {
		ann.post(path, "text", "Two", "client_id", "same").leads(path)
	}
	if p := ann.get(path); len(p.all("article", "class", "message-mine")) != 2 {
		t.Errorf("%d messages, want 2", len(p.all("article", "class", "message-mine")))
	}
	p := ann.post(path, "text", strings.Repeat("é", chat.MaxTextBytes), "client_id", "2").is(http.StatusBadRequest)
	p.field("text", strings.Repeat("é", chat.MaxTextBytes), "")
	if !strings.Contains(words(p.one("*", "id", "composer-error")), "use at most") {
		t.Error("does not say what is wrong")
	}
	ann.post(path, "text", "  ", "client_id", "3").is(http.StatusBadRequest)
}

func TestConversation_RenameInviteRemoveLeaveDelete(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	s.agentOf(ann, "echo", hub.Public)
	path := ann.post("/chat", "agent", "guide", "text", "One").location
	ann.post(path+"/rename", "title", "New <title>").leads(path)
	if p := ann.get(path); words(p.one("h1")) != "New <title>" {
		t.Errorf("titled %q", words(p.one("h1")))
	}
	if p := ann.post(path+"/members", "member", "nobody").is(http.StatusNotFound); !p.has("textarea", "id", "text") || !p.says("There is no agent") {
		t.Error("a wrong name leads away from the conversation")
	}
	ann.post(path+"/members", "member", "bob").leads(path)
	ann.post(path+"/members", "member", "echo").leads(path)
	p := bob.get(path).is(http.StatusOK)
	if !p.says("ann added echo") || !p.has("form", "action", path+"/leave") || p.has("form", "action", path+"/delete") {
		t.Error("a member sees the wrong things")
	}
	if !p.says("goes to echo.example") {
		t.Error("nobody tells that text leaves the portal")
	}
	bob.post(path, "text", "Hi", "client_id", "1", "told", "echo").leads(path)
	if p := bob.get(path); p.says("goes to echo.example") {
		t.Error("the notice stays after the first message")
	}
	ann.post(path+"/members/remove", "member", "echo").leads(path)
	bob.post(path + "/leave").leads("/chat")
	bob.get(path).is(http.StatusNotFound)
	ann.post(path + "/stop").leads(path)
	ann.post(path + "/delete").leads("/chat")
	ann.get(path).is(http.StatusNotFound)
}

func TestConversation_PagesBack(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	path := ann.post("/chat", "agent", "", "text", "first of all").location
	for i := range transcriptPage + 5 {
		ann.post(path, "text", fmt.Sprintf("note %d", i), "client_id", fmt.Sprint(i)).leads(path)
	}
	p := ann.get(path).is(http.StatusOK)
	if n := len(p.all("article", "class", "message-mine")); n != transcriptPage || p.has("article", "id", "m1") {
		t.Errorf("%d messages on the page", n)
	}
	p = ann.get(path + "?before=7").is(http.StatusOK)
	if n := len(p.all("article", "class", "message-mine")); n != 6 || !p.has("article", "id", "m1") {
		t.Errorf("%d earlier messages", n)
	}
	ann.get(path + "?before=x").is(http.StatusBadRequest)
}

func TestMessage_MarksWhatWentWrong(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	for _, c := range []struct {
		result task.Result
		mark   string
		retry  bool
	}{
		{task.Result{State: task.Failed, Reason: "It broke."}, "mark-failed", true},
		{task.Result{State: task.Failed, Reason: "It broke.", Parts: []task.Part{task.TextPart("half an ans")}}, "mark-interrupted", true},
		{task.Result{State: task.Canceled, Reason: "Stopped by ann."}, "mark-canceled", true},
		{task.Result{State: task.Rejected, Reason: "Not for me."}, "mark-rejected", false},
		{task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart("Which one?")}}, "mark-input_required", false},
		{task.Done("**Fine**"), "", false},
	} {
		path := ann.post("/chat", "agent", "guide", "text", "Do "+string(c.result.State)).location
		list, _, err := s.tasks.List(t.Context(), ann.actor, strings.TrimPrefix(path, "/chat/"), "", "", 1)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d tasks, %v", len(list), err)
		}
		if err := s.chat.Finish(t.Context(), list[0], c.result); err != nil {
			t.Fatal(err)
		}
		p := ann.get(path).is(http.StatusOK)
		if c.mark == "" {
			if p.has("*", "class", "mark") || !p.has("strong") {
				t.Errorf("%s: marked, or without its words", c.result.State)
			}
			continue
		}
		if !p.has("*", "class", c.mark) || !p.says(c.result.Reason) {
			t.Errorf("%s: not marked %s", c.result.State, c.mark)
		}
		if retry := p.has("input", "name", "text", "value", "Do "+string(c.result.State)); retry != c.retry {
			t.Errorf("%s: can be tried again: %v", c.result.State, retry)
		}
		if len(p.all("article", "class", "message-working")) != 1 {
			t.Errorf("%s: still in the making", c.result.State)
		}
	}
}

func TestMessageHTML_IsTheSameElementForEverybody(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	id := strings.TrimPrefix(ann.post("/chat", "agent", "guide", "text", "Hello **you**").location, "/chat/")
	list, err := s.chat.Messages(t.Context(), ann.actor, id, 0, 0, 10, false)
	if err != nil || len(list) != 1 {
		t.Fatal(err)
	}
	d := &Door{hub: s.hub, markup: markup.New(), log: slog.New(slog.DiscardHandler)}
	first := d.messageHTML(list[0])
	list[0].Parts = []task.Part{{Data: []byte(`{"a":1}`)}, {URL: "javascript:alert(1)", Filename: "x"}}
	if d.messageHTML(list[0]) != first {
		t.Error("rendered twice")
	}
	list[0].Seq = 2
	second := d.messageHTML(list[0])
	if !strings.Contains(first, "<strong>you</strong>") || strings.Contains(first, "message-mine") || !strings.Contains(second, "&#34;a&#34;: 1") || strings.Contains(second, "javascript") {
		t.Errorf("%s\n%s", first, second)
	}
}
