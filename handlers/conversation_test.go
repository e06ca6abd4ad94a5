package handlers

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// send posts the composer's form as a browser does, with files.
func (b *browser) send(path string, files map[string]string, pairs ...string) page {
	b.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i := 0; i < len(pairs); i += 2 {
		w.WriteField(pairs[i], pairs[i+1])
	}
	if len(files) == 0 {
		w.CreateFormFile("file", "") // an input without a file
	}
	for name, content := range files {
		f, err := w.CreateFormFile("file", name)
		if err != nil {
			b.t.Fatal(err)
		}
		f.Write([]byte(content))
	}
	w.Close()
	r := httptest.NewRequest(http.MethodPost, path, &body)
	r.RemoteAddr = b.addr
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.AddCookie(&http.Cookie{Name: "agentsite-test", Value: b.cookie})
	rec := httptest.NewRecorder()
	b.router.ServeHTTP(rec, r)
	p := page{t: b.t, status: rec.Code, location: rec.Header().Get("Location"), header: rec.Header(), body: rec.Body.String()}
	doc, err := html.Parse(strings.NewReader(p.body))
	if err != nil {
		b.t.Fatal(err)
	}
	p.doc = doc
	return p
}

// within is the part of a page below one of its elements.
func (p page) within(n *html.Node) page { p.doc = n; return p }

// message is what stands on the page under a seq.
func (p page) message(seq int) page {
	p.t.Helper()
	return p.within(p.one("article", "id", fmt.Sprint("m", seq)))
}

// notes opens a conversation of the person alone and says so much in it.
func (b *browser) notes(texts ...string) string {
	b.t.Helper()
	path := b.post("/chat", "agent", "", "text", texts[0]).is(http.StatusSeeOther).location
	for i, text := range texts[1:] {
		b.post(path, "text", text, "client_id", fmt.Sprint("n", i)).leads(path)
	}
	return path
}

// rows is the element around a window.
func (p page) rows() *html.Node {
	p.t.Helper()
	for _, n := range p.all("div") {
		if attribute(n, "data-first") != "" {
			return n
		}
	}
	p.t.Fatalf("no window: %.300s", p.body)
	return nil
}

func TestCompose_AnswersAndQuotes(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	path := ann.notes("The *first* thing. And more.", "The second")
	p := ann.get(path + "?reply=1").is(http.StatusOK)
	if form := p.one("form", "id", "composer"); attribute(form, "action") != path || !p.within(form).has("input", "name", "reply_to", "value", "1") || !strings.Contains(words(form), "Answering ann The first thing.") {
		t.Errorf("the composer does not answer: %s", words(form))
	}
	ann.send(path, nil, "text", "Indeed", "reply_to", "1", "client_id", "r").leads(path)
	m := ann.get(path).message(3)
	quote := m.one("a", "class", "quote")
	if attribute(quote, "href") != path+"?at=1#m1" || !strings.Contains(words(quote), "ann The first thing.") {
		t.Errorf("quotes %q at %q", words(quote), attribute(quote, "href"))
	}
	// What goes wrong keeps the text and what it answers.
	p = ann.send(path, nil, "text", "mine "+strings.Repeat("x", chat.MaxTextBytes), "reply_to", "2", "client_id", "s").is(http.StatusBadRequest)
	if !p.has("input", "name", "reply_to", "value", "2") || !strings.HasPrefix(words(p.one("textarea", "id", "text")), "mine x") {
		t.Error("what was typed is lost")
	}
	ann.get(path + "?reply=x").is(http.StatusBadRequest)
	if p := ann.get(path + "?reply=77").is(http.StatusOK); !p.says("not there any more") {
		t.Error("answers what is not there")
	}
}

