package agents_test

import (
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/hub"
	"agentsite/internal/testing/sitetest"
)

func TestBrowse_KeptPageHasItsOwnNonceEachTime(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	seen := make(map[string]bool)
	for range 3 {
		p := s.Guest().Get("/agents")
		for _, script := range p.All("script") {
			nonce := sitetest.Attribute(script, "nonce")
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
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	if s.Guest().Get("/agents").Has("a", "href", "/agents/echo") {
		t.Fatal("there is an echo already")
	}
	s.AgentOf(ann, "echo", hub.Public)
	if !s.Guest().Get("/agents").Has("a", "href", "/agents/echo") {
		t.Error("a new agent is missing from a visitor's page")
	}
	ann.Post("/agents/echo/delete", "confirm", "echo")
	if s.Guest().Get("/agents").Has("a", "href", "/agents/echo") {
		t.Error("a removed agent stands on a visitor's page")
	}
}

func TestBrowse_KeepsNoPageOfSomebody(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	if !ann.Get("/agents").Has("*", "href", "/account") {
		t.Fatal("the page does not show who is signed in, so this test would show nothing")
	}
	if s.Guest().Get("/agents").Has("*", "href", "/account") {
		t.Error("a visitor sees somebody's page")
	}
	s.Guest().Get("/agents")
	if !ann.Get("/agents").Has("*", "href", "/account") {
		t.Error("somebody sees a visitor's page")
	}
}
