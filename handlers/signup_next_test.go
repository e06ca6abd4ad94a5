package handlers

import (
	"net/http"
	"testing"

	"agentsite/internal/account"
)

// Who was sent to log in and has no account yet gets where they were going.
func TestSignup_LeadsOnToWhereTheReaderWasGoing(t *testing.T) {
	s := newSite(t, account.Open)
	s.person("first")
	p := s.guest().get("/login?next=/agents/new").is(http.StatusOK)
	if len(p.all("a", "href", "/signup?next=%2Fagents%2Fnew")) != 1 {
		t.Error("the log-in page does not lead on")
	}
	p = s.guest().get("/signup?next=/agents/new").is(http.StatusOK)
	if len(p.all("input", "value", "/agents/new")) != 1 {
		t.Error("the form forgets where the reader was going")
	}
	s.guest().post("/signup", "name", "ann", "password", "a good long password", "next", "/agents/new").leads("/agents/new")
	s.guest().post("/signup", "name", "bob", "password", "a good long password", "next", "//evil.example/").leads("/")
}
