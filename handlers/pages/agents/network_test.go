package agents_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/handlers"
	"agentsite/internal/account"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/internal/testing/sitetest"
)

// publications says the same of every agent.
type publications struct{ state *federation.Published }

func (p publications) Published(hub.Agent) federation.Published { return *p.state }

func TestOwner_IsToldHowTheAgentStandsInTheNetwork(t *testing.T) {
	alone := sitetest.NewSite(t, account.Open)
	ann := alone.Person("ann")
	alone.AgentOf(ann, "echo", hub.Public)
	if p := ann.Get("/agents/echo/owner").Is(http.StatusOK); p.Has("section", "id", "network") {
		t.Error("a portal in no network speaks of one")
	}
	stands := federation.Published{Version: record.Version{Epoch: 5, Seq: 7}, At: time.Now(), Hash: record.Hash{1}, Listed: true}
	s := sitetest.NewSiteWith(t, account.Open, func(cfg *handlers.Config) {
		cfg.Publications = publications{&stands}
	})
	ann = s.Person("ann")
	s.AgentOf(ann, "echo", hub.Public)
	p := ann.Get("/agents/echo/owner").Is(http.StatusOK)
	if !p.Says(record.Hash{1}.String()) || p.Says("in a moment") || p.Says("show less") {
		t.Error("the record is not shown as it is")
	}
	stands.Listed, stands.Cut = false, []string{"the description is cut to 1024 bytes"}
	p = ann.Get("/agents/echo/owner").Is(http.StatusOK)
	if !p.Says("in a moment") || !p.Says("the description is cut to 1024 bytes") {
		t.Error("nothing of what is missing")
	}
	read := func(b *sitetest.Browser) string { return b.Get("/api/v1/agents/echo").Is(http.StatusOK).Body }
	if got := read(ann); !strings.Contains(got, `"network":{"published":true,"hash":"`+record.Hash{1}.String()+`","epoch":5,"seq":7,"at":"`) || !strings.Contains(got, `"cut":["the description`) {
		t.Error(got)
	}
	if got := read(s.Guest()); strings.Contains(got, `"network"`) {
		t.Error("strangers are told too")
	}
	stands = federation.Published{Why: "It is a draft."}
	if p := ann.Get("/agents/echo/owner").Is(http.StatusOK); !p.Says("It is a draft.") {
		t.Error("the owner is not told why not")
	}
	if got := read(ann); !strings.Contains(got, `"network":{"published":false,"reason":"It is a draft."}`) {
		t.Error(got)
	}
}
