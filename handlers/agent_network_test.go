package handlers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

func TestOwner_IsToldHowTheAgentStandsInTheNetwork(t *testing.T) {
	alone := newSite(t, account.Open)
	ann := alone.person("ann")
	alone.agentOf(ann, "echo", hub.Public)
	if p := ann.get("/agents/echo/owner").is(http.StatusOK); p.has("section", "id", "network") {
		t.Error("a portal in no network speaks of one")
	}
	stands := federation.Published{Version: record.Version{Epoch: 5, Seq: 7}, At: time.Now(), Hash: record.Hash{1}, Listed: true}
	s := newSiteWith(t, account.Open, func(cfg *Config) {
		cfg.Published = func(hub.Agent) federation.Published { return stands }
	})
	ann = s.person("ann")
	s.agentOf(ann, "echo", hub.Public)
	p := ann.get("/agents/echo/owner").is(http.StatusOK)
	if !p.says(record.Hash{1}.String()) || p.says("in a moment") || p.says("show less") {
		t.Error("the record is not shown as it is")
	}
	stands.Listed, stands.Cut = false, []string{"the description is cut to 1024 bytes"}
	p = ann.get("/agents/echo/owner").is(http.StatusOK)
	if !p.says("in a moment") || !p.says("the description is cut to 1024 bytes") {
		t.Error("nothing of what is missing")
	}
	read := func(b *browser) string { return b.get("/api/v1/agents/echo").is(http.StatusOK).body }
	if got := read(ann); !strings.Contains(got, `"network":{"published":true,"hash":"`+record.Hash{1}.String()+`","epoch":5,"seq":7,"at":"`) || !strings.Contains(got, `"cut":["the description`) {
		t.Error(got)
	}
	if got := read(s.guest()); strings.Contains(got, `"network"`) {
		t.Error("strangers are told too")
	}
	stands = federation.Published{Why: "It is a draft."}
	if p := ann.get("/agents/echo/owner").is(http.StatusOK); !p.says("It is a draft.") {
		t.Error("the owner is not told why not")
	}
	if got := read(ann); !strings.Contains(got, `"network":{"published":false,"reason":"It is a draft."}`) {
		t.Error(got)
	}
}
