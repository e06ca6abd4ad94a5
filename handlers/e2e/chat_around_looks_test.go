package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// TestAroundLooks opens the pages around a conversation: the list with much on
// it, a search, what is archived, an invitation, and what a read link shows.
func TestAroundLooks(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	far := newModel(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	register(ada, agents(far.base())[0])
	form := func(c *apptest.Client, to string, pairs ...string) {
		t.Helper()
		in := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			in.Add(pairs[i], pairs[i+1])
		}
		if a := c.Do(http.MethodPost, to, in); a.Status >= 400 {
			t.Errorf("%s: %d %.300s", to, a.Status, a.Body)
		}
	}
	link := func(room, kind string) string {
		var l struct{ URL string }
		ada.Get(http.MethodPost, "/api/v1/conversations/"+room+"/links", map[string]any{"kind": kind}, http.StatusCreated, &l)
		return l.URL[strings.LastIndex(l.URL, "://")+3+strings.IndexByte(l.URL[strings.LastIndex(l.URL, "://")+3:], '/'):]
	}
	for i, title := range []string{"Notes", strings.Repeat("A name without an end ", 5), "Harbour"} {
		room := ada.Conversation("guide")
		form(ada, "/chat/"+room+"/rename", "title", title)
		form(ada, "/chat/"+room+[]string{"/pin", "/archive", "/notify"}[i])
		ada.Say(room, "The tide tables of the harbour, and what they mean")
	}
	room := ada.Conversation("invoice-reader", "guide", "bob")
	form(ada, "/chat/"+room+"/rename", "title", "Invoices")
	posts(t, ada, "/chat/"+room, url.Values{"text": {"Here is the **plan** of the harbour.\n\n| a | b |\n|---|---|\n| 1 | 2 |"}, "client_id": {"a"}}, map[string][]byte{"harbour.png": gradient(t), "invoices.csv": []byte("no,sum\n1,1204\n")})
	for i := range 3 {
		bob.Say(room, fmt.Sprint("Look at invoice ", i))
	}
	bob.Must(http.MethodPost, "/api/v1/conversations/"+room+"/messages", map[string]any{"client_id": "r", "text": "I will.", "reply_to": 2}, http.StatusCreated)
	a := visit(t, root, p, desk).as(ada)
	a.allow("409 (Conflict)")
	for _, v := range []struct{ name, path string }{{"chats", "/chat"}, {"chats-found", "/chat?q=harbour"}, {"chats-not-found", "/chat?q=nothing-of-that"}, {"chats-archived", "/chat?archived=1"},
		{"join-member", link(room, "join")}, {"shared", link(room, "read")}, {"account-told", "/account"}} {
		a.open(v.path)
		a.look(v.name)
	}
	c := visit(t, root, p, desk).as(p.User(t, "cyd"))
	c.open(link(room, "join"))
	c.look("join")
}
