package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestInvitationLooks draws the answers to invitations, also without
// JavaScript: all are plain forms.
func TestInvitationLooks(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada, bob, long := p.User(t, "ada"), p.User(t, "bob"), p.User(t, strings.Repeat("long-name-", 3)+"end")
	open := func(by *apptest.Client, title string) string {
		t.Helper()
		var room struct{ ID string }
		by.Get(http.MethodPost, "/api/v1/conversations", map[string]any{"title": title, "members": []string{"bob", "calc"}}, http.StatusCreated, &room)
		return room.ID
	}
	open(ada, "Plans of the harbour")
	open(long, strings.Repeat("A title that does not end ", 4))
	room := open(ada, "")
	a := visit(t, root, p, desk).as(bob)
	a.open("/chat")
	a.look("invitations")
	a.click(`form[action="/chat/` + room + `/accept"] .button-primary`)
	a.until("the conversation", `location.pathname === "/chat/`+room+`"`)
	ada.Say(room, "Hello bob")
	ada.Must(http.MethodPost, "/api/v1/conversations/"+room+"/members", map[string]any{"handle": long.Name}, http.StatusCreated)
	long.Must(http.MethodPost, "/api/v1/conversations/"+room+"/accept", nil, http.StatusOK)
	long.Say(room, "A message that bob does not want to see")
	bob.Must(http.MethodPost, "/account/block", url.Values{"person": {long.Name}}, http.StatusSeeOther)
	p.User(t, "cyd")
	ada.Must(http.MethodPost, "/api/v1/conversations/"+room+"/members", map[string]any{"handle": "cyd"}, http.StatusCreated)
	a.open("/chat/" + room)
	a.says("Message of a person you blocked")
	a.look("invited-member")
	long.Say(room, "Another one, while the page is open")
	a.until("the live message is collapsed", `[...document.querySelectorAll("details.superseded:not([open])")].some((d) => d.textContent.includes("Another one"))`)
	a.open("/account")
	a.look("blocked-people")
	bob.Conversation("calc")
	a.open("/chat?choose=1")
	a.look("leave-many")
	a.click(`input[name="id"]`)
	a.click(".button-danger")
	a.until("the list", `location.pathname === "/chat" && location.search === ""`)
}
