package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/embedtest"
)

// TestEmbeddings_FindThroughTheServer has a portal search by the model of a server, which alone knows the word.
func TestEmbeddings_FindThroughTheServer(t *testing.T) {
	t.Parallel()
	model := embedtest.New(t, map[string]string{"zorbing": "sick puppy"})
	server := httptest.NewServer(model)
	defer server.Close()
	p := apptest.Start(t, func(c *app.Config) {
		c.Embeddings, c.MetricsListen = server.URL+"/v1,house", "127.0.0.1:0"
	})
	olga := p.Operator(t, "olga")
	for name, text := range map[string]string{"vetta": "Canine illness, animal hospital.", "pipes": "Leaking pipes."} {
		olga.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": text, "kind": "link",
			"visibility": "public"}, http.StatusCreated)
	}
	olga.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "hidden", "description": "My own secret.",
		"kind": "link", "visibility": "private"}, http.StatusCreated)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	found := ""
	for !strings.Contains(found, `"vetta"`) && ctx.Err() == nil { // the vectors come in the background
		found = olga.Must(http.MethodGet, "/api/v1/search?q=zorbing", nil, http.StatusOK).Body
	}
	if !strings.Contains(found, `"vetta"`) || strings.Contains(found, `"pipes"`) {
		t.Fatalf("%.400s\n%s", found, p.Log())
	}
	for ctx.Err() == nil && !strings.Contains(scrape(t, p.MetricsAddr(), "localhost"), "\nagentsite_embeddings_missing 0\n") {
		continue
	}
	if got := scrape(t, p.MetricsAddr(), "localhost"); !strings.Contains(got, "\nagentsite_embeddings_up 1\n") {
		t.Error("the metrics do not say that the server answers")
	}
	page := olga.Must(http.MethodGet, "/admin", nil, http.StatusOK).Body
	if !strings.Contains(page, "house at "+server.URL+"/v1; it has encoded all") {
		t.Error("the operator does not see the state")
	}
	talk := olga.Conversation("guide")
	olga.Say(talk, "I need a confidential gardener")
	for answered := false; !answered && ctx.Err() == nil; {
		answered = strings.Contains(olga.Must(http.MethodGet, "/api/v1/conversations/"+talk+"/messages", nil,
			http.StatusOK).Body, `"kind":"agent"`)
	}
	asked, _ := model.Asked()
	if slices.ContainsFunc(asked, func(s string) bool {
		return strings.Contains(s, "secret") || strings.Contains(s, "confidential")
	}) {
		t.Errorf("private texts were sent: %q", asked)
	}
	model.SetDown(true)
	if got := olga.Must(http.MethodGet, "/api/v1/search?q=ill+dog", nil, http.StatusOK).Body; !strings.Contains(got, `"vetta"`) {
		t.Errorf("without the server: %.300s", got)
	}
}

// Pages on which text is written say that it goes to the server of embeddings, if the operator lets it.
func TestEmbeddings_PagesSayWhereTextsGo(t *testing.T) {
	t.Parallel()
	for _, private := range []bool{true, false} {
		p := apptest.Start(t, func(c *app.Config) {
			c.Embeddings, c.EmbeddingsPrivate = "https://embed.example/v1,house", private
		})
		ada := p.User(t, "ada")
		for path, want := range map[string]bool{"/chat/" + ada.Conversation("calc"): private, "/goals/new": private, "/agents/new?kind=prompt": true, "/agents?q=calc": true} {
			if page := ada.Must(http.MethodGet, path, nil, http.StatusOK).Body; strings.Contains(page, "<bdi>embed.example</bdi>") != want {
				t.Errorf("private %v, %s: want %v", private, path, want)
			}
		}
	}
}
