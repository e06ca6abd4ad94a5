package handlers

import (
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/hub"
)

func TestBrowse_KeptPageHasItsOwnNonceEachTime(t *testing.T) {
	s := newSite(t, account.Open)
	seen := make(map[string]bool)
	for range 3 {
		p := s.guest().get("/agents")
		for _, script := range p.all("script") {
			nonce := attribute(script, "nonce")
			if nonce == "" || len(nonce) > 30 {
				t.Fatalf("nonce %q", nonce)
			}
			seen[nonce] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d nonces on 3 pages", len(seen))
	}
}

func TestBrowse_ShowsAtOnceWhatWasRegistered(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	if s.guest().get("/agents").has("a", "href", "/agents/echo") {
		t.Fatal("there is an echo already")
	}
	s.agentOf(ann, "echo", hub.Public)
	if !s.guest().get("/agents").has("a", "href", "/agents/echo") {
		t.Error("a new agent is missing from a visitor's page")
	}
	ann.post("/agents/echo/delete", "confirm", "echo")
	if s.guest().get("/agents").has("a", "href", "/agents/echo") {
		t.Error("a removed agent stands on a visitor's page")
	}
}

func TestBrowse_KeepsNoPageOfSomebody(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	if !ann.get("/agents").has("*", "href", "/account") {
		t.Fatal("the page does not show who is signed in, so this test would show nothing")
	}
	if s.guest().get("/agents").has("*", "href", "/account") {
		t.Error("a visitor sees somebody's page")
	}
	s.guest().get("/agents")
	if !ann.get("/agents").has("*", "href", "/account") {
		t.Error("somebody sees a visitor's page")
	}
}