func TestCompose_LooksAgainAndKeepsWhatIsTyped(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	path := ann.post("/chat", "agent", "guide", "text", "One").location
	if p := ann.get(path); !p.has("noscript") || !strings.Contains(p.body, `name="look"`) {
		t.Error("there is no way to look again")
	}
	p := ann.send(path, map[string]string{"a.txt": "alpha"}, "text", "half a thou", "reply_to", "1", "client_id", "1", "look", "1").is(http.StatusOK)
	if words(p.one("textarea", "id", "text")) != "half a thou" || !p.has("input", "name", "reply_to", "value", "1") {
		t.Error("what was typed is gone")
	}
	kept := p.one("input", "name", "kept")
	if !strings.Contains(s.counts(), "messages=1") {
		t.Error("looking said something")
	}
	// The file that came along goes with the next sending.
	ann.send(path, nil, "text", "whole", "client_id", "2", "kept", attribute(kept, "value")).leads(path)
	if f := ann.get(path).message(2).one("a", "class", "file"); !strings.Contains(words(f), "a.txt") || !strings.Contains(words(f), "5 bytes") {
		t.Errorf("the file is shown as %q", words(f))
	}
}

func TestCompose_FilesArePartsAndOthersDoNotCount(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	path := ann.notes("One")
	ann.send(path, map[string]string{"list.csv": "a,b\n1,2\n"}, "text", "", "client_id", "1").leads(path)
	f := ann.get(path).message(2).one("a", "class", "file")
	hash, ok := ownFile(attribute(f, "href"))
	if !ok {
		t.Fatalf("leads to %q", attribute(f, "href"))
	}
	// Knowing the hash is not having the file.
	theirs := bob.notes("Mine")
	p := bob.send(theirs, nil, "text", "Look", "client_id", "1", "kept", "hash="+hash+"&name=list.csv").is(http.StatusNotFound)
	if words(p.one("textarea", "id", "text")) != "Look" {
		t.Error("what was typed is lost")
	}
	bob.send(theirs, nil, "text", "", "client_id", "2").is(http.StatusBadRequest)
	bob.send(path, map[string]string{"x": "x"}, "text", "Hi").is(http.StatusNotFound)
}

func TestCompose_TooMuchKeepsTheText(t *testing.T) {
	s := newSite(t, account.Open)
	g := s.guest()
	path := g.post("/chat", "agent", "guide", "text", "Hello").location
	path, _, _ = strings.Cut(path, "?")
	big := strings.Repeat("z", chat.MaxGuestFileBytes+1)
	p := g.send(path, map[string]string{"big.bin": big}, "text", "with a file", "client_id", "1").is(http.StatusBadRequest)
	if words(p.one("textarea", "id", "text")) != "with a file" || words(p.one("*", "id", "composer-error")) == "" {
		t.Error("the text is lost, or nobody says why")
	}
}

func TestEdit_ChangesAndShowsWhatWas(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	path := ann.notes("Frist")
	ann.post(path+"/members", "member", "bob").leads(path)
	p := ann.get(path + "?edit=1").is(http.StatusOK)
	if form := p.one("form", "id", "composer"); attribute(form, "action") != path+"/m/1/edit" || words(p.one("textarea", "id", "text")) != "Frist" {
		t.Errorf("the composer does not edit: %s", attribute(form, "action"))
	}
	ann.send(path+"/m/1/edit", nil, "text", "First", "client_id", "1").leads(path + "?at=1#m1")
	m := bob.get(path).message(1)
	if !m.says("First") || m.says("Frist") || attribute(m.one("a", "class", "message-edited"), "href") != path+"/m/1#forms" {
		t.Errorf("reads %q", words(m.doc))
	}
	if p := bob.get(path + "/m/1").is(http.StatusOK); !p.says("Frist") || p.has("form", "action", path+"/m/1/unsay") {
		t.Error("what it said is not to be seen, or somebody else may take it away")
	}
	bob.send(path+"/m/1/edit", nil, "text", "Mine").is(http.StatusForbidden)
	p = ann.send(path+"/m/1/edit", nil, "text", strings.Repeat("x", chat.MaxTextBytes+1)).is(http.StatusBadRequest)
	if attribute(p.one("form", "id", "composer"), "action") != path+"/m/1/edit" {
		t.Error("an error leaves the edit")
	}
	ann.send(path+"/m/9/edit", nil, "text", "x").is(http.StatusNotFound)
	ann.post(path + "/m/nine/unsay").is(http.StatusNotFound)
}

