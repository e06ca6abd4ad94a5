package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// A field that a request has no use for is refused by name: misspelt, it would
// be lost, and a token would have all rights.
func TestAPI_RefusesUnknownFields(t *testing.T) {
	t.Parallel()
	s := newAPISite(t)
	ann := s.Person("ann")
	room := s.call(ann, "", http.MethodPost, "/api/v1/conversations", map[string]any{"title": "Plans"})
	id := room.Header().Get("Location")
	id = id[strings.LastIndexByte(id, '/')+1:]
	conversation := "/api/v1/conversations/" + id
	for _, c := range []struct{ method, path, body, field string }{
		{http.MethodPost, "/api/v1/tokens", `{"label":"x","scope":["agents:read"]}`, "scope"},
		{http.MethodPost, "/api/v1/tokens", `{"label":"x","scopes":["agents:read"],"Scopes":[]}`, "Scopes"},
		{http.MethodPost, "/api/v1/conversations", `{"titel":"x"}`, "titel"},
		{http.MethodPost, conversation + "/members", `{"handel":"calc"}`, "handel"},
		{http.MethodPost, conversation + "/messages", `{"parts":[{"text":"x","colour":"red"}],"client_id":"1"}`, "parts[0].colour"},
		{http.MethodPost, conversation + "/messages", `{"parts":[{"text":"x"}],"clientid":"1"}`, "clientid"},
		{http.MethodPatch, conversation + "/messages/1", `{"part":[]}`, "part"},
		{http.MethodPost, "/api/v1/agents", `{"name":"x","skills":[{"name":"y","exampels":[]}]}`, "skills[0].exampels"},
		{http.MethodPost, "/api/v1/webhooks", `{"url":"https://x.example","event":[]}`, "event"},
	} {
		w := s.call(ann, "", c.method, c.path, c.body)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"`+c.field+`":"is not a field here`) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
	}
	// A list that a program left empty must not give all rights. Only a body without the field does.
	for _, scopes := range []string{"null", "[]", `""`, `[null]`} {
		w := s.call(ann, "", http.MethodPost, "/api/v1/tokens", `{"label":"x","scopes":`+scopes+`}`)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"scopes":"`) {
			t.Errorf("scopes %s: %d %s", scopes, w.Code, w.Body)
		}
	}
	if w := s.call(ann, "", http.MethodGet, "/api/v1/tokens", nil); strings.Contains(w.Body.String(), `"label"`) {
		t.Errorf("there is a token: %s", w.Body)
	}
}
