package account_test

import (
	"net/http"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/testing/sitetest"
)

// Who was sent to log in and has no account yet gets where they were going.
func TestSignup_LeadsOnToWhereTheReaderWasGoing(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	s.Person("first")
	p := s.Guest().Get("/login?next=/agents/new").Is(http.StatusOK)
	if len(p.All("a", "href", "/signup?next=%2Fagents%2Fnew")) != 1 {
		t.Error("the log-in page does not lead on")
	}
	p = s.Guest().Get("/signup?next=/agents/new").Is(http.StatusOK)
	if len(p.All("input", "value", "/agents/new")) != 1 {
		t.Error("the form forgets where the reader was going")
	}
	s.Guest().Post("/signup", "name", "ann", "password", "a good long password", "next", "/agents/new").Leads("/agents/new")
	s.Guest().Post("/signup", "name", "bob", "password", "a good long password", "next", "//evil.example/").Leads("/")
}
