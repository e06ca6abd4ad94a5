package chat_test

import (
	"log/slog"
	"strings"
	"testing"

	"agentsite/handlers/address"
	"agentsite/handlers/markup"
	"agentsite/handlers/pages"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/task"
	"agentsite/internal/testing/sitetest"
)

func TestMessageHTML_IsTheSameElementForEverybody(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	id := strings.TrimPrefix(ann.Post("/chat", "agent", "guide", "text", "Hello **you**").Location, "/chat/")
	list, _, err := s.Chat.Messages(t.Context(), ann.Actor, id, chat.Span{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Fatal(err)
	}
	log, renderer := slog.New(slog.DiscardHandler), markup.New()
	site := pages.NewSite(address.Portal{}, s.Accounts, s.Hub, request.NewSessions(s.Accounts, "session", false, log), nil, renderer, log)
	messages := message.New(s.Hub, nil, site, renderer, log)
	first := messages.MessageHTML(list[0])
	list[0].Parts = []task.Part{{Data: []byte(`{"a":1}`)}, {URL: "javascript:alert(1)", Filename: "x"}}
	if messages.MessageHTML(list[0]) != first {
		t.Error("rendered twice")
	}
	list[0].Seq = 2
	second := messages.MessageHTML(list[0])
	if !strings.Contains(first, "<strong>you</strong>") || strings.Contains(first, "message-mine") || !strings.Contains(second, "&#34;a&#34;: 1") || strings.Contains(second, "javascript") {
		t.Errorf("%s\n%s", first, second)
	}
}
