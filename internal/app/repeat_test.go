package app_test

import (
	"net/http"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// A message sent again is owed its first answer, whatever the limits of the
// agent's owner say by then.
func TestPost_SentAgainBeyondTheOwnersLimit(t *testing.T) {
	t.Parallel()
	far := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	name := p.User(t, "olga").Agent("public", far.Base(agenttest.Echo))
	p.Operator(t, "rob").Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"limits": map[string]any{"per_minute": 1}}, http.StatusOK)
	otto := p.User(t, "otto")
	room := otto.Conversation(name)
	path := "/api/v1/conversations/" + room + "/messages"
	var first, again struct{ ID string }
	otto.Get(http.MethodPost, path, map[string]any{"client_id": "one", "text": "Hello", "told": []string{name}}, http.StatusCreated, &first)
	otto.Must(http.MethodPost, path, map[string]any{"client_id": "two", "text": "Hello", "told": []string{name}}, http.StatusTooManyRequests)
	otto.Get(http.MethodPost, path, map[string]any{"client_id": "one", "text": "Hello", "told": []string{name}}, http.StatusOK, &again)
	if first.ID == "" || again.ID != first.ID {
		t.Errorf("first %q, again %q", first.ID, again.ID)
	}
}
