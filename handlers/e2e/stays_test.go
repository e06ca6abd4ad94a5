package e2e

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestGuest_HasAnAnswerByOneClick has a visitor without an account on the home page: one click asks the example, and the
// answer is there, without a field or a form between.
func TestGuest_HasAnAnswerByOneClick(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
		t.Run(name, func(t *testing.T) {
			g := visit(t, root, p, s)
			g.open("/")
			g.press(".example button")
			g.answered("12")
			g.clean("an answer by one click")
		})
	}
}

// TestRoom_IsJoinedByALink has a person open an invitation link: one click, and the conversation with its messages is
// there.
func TestRoom_IsJoinedByALink(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
		t.Run(name, func(t *testing.T) {
			ada, bob := ada.With(t), p.User(t, "bob-"+name)
			room := ada.Conversation()
			ada.Say(room, "Welcome aboard")
			var link struct{ URL string }
			ada.Get(http.MethodPost, "/api/v1/conversations/"+room+"/links", map[string]any{"kind": "join", "role": "member"}, http.StatusCreated, &link)
			b := visit(t, root, p, s).as(bob)
			b.open(strings.TrimPrefix(link.URL, p.URL()))
			b.press("main form button")
			b.until("the conversation", `location.pathname === "/chat/`+room+`" && document.querySelector("[data-messages]").innerText.includes("Welcome aboard")`)
			b.clean("joining by a link")
		})
	}
}