func TestReact_PressedAgainIsTakenBack(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	path := ann.notes("One")
	ann.post(path+"/members", "member", "bob").leads(path)
	for _, b := range []*browser{ann, bob} {
		b.post(path+"/m/1/react", "emoji", "👍").leads(path + "?at=1#m1")
	}
	chip := ann.get(path).message(1).one("button", "class", "chip")
	if attribute(chip, "data-by") != "ann bob" || attribute(chip, "aria-pressed") != "true" || words(chip) != "👍 2" {
		t.Errorf("the chip is %v", chip.Attr)
	}
	ann.post(path+"/m/1/react", "emoji", "👍")
	chip = ann.get(path).message(1).one("button", "class", "chip")
	if attribute(chip, "data-by") != "bob" || attribute(chip, "aria-pressed") != "false" {
		t.Errorf("taken back, the chip is %v", chip.Attr)
	}
	if p := ann.post(path+"/m/1/react", "emoji", "word").is(http.StatusBadRequest); !p.has("textarea", "id", "text") {
		t.Error("a wrong one leads away")
	}
}

func TestUnsay_LeavesATrace(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	path := ann.notes("Other", "Secret")
	ann.post(path+"/members", "member", "bob").leads(path)
	bob.post(path + "/m/2/unsay").is(http.StatusForbidden)
	ann.post(path + "/m/2/unsay").leads(path + "?at=2#m2")
	p := bob.get(path)
	m := p.message(2)
	if !m.says("Deleted by ann") || p.says("Secret") || m.has("details", "class", "actions") {
		t.Errorf("reads %q", words(m.doc))
	}
	if p := bob.get(path + "/m/2").is(http.StatusOK); p.says("Secret") {
		t.Error("its page tells what it said")
	}
}

func TestAgain_FoldsTheEarlierAnswer(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	path := ann.post("/chat", "agent", "guide", "text", "One").location
	id := strings.TrimPrefix(path, "/chat/")
	answer := func(text string) {
		t.Helper()
		list, _, err := s.tasks.List(t.Context(), ann.actor, id, task.Submitted, "", 1)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d tasks, %v", len(list), err)
		}
		if err := s.chat.Finish(t.Context(), list[0], task.Done(text)); err != nil {
			t.Fatal(err)
		}
	}
	answer("First try")
	ann.post(path + "/m/2/again").leads(path)
	answer("Second try")
	p := ann.get(path)
	if m := p.message(2); !m.has("details", "class", "superseded") || attribute(m.doc, "data-newer") != "3" {
		t.Errorf("the earlier answer is not folded: %v", m.doc.Attr)
	}
	if m := p.message(3); attribute(m.doc, "data-target") != "2" || !m.says("regenerated") || !m.says("Second try") {
		t.Errorf("the new one reads %q", words(m.doc))
	}
	p = ann.post(path + "/m/3/branch").is(http.StatusSeeOther)
	if p.location == path || !ann.get(p.location).is(http.StatusOK).says("Second try") {
		t.Errorf("the branch at %q does not go on", p.location)
	}
}

func TestWindow_AroundAndOnwards(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	var texts []string
	for i := range 130 {
		texts = append(texts, fmt.Sprintf("note %d", i+1))
	}
	path := ann.notes(texts...)
	for range 2 { // set and taken back: takes seqs, is no line
		ann.post(path+"/m/130/react", "emoji", "👍")
	}
	p := ann.get(path + "?at=60").is(http.StatusOK)
	root := p.one("*", "id", "chat")
	if n := len(p.all("article", "class", "message-mine")); n < 50 || n > 52 || !p.has("article", "id", "m60", "class", "message-target") || attribute(root, "data-newest") != "132" {
		t.Errorf("%d messages around, newest %s", n, attribute(root, "data-newest"))
	}
	if strings.Contains(p.body, " data-end") || strings.Contains(p.body, " data-begin") {
		t.Error("reaches an end")
	}
	seen := map[string]bool{}
	for after, n := "0", 0; ; n++ {
		p := ann.get(path + "/rows?after=" + after + "&limit=40").is(http.StatusOK)
		rows := p.rows()
		for _, m := range p.all("article", "class", "message") {
			if id := attribute(m, "id"); seen[id] {
				t.Fatalf("%s twice", id)
			} else {
				seen[id] = true
			}
		}
		if strings.Contains(p.body, "data-end") {
			break
		}
		if after = attribute(rows, "data-last"); n > 10 {
			t.Fatal("never ends")
		}
	}
	if len(seen) != 130 {
		t.Errorf("%d rows, want 130", len(seen))
	}
	p = ann.get(path + "/rows?before=11&limit=5")
	if rows := p.rows(); attribute(rows, "data-first") != "6" || attribute(rows, "data-last") != "10" {
		t.Errorf("before 11: %v", rows.Attr)
	}
	for _, q := range []string{"?limit=0", "?limit=101", "?after=-1", "?after=x"} {
		ann.get(path + "/rows" + q).is(http.StatusBadRequest)
	}
	bob.get(path + "/rows").is(http.StatusNotFound)
}

