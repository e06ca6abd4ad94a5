package handlers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// talk is a conversation of ada and bob with n messages in Markdown, and what
// their browsers get at a path.
func (s *site) talk(n int) (path string, ofAda, ofBob func(path string) *httptest.ResponseRecorder) {
	s.t.Helper()
	ada, bob := s.person("ada"), s.person("bob")
	c, err := s.chat.Create(s.t.Context(), ada.actor, "Talk", []string{"bob"})
	if err != nil {
		s.t.Fatal(err)
	}
	senders := []chat.Sender{{Kind: "person", ID: ada.actor.ID, Handle: "ada"}, {Kind: "person", ID: bob.actor.ID, Handle: "bob"}}
	at := time.Now().Add(-time.Hour)
	for i := range n {
		m := chat.Message{ConversationID: c.ID, ID: ident.NewID(), ClientID: ident.NewID(), Sender: senders[i%2], Kind: chat.Text, CreatedAt: at.Add(time.Duration(i) * time.Second),
			Parts: []task.Part{task.TextPart(fmt.Sprintf("Message %d says **something** about [this](https://example.org/%d), with `code`.\n\n- one\n- two\n", i, i))}}
		if _, err := s.db.Append(s.t.Context(), chat.Post{Message: m}); err != nil {
			s.t.Fatal(err)
		}
	}
	visit := func(b *browser) func(string) *httptest.ResponseRecorder {
		return func(path string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = b.addr
			r.AddCookie(&http.Cookie{Name: "agentsite-test", Value: b.cookie})
			w := httptest.NewRecorder()
			s.router.ServeHTTP(w, r)
			return w
		}
	}
	return chatPath(c.ID), visit(ada), visit(bob)
}

// Bounds of the page of 50 short messages. Its menus, icons and dialogs are
// there once, and what was rendered for one reader serves the next.
const (
	maxTalkBytes  = 100 << 10
	maxTalkAllocs = 4000
)

func TestConversation_CostsLittle(t *testing.T) {
	s := newSite(t, account.Open)
	path, ada, _ := s.talk(60)
	if w := ada(path); w.Code != http.StatusOK || w.Body.Len() > maxTalkBytes || strings.Count(w.Body.String(), "<article class=\"message") < 50 {
		t.Errorf("status %d, %d bytes for %d messages", w.Code, w.Body.Len(), strings.Count(w.Body.String(), "<article class=\"message"))
	}
	if n := testing.AllocsPerRun(10, func() { ada(path) }); n > maxTalkAllocs {
		t.Errorf("%.0f allocations", n)
	}
}

func TestConversation_IsKeptForNobodyElse(t *testing.T) {
	s := newSite(t, account.Open)
	path, ada, bob := s.talk(4)
	mine := regexp.MustCompile(`<article class="message +message-mine message-person[^>]*data-sender="([a-z]+)"`)
	own := func(w *httptest.ResponseRecorder) (out []string) {
		for _, m := range mine.FindAllStringSubmatch(w.Body.String(), -1) {
			out = append(out, m[1])
		}
		return out
	}
	for range 2 {
		if got := own(ada(path)); !slices.Equal(got, []string{"ada", "ada"}) {
			t.Errorf("ada's own are %v", got)
		}
		if got := own(bob(path)); !slices.Equal(got, []string{"bob", "bob"}) {
			t.Errorf("bob's own are %v", got)
		}
	}
}
