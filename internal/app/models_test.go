package app_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// A model that an operator adds brings the assistant at once, and the assistant leaves with it.
func TestModels_DefaultBringsTheAssistantAtOnce(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	op, guest := p.Operator(t, "op"), p.Guest(t)
	shown := func() bool {
		home := guest.Must(http.MethodGet, "/", nil, http.StatusOK).Body
		found := guest.Must(http.MethodGet, "/api/v1/agents?q=assistant", nil, http.StatusOK).Body
		a := strings.Contains(home, "guide-assistant")
		if b := strings.Contains(found, `"name":"assistant"`); a != b {
			t.Errorf("the start page has the assistant: %t, the search: %t", a, b)
		}
		return a
	}
	if shown() {
		t.Fatal("a portal without a model has the assistant")
	}
	llm := agenttest.NewOpenAIServer(t)
	for range 2 { // it returns
		op.Must(http.MethodPost, "/api/v1/models", map[string]any{"name": "default", "portal": true,
			"url": llm.Base(agenttest.Echo), "model": "echo-1"}, http.StatusCreated)
		if !shown() {
			t.Fatal("the portal has a model and no assistant")
		}
		op.Must(http.MethodDelete, "/api/v1/models/default", nil, http.StatusNoContent)
		if shown() {
			t.Fatal("the portal has no model any more, but the assistant")
		}
	}
}
