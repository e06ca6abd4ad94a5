package app_test

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"agentsite/internal/linkwire"
	"agentsite/internal/testing/apptest"
)

// TestProgramToken_ConnectsOneAgentAndNothingElse has the token of the command that the page shows: each route of the
// policy that takes tokens refuses it, and it speaks for no other agent.
func TestProgramToken_ConnectsOneAgentAndNothingElse(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	for _, name := range []string{"laptop", "desktop"} {
		ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Runs here.", "kind": "link"},
			http.StatusCreated)
	}
	ada.Must(http.MethodPost, "/agents/laptop/connect", url.Values{}, http.StatusSeeOther)
	page := ada.Must(http.MethodGet, "/agents/laptop/connect", nil, http.StatusOK).Body
	token := regexp.MustCompile(`ags_[A-Za-z0-9_-]+`).FindString(page)
	if !strings.Contains(page, "AGENTSITE_TOKEN="+token+" agentsite agent run --portal "+p.URL()+" --name laptop -- ") {
		t.Fatalf("no whole command: %.2000s", page)
	}
	bound := p.Bearer(t, token)
	refused := 0
	for _, r := range readPolicy(t) {
		if r.page() || r.scopes[0] == "-" {
			continue
		}
		rest := map[string]string{http.MethodPost: "message:send", http.MethodDelete: "tasks/x/pushNotificationConfigs/y"}
		path := strings.NewReplacer("{name}", "laptop", "{seq}", "1", "*", cmp.Or(rest[r.method], "tasks/x")).Replace(r.pattern)
		path = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "x")
		var body any
		if r.method != http.MethodGet && r.method != http.MethodDelete {
			body = map[string]any{}
		}
		if a := bound.Do(r.method, path, body); a.Status != http.StatusForbidden {
			t.Errorf("%s %s: %d: %.200s", r.method, r.pattern, a.Status, a.Body)
		}
		refused++
	}
	if refused < 80 {
		t.Errorf("only %d routes: the walk is broken", refused)
	}

	says := func(name, secret string) string {
		socket, err := linkwire.Dial(t.Context(), p.Base, secret, nil)
		if err != nil {
			return err.Error()
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		connected := make(chan struct{}, 1)
		a := &linkwire.Agent{Hello: linkwire.Hello{Name: name, MaxTasks: 1},
			Dial:      func(context.Context) (*linkwire.Socket, error) { return socket, nil },
			Connected: func(linkwire.Welcome) { connected <- struct{}{}; stop() },
		}
		if err = a.Run(ctx); err != nil {
			return err.Error()
		}
		<-connected
		return ""
	}
	if got := says("laptop", token); got != "" {
		t.Errorf("its own agent: %s", got)
	}
	for _, name := range []string{"desktop", "unheard-of"} {
		if got := says(name, token); !strings.Contains(got, "connects another agent") {
			t.Errorf("as %s: %q", name, got)
		}
	}
	var reads struct{ Token string }
	ada.Get(http.MethodPost, "/api/v1/tokens", map[string]any{"label": "reads", "scopes": []string{"chat:read"}},
		http.StatusCreated, &reads)
	if got := says("desktop", reads.Token); !strings.Contains(got, "“Change agents” ticked") {
		t.Errorf("without the scope: %q", got)
	}
	if a := ada.Do(http.MethodGet, "/agents/unheard-of", nil); a.Status != http.StatusNotFound {
		t.Errorf("an agent was registered: %d", a.Status)
	}
	if body := ada.Must(http.MethodGet, "/account", nil, http.StatusOK).Body; !strings.Contains(body, "only connects its program") {
		t.Error("the account page does not say what the token may do")
	}
}
