package chat_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/testing/sitetest"
)

// Bounds of the page of 50 short messages. Its menus, icons and dialogs are
// there once, and what was rendered for one reader serves the next.
const (
	maxTalkBytes  = 100 << 10
	maxTalkAllocs = 4000
)

func TestConversation_CostsLittle(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	path, ada, _ := s.Talk(60)
	if w := ada(path); w.Code != http.StatusOK || w.Body.Len() > maxTalkBytes || strings.Count(w.Body.String(), "<article class=\"message") < 50 {
		t.Errorf("status %d, %d bytes for %d messages", w.Code, w.Body.Len(), strings.Count(w.Body.String(), "<article class=\"message"))
	}
	if n := testing.AllocsPerRun(10, func() { ada(path) }); n > maxTalkAllocs {
		t.Errorf("%.0f allocations", n)
	}
}

func TestConversation_IsKeptForNobodyElse(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	path, ada, bob := s.Talk(4)
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
