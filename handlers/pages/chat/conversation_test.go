package chat_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentsite/handlers/pages/message"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/internal/testing/sitetest"
)

func TestCompose_AnswersAndQuotes(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	path := ann.Notes("The *first* thing. And more.", "The second")
	p := ann.Get(path + "?reply=1").Is(http.StatusOK)
	if form := p.One("form", "id", "composer"); sitetest.Attribute(form, "action") != path || !p.Within(form).Has("input", "name", "reply_to", "value", "1") || !strings.Contains(sitetest.Words(form), "Answering ann The first thing.") {
		t.Errorf("the composer does not answer: %s", sitetest.Words(form))
	}
	ann.Send(path, nil, "text", "Indeed", "reply_to", "1", "client_id", "r").Leads(path)
	m := ann.Get(path).MessageRow(3)
	quote := m.One("a", "class", "quote")
	if sitetest.Attribute(quote, "href") != path+"?at=1#m1" || !strings.Contains(sitetest.Words(quote), "ann The first thing.") {
		t.Errorf("quotes %q at %q", sitetest.Words(quote), sitetest.Attribute(quote, "href"))
	}
	// What goes wrong keeps the text and what it answers.
	p = ann.Send(path, nil, "text", "mine "+strings.Repeat("x", chat.MaxTextBytes), "reply_to", "2", "client_id", "s").Is(http.StatusBadRequest)
	if !p.Has("input", "name", "reply_to", "value", "2") || !strings.HasPrefix(sitetest.Words(p.One("textarea", "id", "text")), "mine x") {
		t.Error("what was typed is lost")
	}
	ann.Get(path + "?reply=x").Is(http.StatusBadRequest)
	if p := ann.Get(path + "?reply=77").Is(http.StatusOK); !p.Says("not there any more") {
		t.Error("answers what is not there")
	}
}

func TestCompose_LooksAgainAndKeepsWhatIsTyped(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	path := ann.Post("/chat", "agent", "guide", "text", "One").Location
	if p := ann.Get(path); !p.Has("noscript") || !strings.Contains(p.Body, `name="look"`) {
		t.Error("there is no way to look again")
	}
	p := ann.Send(path, map[string]string{"a.txt": "alpha"}, "text", "half a thou", "reply_to", "1", "client_id", "1", "look", "1").Is(http.StatusOK)
	if sitetest.Words(p.One("textarea", "id", "text")) != "half a thou" || !p.Has("input", "name", "reply_to", "value", "1") {
		t.Error("what was typed is gone")
	}
	kept := p.One("input", "name", "kept")
	if !strings.Contains(s.Counts(), "messages=1") {
		t.Error("looking said something")
	}
	// The file that came along goes with the next sending.
	ann.Send(path, nil, "text", "whole", "client_id", "2", "kept", sitetest.Attribute(kept, "value")).Leads(path)
	if f := ann.Get(path).MessageRow(2).One("a", "class", "file"); !strings.Contains(sitetest.Words(f), "a.txt") || !strings.Contains(sitetest.Words(f), "5 bytes") {
		t.Errorf("the file is shown as %q", sitetest.Words(f))
	}
}

func TestCompose_FilesArePartsAndOthersDoNotCount(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	path := ann.Notes("One")
	ann.Send(path, map[string]string{"list.csv": "a,b\n1,2\n"}, "text", "", "client_id", "1").Leads(path)
	f := ann.Get(path).MessageRow(2).One("a", "class", "file")
	hash, ok := message.OwnFile(sitetest.Attribute(f, "href"))
	if !ok {
		t.Fatalf("leads to %q", sitetest.Attribute(f, "href"))
	}
	// Knowing the hash is not having the file.
	theirs := bob.Notes("Mine")
	p := bob.Send(theirs, nil, "text", "Look", "client_id", "1", "kept", "hash="+hash+"&name=list.csv").Is(http.StatusNotFound)
	if sitetest.Words(p.One("textarea", "id", "text")) != "Look" {
		t.Error("what was typed is lost")
	}
	bob.Send(theirs, nil, "text", "", "client_id", "2").Is(http.StatusBadRequest)
	bob.Send(path, map[string]string{"x": "x"}, "text", "Hi").Is(http.StatusNotFound)
}

