package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestBuiltIn_AgentsAreLocalAndCalledByAddress has two portals: each finds its own built-in agents only, and
// calls those of the other by their address.
func TestBuiltIn_AgentsAreLocalAndCalledByAddress(t *testing.T) {
	t.Parallel()
	a, b := apptest.Start(t), apptest.Start(t)
	agents := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	b.User(t, "bob").Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "far-echo", "title": "Zanzibar timetable", "description": "Knows every ferry.", "kind": "a2a",
		"endpoint": agents.Endpoint(agenttest.Echo), "visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	if err := a.Greet(t.Context(), b.URL()); err != nil {
		t.Fatal(err)
	}
	ada := a.User(t, "ada")
	search := func(query string) (handles []string) {
		var page struct {
			Results []struct{ Agent struct{ Handle string } }
		}
		ada.Get(http.MethodGet, "/api/v1/search?"+query, nil, http.StatusOK, &page)
		for _, r := range page.Results {
			handles = append(handles, r.Agent.Handle)
		}
		return handles
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := a.Until(ctx, b.NetworkID(), func(p federation.Peer) bool { return p.Agents == 1 }); err != nil {
		t.Fatal(err, a.Log())
	}
	for _, query := range []string{"q=calculator", "kind=builtin", "limit=100"} {
		for _, handle := range search(query) {
			if strings.Contains(handle, "@") && !strings.HasPrefix(handle, "far-echo@") {
				t.Errorf("%s finds %s", query, handle)
			}
		}
	}
	if got := search("portal=" + b.Host); len(got) != 1 {
		t.Errorf("the other portal lists %q", got)
	}

	calc := "calc@" + b.Host
	var one struct {
		Handle, Kind string
		Source       struct{ Portal, ID, Record string }
	}
	ada.Get(http.MethodGet, "/api/v1/agents/"+calc, nil, http.StatusOK, &one)
	if one.Handle != calc || one.Kind != "builtin" || one.Source.ID != b.NetworkID() || one.Source.Record != "" {
		t.Errorf("%+v", one)
	}
	ada.Must(http.MethodGet, "/api/v1/agents/"+calc+"/record", nil, http.StatusNotFound)
	if page := ada.Must(http.MethodGet, "/agents/"+calc, nil, http.StatusOK).Body; !strings.Contains(page, "Every portal has its own built-in agents") || strings.Contains(page, "Signed data") {
		t.Error(page)
	}
	var done struct {
		Choices []struct{ Message struct{ Content string } }
	}
	ada.Get(http.MethodPost, "/v1/chat/completions", map[string]any{"model": calc, "messages": []map[string]string{{"role": "user", "content": "6*7"}}}, http.StatusOK, &done)
	if len(done.Choices) != 1 || !strings.Contains(done.Choices[0].Message.Content, "42") {
		t.Errorf("%+v", done)
	}
	room := ada.Conversation(calc)
	s := ada.Events(room)
	defer s.Close()
	k := ada.Say(room, "2+2").Tasks[0]
	if got := s.Answered(k.ID); !strings.Contains(got.Plain(), "4") {
		t.Errorf("%+v", got)
	}

	// A denied portal's are not called.
	if err := a.Rule(t.Context(), b.NetworkID(), "deny"); err != nil {
		t.Fatal(err)
	}
	ada.Must(http.MethodGet, "/api/v1/agents/"+calc, nil, http.StatusNotFound)
}