func TestSettings_OwnersDecideOthersRead(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	s.agentOf(ann, "echo", hub.Public)
	path := ann.post("/chat", "agent", "guide", "text", "One").location
	ann.post(path+"/members", "member", "bob").leads(path)
	ann.post(path+"/settings", "form", "room", "speaks", "agent", "speaker", "guide", "past", "nothing", "hops", "2", "turns", "4", "budget", "64").leads(path + "/settings?saved=1")
	p := ann.get(path + "/settings").is(http.StatusOK)
	if n := p.one("input", "id", "speaks-agent"); attribute(n, "checked") != "" || !p.has("input", "id", "hops", "value", "2") || !p.has("input", "id", "budget", "value", "64") {
		t.Errorf("not stored: %v", n.Attr)
	}
	p = ann.post(path+"/settings", "form", "room", "hops", "many").is(http.StatusBadRequest)
	p.field("hops", "many", "whole number")
	if p := bob.get(path + "/settings").is(http.StatusOK); p.has("input", "name", "speaks") || !p.says("new messages only") {
		t.Error("a member may change it, or is not told")
	}
	bob.post(path+"/settings", "form", "room", "past", "all").is(http.StatusForbidden)
	p = ann.post(path+"/links", "kind", "join", "role", "reader", "uses", "3", "life", "7").is(http.StatusCreated)
	if !strings.Contains(p.body, "http://portal.test/join/") {
		t.Error("the link is not shown")
	}
	p = ann.get(path + "/settings")
	if strings.Contains(p.body, "http://portal.test/join/") || !p.says("0 of 3 joined") {
		t.Error("the link is shown again, or not listed")
	}
	link := attribute(p.one("input", "name", "link"), "value")
	ann.post(path+"/unlink", "link", link).leads(path + "/settings#links")
	ann.post(path+"/role", "member", "bob", "role", "reader").leads(path)
	if p := bob.get(path); p.has("textarea", "id", "text") || !p.says("You can read here") {
		t.Error("a reader is offered to write")
	}
	bob.post(path, "text", "Hi", "client_id", "1").is(http.StatusForbidden)
	for _, what := range [][]string{{"/pin", "pinned", "true"}, {"/archive", "archived", "true"}, {"/notify", "notify", "mentions"}} {
		bob.post(path+what[0], what[1], what[2]).leads(path)
	}
	if p := bob.get(path); !p.has("input", "name", "pinned", "value", "false") || !p.has("input", "name", "archived", "value", "false") {
		t.Error("the reader's own choices are not kept")
	}
}

func TestSay_TellsFirstWhereTextGoes(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	s.agentOf(ann, "echo", hub.Public)
	path := bob.notes("One")
	bob.post(path+"/members", "member", "echo").leads(path)
	p := bob.post(path, "text", "Hi @echo", "client_id", "1").is(http.StatusConflict)
	form := p.within(p.one("form", "id", "composer"))
	if words(p.one("textarea", "id", "text")) != "Hi @echo" || !form.has("input", "name", "told", "value", "echo") || !form.says("goes to echo.example") {
		t.Error("does not tell, or loses the text")
	}
	bob.post(path, "text", "Hi @echo", "client_id", "1", "told", "echo", "share", "nothing").leads(path)
	if p := bob.get(path); p.has("input", "name", "told") {
		t.Error("tells again")
	}
	if o := bob.get(path + "/settings").is(http.StatusOK); !o.has("option", "value", "nothing", "selected", "") {
		t.Error("the choice is not shown")
	}
	bob.post(path+"/settings", "form", "share", "share.echo", "own").leads(path + "/settings?saved=1")
	bob.post(path+"/settings", "form", "share", "share.nobody", "own").is(http.StatusNotFound)
}