func TestCompose_TooMuchKeepsTheText(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	g := s.Guest()
	path := g.Post("/chat", "agent", "guide", "text", "Hello").Location
	path, _, _ = strings.Cut(path, "?")
	big := strings.Repeat("z", chat.MaxGuestFileBytes+1)
	p := g.Send(path, map[string]string{"big.bin": big}, "text", "with a file", "client_id", "1").Is(http.StatusBadRequest)
	if sitetest.Words(p.One("textarea", "id", "text")) != "with a file" || sitetest.Words(p.One("*", "id", "composer-error")) == "" {
		t.Error("the text is lost, or nobody says why")
	}
}

func TestEdit_ChangesAndShowsWhatWas(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	path := ann.Notes("Frist")
	ann.Post(path+"/members", "member", "bob").Leads(path)
	p := ann.Get(path + "?edit=1").Is(http.StatusOK)
	if form := p.One("form", "id", "composer"); sitetest.Attribute(form, "action") != path+"/m/1/edit" || sitetest.Words(p.One("textarea", "id", "text")) != "Frist" {
		t.Errorf("the composer does not edit: %s", sitetest.Attribute(form, "action"))
	}
	ann.Send(path+"/m/1/edit", nil, "text", "First", "client_id", "1").Leads(path + "?at=1#m1")
	m := bob.Get(path).MessageRow(1)
	if !m.Says("First") || m.Says("Frist") || sitetest.Attribute(m.One("a", "class", "message-edited"), "href") != path+"/m/1#forms" {
		t.Errorf("reads %q", sitetest.Words(m.Doc))
	}
	if p := bob.Get(path + "/m/1").Is(http.StatusOK); !p.Says("Frist") || p.Has("form", "action", path+"/m/1/unsay") {
		t.Error("what it said is not to be seen, or somebody else may take it away")
	}
	bob.Send(path+"/m/1/edit", nil, "text", "Mine").Is(http.StatusForbidden)
	p = ann.Send(path+"/m/1/edit", nil, "text", strings.Repeat("x", chat.MaxTextBytes+1)).Is(http.StatusBadRequest)
	if sitetest.Attribute(p.One("form", "id", "composer"), "action") != path+"/m/1/edit" {
		t.Error("an error leaves the edit")
	}
	ann.Send(path+"/m/9/edit", nil, "text", "x").Is(http.StatusNotFound)
	ann.Post(path + "/m/nine/unsay").Is(http.StatusNotFound)
}

func TestReact_PressedAgainIsTakenBack(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	path := ann.Notes("One")
	ann.Post(path+"/members", "member", "bob").Leads(path)
	for _, b := range []*sitetest.Browser{ann, bob} {
		b.Post(path+"/m/1/react", "emoji", "👍").Leads(path + "?at=1#m1")
	}
	chip := ann.Get(path).MessageRow(1).One("button", "class", "chip")
	if sitetest.Attribute(chip, "data-by") != "ann bob" || sitetest.Attribute(chip, "aria-pressed") != "true" || sitetest.Words(chip) != "👍 2" {
		t.Errorf("the chip is %v", chip.Attr)
	}
	ann.Post(path+"/m/1/react", "emoji", "👍")
	chip = ann.Get(path).MessageRow(1).One("button", "class", "chip")
	if sitetest.Attribute(chip, "data-by") != "bob" || sitetest.Attribute(chip, "aria-pressed") != "false" {
		t.Errorf("taken back, the chip is %v", chip.Attr)
	}
	if p := ann.Post(path+"/m/1/react", "emoji", "word").Is(http.StatusBadRequest); !p.Has("textarea", "id", "text") {
		t.Error("a wrong one leads away")
	}
}

