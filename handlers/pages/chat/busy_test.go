package chat_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/testing/sitetest"
)

// A message to a busy agent is kept, and one button asks the agent again. It works without scripts.
func TestSay_ToABusyAgentOffersToTryAgain(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	path := ann.Post("/chat", "agent", "guide").Location
	s.Gate.SetBusy("guide", 29500*time.Millisecond)
	ann.Post(path, "text", "Hello", "client_id", "1").Is(http.StatusSeeOther)

	p := ann.Get(path).Is(http.StatusOK)
	if len(p.All("article", "class", "message-mine")) != 1 || len(p.All("article", "class", "message-working")) != 1 {
		t.Error("the message is lost, or waits although it was refused") // one is the template's
	}
	mark := p.One("div", "class", "mark-busy")
	if got := sitetest.Words(mark); !strings.Contains(got, "Not asked. guide is busy, about 30 s. Try again then.") {
		t.Errorf("the page says %q", got)
	}
	again := sitetest.Attribute(sitetest.Page{T: t, Doc: mark}.One("form"), "action")
	if !strings.HasSuffix(again, "/again") {
		t.Fatalf("the button leads to %q", again)
	}

	p = ann.Post(again).Is(http.StatusTooManyRequests)
	if p.Header.Get("Retry-After") != "30" || !p.Says("guide is busy, about 30 s.") {
		t.Errorf("again while it is busy: %v", p.Header)
	}
	s.Gate.SetBusy("guide", 0)
	ann.Post(again).Is(http.StatusSeeOther)
	if p := ann.Get(path); len(p.All("article", "class", "message-working")) != 2 || len(p.All("article", "class", "message-mine")) != 1 {
		t.Error("the agent was not asked again, or the message is there twice")
	}
}
