package sitetest

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"agentsite/handlers/address"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// Same fails the test when the main parts of two pages differ in more than the names nameA and nameB,
// so that a page does not reveal whether something exists.
func Same(t *testing.T, a, b Page, nameA, nameB string) {
	t.Helper()
	clean := func(p Page, name string) string {
		main := p.One("main")
		q := Page{T: t, Doc: main}
		for _, c := range q.All("*", "class", "error-request") {
			c.Parent.RemoveChild(c)
		}
		return strings.ReplaceAll(Words(main), name, "NAME")
	}
	if x, y := clean(a, nameA), clean(b, nameB); x != y {
		t.Errorf("they differ:\n%s\n%s", x, y)
	}
}

// LinkTo creates a link to the conversation at path and returns the path of the link.
func (b *Browser) LinkTo(path string, kind chat.LinkKind) string {
	b.t.Helper()
	_, secret, err := b.Chat.NewLink(b.t.Context(), b.Actor, strings.TrimPrefix(path, "/chat/"), chat.LinkDraft{Kind: kind})
	if err != nil {
		b.t.Fatal(err)
	}
	return address.Portal{}.LinkURL(kind, secret)
}

// Counts returns the numbers of stored accounts, agents, conversations and messages as one text, to
// compare before and after an action.
func (s *Site) Counts() string {
	s.T.Helper()
	n, err := s.DB.Stats(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	return fmt.Sprintf("accounts=%d agents=%d conversations=%d messages=%d", n["accounts"], n["agents"], n["conversations"], n["messages"])
}

// Talk creates a conversation of the new accounts ada and bob with n messages in Markdown. It returns
// the path of its page, and for each account a function that requests a path.
func (s *Site) Talk(n int) (path string, ofAda, ofBob func(path string) *httptest.ResponseRecorder) {
	s.T.Helper()
	ada, bob := s.Person("ada"), s.Person("bob")
	s.Acquaint(ada, bob)
	c, err := s.Chat.Create(s.T.Context(), ada.Actor, "Talk", []string{"bob"})
	if err != nil {
		s.T.Fatal(err)
	}
	senders := []chat.Sender{{Kind: "person", ID: ada.Actor.ID, Handle: "ada"}, {Kind: "person", ID: bob.Actor.ID, Handle: "bob"}}
	at := time.Now().Add(-time.Hour)
	for i := range n {
		m := chat.Message{ConversationID: c.ID, ID: ident.NewID(), ClientID: ident.NewID(), Sender: senders[i%2], Kind: chat.Text, CreatedAt: at.Add(time.Duration(i) * time.Second),
			Parts: []task.Part{task.TextPart(fmt.Sprintf("Message %d says **something** about [this](https://example.org/%d), with `code`.\n\n- one\n- two\n", i, i))}}
		if _, err := s.DB.Append(s.T.Context(), chat.Post{Message: m}); err != nil {
			s.T.Fatal(err)
		}
	}
	visit := func(b *Browser) func(string) *httptest.ResponseRecorder {
		return func(path string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = b.Addr
			r.AddCookie(&http.Cookie{Name: "agentsite-test", Value: b.Cookie})
			w := httptest.NewRecorder()
			s.Router.ServeHTTP(w, r)
			return w
		}
	}
	return address.ChatPath(c.ID), visit(ada), visit(bob)
}

// Acquaint lets the people add each other to conversations without asking.
func (s *Site) Acquaint(people ...*Browser) {
	s.T.Helper()
	var list []account.Account
	for _, b := range people {
		list = append(list, account.Account{ID: b.Actor.ID, Name: b.Actor.Name})
	}
	storetest.Acquaint(s.T, s.DB, list...)
}

// Send posts the message form to a path with files (name to content) and further fields, pairs of name
// and value, as a browser does.
func (b *Browser) Send(path string, files map[string]string, pairs ...string) Page {
	b.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i := 0; i < len(pairs); i += 2 {
		w.WriteField(pairs[i], pairs[i+1])
	}
	if len(files) == 0 {
		w.CreateFormFile("file", "") // a browser sends an empty part for a file input without a file
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
	r.RemoteAddr = b.Addr
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.AddCookie(&http.Cookie{Name: "agentsite-test", Value: b.Cookie})
	rec := httptest.NewRecorder()
	b.Router.ServeHTTP(rec, r)
	p := Page{T: b.t, Status: rec.Code, Location: rec.Header().Get("Location"), Header: rec.Header(), Body: rec.Body.String()}
	doc, err := html.Parse(strings.NewReader(p.Body))
	if err != nil {
		b.t.Fatal(err)
	}
	p.Doc = doc
	return p
}

// Within returns the page reduced to the element n, so that searches look below it only.
func (p Page) Within(n *html.Node) Page { p.Doc = n; return p }

// MessageRow returns the part of a conversation page that shows the message with that seq.
func (p Page) MessageRow(seq int) Page {
	p.T.Helper()
	return p.Within(p.One("article", "id", fmt.Sprint("m", seq)))
}

// Notes creates a conversation with the account as its only member, posts the texts, and returns the
// path of its page.
func (b *Browser) Notes(texts ...string) string {
	b.t.Helper()
	path := b.Post("/chat", "agent", "", "text", texts[0]).Is(http.StatusSeeOther).Location
	for i, text := range texts[1:] {
		b.Post(path, "text", text, "client_id", fmt.Sprint("n", i)).Leads(path)
	}
	return path
}

// Rows returns the element that contains the messages of a conversation page.
func (p Page) Rows() *html.Node {
	p.T.Helper()
	for _, n := range p.All("div") {
		if Attribute(n, "data-first") != "" {
			return n
		}
	}
	p.T.Fatalf("no window: %.300s", p.Body)
	return nil
}
