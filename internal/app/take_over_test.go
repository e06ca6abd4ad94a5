package app_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// titles returns the titles of the client's conversations in the order of the list.
func titles(c *apptest.Client) (out []string) {
	var page struct{ Conversations []struct{ Title string } }
	c.Get(http.MethodGet, "/api/v1/conversations", nil, http.StatusOK, &page)
	for _, r := range page.Conversations {
		out = append(out, r.Title)
	}
	return out
}

// guestChat lets c start a conversation with calc, which answers.
func guestChat(t *testing.T, c *apptest.Client, title string) (id string) {
	t.Helper()
	var out struct{ ID string }
	c.Get(http.MethodPost, "/api/v1/conversations", map[string]any{"title": title, "members": []string{"calc"}},
		http.StatusCreated, &out)
	askCalc(c, out.ID, "2+2")
	return out.ID
}

// askCalc says a text in a conversation and waits for the answer.
func askCalc(c *apptest.Client, id, text string) {
	stream := c.Socket(id)
	defer stream.Close()
	stream.Answered(c.Say(id, text).Tasks[0].ID)
}

func TestLogin_KeepsTheChatsOfTheVisitor(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	p.User(t, "alice")
	c := p.Guest(t)
	if a := c.Must(http.MethodGet, "/login", nil, http.StatusOK); strings.Contains(a.Body, "take_chats") {
		t.Error("the form offers chats that are not there")
	}
	first := guestChat(t, c, "first")
	guestChat(t, c, "second")
	a := c.Must(http.MethodGet, "/login", nil, http.StatusOK)
	if !strings.Contains(a.Body, "chats of this browser to my account (2)") {
		t.Error("the form does not offer the chats")
	}
	old := p.Guest(t)
	base, _ := url.Parse(p.Base)
	old.HTTP.Jar.SetCookies(base, c.HTTP.Jar.Cookies(base))

	// Neither a wrong password nor another site takes anything.
	wrong := form("name", "alice", "password", "wrong wrong wrong", "take_chats", "on")
	c.Must(http.MethodPost, "/login", wrong, http.StatusUnauthorized)
	taking := form("name", "alice", "password", apptest.Password, "take_chats", "on")
	c.Must(http.MethodPost, "/login", taking, http.StatusForbidden, setHeader("Sec-Fetch-Site", "cross-site"))
	if got := titles(c); len(got) != 2 {
		t.Fatalf("the visitor has %q", got)
	}
	// The right password from a browser without the cookie takes nothing either.
	if p.Guest(t).Must(http.MethodPost, "/login", taking, http.StatusSeeOther); len(titles(p.LogIn(t, "alice"))) != 0 {
		t.Error("another browser took the chats")
	}

	c.Must(http.MethodPost, "/login", taking, http.StatusSeeOther)
	if got := strings.Join(titles(c), " "); got != "second first" {
		t.Errorf("the account has %q", got)
	}
	var room struct {
		Role    string
		Members []struct{ Kind, Handle string }
	}
	c.Get(http.MethodGet, "/api/v1/conversations/"+first, nil, http.StatusOK, &room)
	for _, m := range room.Members {
		if m.Kind == "guest" {
			t.Errorf("the visitor is still a member: %v", room.Members)
		}
	}
	var page struct {
		Messages []struct {
			Sender struct{ Kind string }
			Kind   string
		}
	}
	c.Get(http.MethodGet, "/api/v1/conversations/"+first+"/messages", nil, http.StatusOK, &page)
	kinds := map[string]int{}
	for _, m := range page.Messages {
		kinds[m.Kind+" "+m.Sender.Kind]++
	}
	if kinds["text guest"] != 1 || kinds["text agent"] != 1 || kinds["event person"] != 1 {
		t.Errorf("the messages are %v", kinds)
	}
	askCalc(c, first, "3+3")

	// The visitor's session, which somebody may have kept, opens them no more.
	old.Must(http.MethodGet, "/api/v1/conversations/"+first, nil, http.StatusNotFound)
	if got := titles(old); len(got) != 0 {
		t.Errorf("the visitor still has %q", got)
	}
}

func TestLogin_LeavesTheChatsWithoutTheChoice(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	p.User(t, "alice")
	c := p.Guest(t)
	guestChat(t, c, "mine")
	c.Must(http.MethodPost, "/login", form("name", "alice", "password", apptest.Password), http.StatusSeeOther)
	if got := titles(c); len(got) != 0 {
		t.Errorf("the account has %q", got)
	}
}

func TestSignUp_KeepsTheChatsOfTheVisitor(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	p.Operator(t, "olga")
	c := p.Guest(t)
	guestChat(t, c, "mine")
	if a := c.Must(http.MethodGet, "/signup", nil, http.StatusOK); !strings.Contains(a.Body, `name="take_chats"`) {
		t.Error("the form does not offer the chats")
	}
	c.Must(http.MethodPost, "/signup", form("name", "alice", "password", apptest.Password, "take_chats", "on"),
		http.StatusSeeOther)
	if got := titles(c); len(got) != 1 || got[0] != "mine" {
		t.Errorf("the account has %q", got)
	}
}