func TestUnsay_LeavesATrace(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	path := ann.Notes("Other", "Secret")
	ann.Post(path+"/members", "member", "bob").Leads(path)
	bob.Post(path + "/m/2/unsay").Is(http.StatusForbidden)
	ann.Post(path + "/m/2/unsay").Leads(path + "?at=2#m2")
	p := bob.Get(path)
	m := p.MessageRow(2)
	if !m.Says("Deleted by ann") || p.Says("Secret") || m.Has("details", "class", "actions") {
		t.Errorf("reads %q", sitetest.Words(m.Doc))
	}
	if p := bob.Get(path + "/m/2").Is(http.StatusOK); p.Says("Secret") {
		t.Error("its page tells what it said")
	}
}

func TestAgain_FoldsTheEarlierAnswer(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	path := ann.Post("/chat", "agent", "guide", "text", "One").Location
	id := strings.TrimPrefix(path, "/chat/")
	answer := func(text string) {
		t.Helper()
		list, _, err := s.Tasks.List(t.Context(), ann.Actor, id, task.Submitted, "", 1)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d tasks, %v", len(list), err)
		}
		if err := s.Chat.Finish(t.Context(), list[0], task.Done(text)); err != nil {
			t.Fatal(err)
		}
	}
	answer("First try")
	ann.Post(path + "/m/2/again").Leads(path)
	answer("Second try")
	p := ann.Get(path)
	if m := p.MessageRow(2); !m.Has("details", "class", "superseded") || sitetest.Attribute(m.Doc, "data-newer") != "3" {
		t.Errorf("the earlier answer is not folded: %v", m.Doc.Attr)
	}
	if m := p.MessageRow(3); sitetest.Attribute(m.Doc, "data-target") != "2" || !m.Says("2/2") || !m.Says("Second try") {
		t.Errorf("the new one reads %q", sitetest.Words(m.Doc))
	}
	p = ann.Post(path + "/m/3/branch").Is(http.StatusSeeOther)
	if p.Location == path || !ann.Get(p.Location).Is(http.StatusOK).Says("Second try") {
		t.Errorf("the branch at %q does not go on", p.Location)
	}
}

func TestWindow_AroundAndOnwards(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	var texts []string
	for i := range 130 {
		texts = append(texts, fmt.Sprintf("note %d", i+1))
	}
	path := ann.Notes(texts...)
	for range 2 { // set and taken back: takes seqs, is no line
		ann.Post(path+"/m/130/react", "emoji", "👍")
	}
	p := ann.Get(path + "?at=60").Is(http.StatusOK)
	root := p.One("*", "id", "chat")
	if n := len(p.All("article", "class", "message-mine")); n < 50 || n > 52 || !p.Has("article", "id", "m60", "class", "message-target") || sitetest.Attribute(root, "data-newest") != "132" {
		t.Errorf("%d messages around, newest %s", n, sitetest.Attribute(root, "data-newest"))
	}
	if strings.Contains(p.Body, " data-end") || strings.Contains(p.Body, " data-begin") {
		t.Error("reaches an end")
	}
	seen := map[string]bool{}
	for after, n := "0", 0; ; n++ {
		p := ann.Get(path + "/rows?after=" + after + "&limit=40").Is(http.StatusOK)
		rows := p.Rows()
		for _, m := range p.All("article", "class", "message") {
			if id := sitetest.Attribute(m, "id"); seen[id] {
				t.Fatalf("%s twice", id)
			} else {
				seen[id] = true
			}
		}
		if strings.Contains(p.Body, "data-end") {
			break
		}
		if after = sitetest.Attribute(rows, "data-last"); n > 10 {
			t.Fatal("never ends")
		}
	}
	if len(seen) != 130 {
		t.Errorf("%d rows, want 130", len(seen))
	}
	p = ann.Get(path + "/rows?before=11&limit=5")
	if rows := p.Rows(); sitetest.Attribute(rows, "data-first") != "6" || sitetest.Attribute(rows, "data-last") != "10" {
		t.Errorf("before 11: %v", rows.Attr)
	}
	for _, q := range []string{"?limit=0", "?limit=101", "?after=-1", "?after=x"} {
		ann.Get(path + "/rows" + q).Is(http.StatusBadRequest)
	}
	bob.Get(path + "/rows").Is(http.StatusNotFound)
}

