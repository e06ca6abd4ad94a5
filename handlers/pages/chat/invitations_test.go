package chat_test

import (
	"net/http"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/sitetest"
)

func TestInvitations_AreAnsweredOnTheListOfChats(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	open := func() string {
		t.Helper()
		c, err := s.Chat.Create(t.Context(), ann.Actor, "Secret plans", []string{"bob"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Chat.Post(t.Context(), ann.Actor, c.ID, chat.Draft{ClientID: ident.NewID(), Parts: []task.Part{task.TextPart("of the launch")}}); err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	one, two := open(), open()
	if p := ann.Get("/chat/" + one).Is(http.StatusOK); !p.Says("invited") {
		t.Error("ann does not see that bob is only invited")
	}
	p := bob.Get("/chat").Is(http.StatusOK)
	if !p.Says("ann invites you to Secret plans") || p.Says("of the launch") || p.Says("You have no") {
		t.Error("bob's list of chats does not show the invitation, or more")
	}
	bob.Get("/chat/" + one).Is(http.StatusNotFound)
	bob.Post("/chat/" + one + "/accept").Is(http.StatusSeeOther)
	if p := bob.Get("/chat/" + one).Is(http.StatusOK); !p.Says("of the launch") {
		t.Error("bob accepted and does not read the conversation")
	}
	bob.Post("/chat/"+two+"/decline", "block", "ann").Is(http.StatusSeeOther)
	if p := bob.Get("/chat").Is(http.StatusOK); p.Says("invites you") {
		t.Error("the declined invitation is still shown")
	}
	if p := bob.Get("/account").Is(http.StatusOK); !p.Says("ann since") {
		t.Error("the account page does not list ann as blocked")
	}
	if p := bob.Get("/chat/" + one).Is(http.StatusOK); !p.Says("Message of a person you blocked") {
		t.Error("the message of a blocked person is not collapsed")
	}
	if p := ann.Get("/chat/" + one).Is(http.StatusOK); p.Says("blocked") {
		t.Error("ann sees the block")
	}
	bob.Post("/account/unblock", "person", "ann").Is(http.StatusSeeOther)
	if p := bob.Post("/account/block", "person", "nobody").Is(http.StatusNotFound); !p.Says("nobody") {
		t.Error("no error of the form")
	}

	if p := ann.Get("/chat?choose=1").Is(http.StatusOK); len(p.All("input", "name", "id")) != 2 {
		t.Error("not both conversations are offered")
	}
	ann.Post("/chat/leave", "id", one, "id", two).Is(http.StatusSeeOther)
	ann.Get("/chat/" + one).Is(http.StatusNotFound)
	bob.Get("/chat/" + one).Is(http.StatusOK)
}
