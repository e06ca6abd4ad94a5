package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/agentruntime/agenttest"
	"agentsite/internal/app/apptest"
	"agentsite/internal/federation"
)

// TestSearch_AsksPortalsOverTheirQuota has a portal that keeps next to nothing
// of another find, open and call its agents.
func TestSearch_AsksPortalsOverTheirQuota(t *testing.T) {
	t.Parallel()
	agents := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	b := apptest.Start(t)
	a := apptest.Start(t)
	a.Operator(t, "olga").Must(http.MethodPatch, "/api/v1/peers/policy", map[string]any{"max_agents": 1}, http.StatusOK)
	bob := b.User(t, "bob")
	bob.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "far-echo", "title": "Zanzibar timetable", "description": "Knows every ferry.", "kind": "a2a",
		"endpoint": agents.Endpoint(agenttest.Echo), "visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	if err := a.Greet(t.Context(), b.URL()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := a.Until(ctx, b.NetworkID(), func(p federation.Peer) bool { return p.Truncated && p.Listed > 1 }); err != nil {
		t.Fatal("its log is not over the quota:", err, a.Log())
	}
	handle := "far-echo@" + b.Host
	ada := a.User(t, "ada")
	var page struct {
		Results []struct {
			Agent    struct{ Handle string }
			Verified bool
			Source   struct{ Portal, Record string }
		}
		Portals federation.Coverage
		Total   int
	}
	// The agent itself may be in a later head of the other portal, which may be
	// asked five times a second.
	pace := time.NewTicker(300 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil && page.Total == 0 {
		<-pace.C
		ada.Get(http.MethodGet, "/api/v1/search?q=zanzibar", nil, http.StatusOK, &page)
	}
	if len(page.Results) != 1 || page.Results[0].Agent.Handle != handle || page.Results[0].Source.Record == "" || page.Portals.Asked != 2 || page.Portals.Answered != 2 {
		t.Fatalf("%+v", page)
	}
	if text := ada.Must(http.MethodGet, "/agents?q=zanzibar", nil, http.StatusOK).Body; !strings.Contains(text, handle) {
		t.Error("the page does not show it")
	}
	if text := ada.Must(http.MethodGet, "/agents/"+handle, nil, http.StatusOK).Body; !strings.Contains(text, "Zanzibar timetable") {
		t.Error("it cannot be opened")
	}
	ada.Must(http.MethodGet, "/api/v1/agents/"+handle+"/record", nil, http.StatusOK)
	room := ada.Conversation(handle)
	s := ada.Events(room)
	defer s.Close()
	k := ada.Say(room, "hello there").Tasks[0]
	if got := s.Answered(k.ID); got.Plain() != agenttest.Echoed("hello there") {
		t.Errorf("%+v", got)
	}
}