func TestSettings_OwnersDecideOthersRead(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	s.AgentOf(ann, "echo", hub.Public)
	path := ann.Post("/chat", "agent", "guide", "text", "One").Location
	ann.Post(path+"/members", "member", "bob").Leads(path)
	ann.Post(path+"/settings", "form", "room", "speaks", "agent", "speaker", "guide", "past", "nothing", "hops", "2", "turns", "4", "budget", "64").Leads(path + "/settings?saved=1")
	p := ann.Get(path + "/settings").Is(http.StatusOK)
	if n := p.One("input", "id", "speaks-agent"); sitetest.Attribute(n, "checked") != "" || !p.Has("input", "id", "hops", "value", "2") || !p.Has("input", "id", "budget", "value", "64") {
		t.Errorf("not stored: %v", n.Attr)
	}
	p = ann.Post(path+"/settings", "form", "room", "hops", "many").Is(http.StatusBadRequest)
	p.Field("hops", "many", "whole number")
	if p := bob.Get(path + "/settings").Is(http.StatusOK); p.Has("input", "name", "speaks") || !p.Says("new messages only") {
		t.Error("a member may change it, or is not told")
	}
	bob.Post(path+"/settings", "form", "room", "past", "all").Is(http.StatusForbidden)
	p = ann.Post(path+"/links", "kind", "join", "role", "reader", "uses", "3", "life", "7").Is(http.StatusCreated)
	if !strings.Contains(p.Body, "http://portal.test/join/") {
		t.Error("the link is not shown")
	}
	p = ann.Get(path + "/settings")
	if strings.Contains(p.Body, "http://portal.test/join/") || !p.Says("0 of 3 joined") {
		t.Error("the link is shown again, or not listed")
	}
	link := sitetest.Attribute(p.One("input", "name", "link"), "value")
	ann.Post(path+"/unlink", "link", link).Leads(path + "/settings#links")
	ann.Post(path+"/role", "member", "bob", "role", "reader").Leads(path)
	if p := bob.Get(path); p.Has("textarea", "id", "text") || !p.Says("You can read here") {
		t.Error("a reader is offered to write")
	}
	bob.Post(path, "text", "Hi", "client_id", "1").Is(http.StatusForbidden)
	for _, what := range [][]string{{"/pin", "pinned", "true"}, {"/archive", "archived", "true"}, {"/notify", "notify", "mentions"}} {
		bob.Post(path+what[0], what[1], what[2]).Leads(path)
	}
	if p := bob.Get(path); !p.Has("input", "name", "pinned", "value", "false") || !p.Has("input", "name", "archived", "value", "false") {
		t.Error("the reader's own choices are not kept")
	}
}

func TestSay_TellsFirstWhereTextGoes(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	s.AgentOf(ann, "echo", hub.Public)
	path := bob.Notes("One")
	bob.Post(path+"/members", "member", "echo").Leads(path)
	p := bob.Post(path, "text", "Hi @echo", "client_id", "1").Is(http.StatusConflict)
	form := p.Within(p.One("form", "id", "composer"))
	if sitetest.Words(p.One("textarea", "id", "text")) != "Hi @echo" || !form.Has("input", "name", "told", "value", "echo") || !form.Says("goes to echo.example") {
		t.Error("does not tell, or loses the text")
	}
	bob.Post(path, "text", "Hi @echo", "client_id", "1", "told", "echo", "share", "nothing").Leads(path)
	if p := bob.Get(path); p.Has("input", "name", "told") {
		t.Error("tells again")
	}
	if o := bob.Get(path + "/settings").Is(http.StatusOK); !o.Has("option", "value", "nothing", "selected", "") {
		t.Error("the choice is not shown")
	}
	bob.Post(path+"/settings", "form", "share", "share.echo", "own").Leads(path + "/settings?saved=1")
	bob.Post(path+"/settings", "form", "share", "share.nobody", "own").Is(http.StatusNotFound)
}
