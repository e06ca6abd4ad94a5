package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/usage"
)

// Usage equals the reports of the providers, call by call, for the person, for the owner and for the operator.
func TestUsage_IsWhatTheProviderReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, usage.PricesFile), []byte(`{"currency":"USD","models":{"m":{"input":1,"output":2}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := apptest.Start(t, func(c *app.Config) { c.Data = dir })
	boss, ada, bob := p.Operator(t, "boss"), p.User(t, "ada"), p.User(t, "bob")
	model := agenttest.NewOpenAIServer(t)
	input, output := 0, 0
	model.Script(func(n int, req openai.ChatRequest) agenttest.Turn {
		if n == 2 { // this one reports nothing
			return agenttest.Turn{Text: "nine words that are counted by their size"}
		}
		u := &openai.Usage{PromptTokens: 100 + n, CompletionTokens: 10 + n, TotalTokens: 110 + 2*n}
		input, output = input+u.PromptTokens, output+u.CompletionTokens
		return agenttest.Turn{Text: "hello", Usage: u}
	})
	names := map[string]string{}
	for _, kind := range []string{"prompt", "openai"} {
		name := apptest.Fresh("model")
		config := map[string]any{"model": "m"}
		if kind == "prompt" {
			config["instructions"] = "Answer."
		}
		ada.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Answers.", "kind": kind, "visibility": "public",
			"endpoint": model.Base(agenttest.Scripted), "config": config}, http.StatusCreated)
		names[kind] = name
	}
	for range 2 {
		for _, name := range names {
			talk := bob.Conversation(name)
			bob.Socket(talk).Answered(bob.Say(talk, "hello").Tasks[0].ID)
		}
	}
	type sum struct {
		Key          string
		Calls        int
		Estimated    int `json:"estimated_calls"`
		InputTokens  int `json:"input_tokens"`
		OutputTokens int `json:"output_tokens"`
		Cost         struct{ Talk, Work string }
	}
	var total string
	for name, c := range map[string]struct {
		who *apptest.Client
		of  string
		by  string
		key string
	}{"caller": {bob, "me", "model", "m"}, "owner": {ada, "agents", "person", "person"}, "operator": {boss, "portal", "owner", ada.Name}} {
		var r struct {
			Currency string
			Rows     []sum
			Total    sum
		}
		c.who.NewToken().Get(http.MethodGet, "/api/v1/usage?of="+c.of+"&by="+c.by, nil, http.StatusOK, &r)
		if len(r.Rows) != 1 || r.Rows[0].Key != c.key || r.Currency != "USD" || r.Total.Calls != 4 || r.Total.Estimated != 1 {
			t.Errorf("%s: %+v", name, r)
		}
		// The call without a report is estimated, so the sums exceed the reported ones.
		if r.Total.InputTokens <= input || r.Total.OutputTokens <= output || r.Total.InputTokens > input+1000 {
			t.Errorf("%s: %d and %d tokens, reported %d and %d", name, r.Total.InputTokens, r.Total.OutputTokens, input, output)
		}
		if total == "" {
			total = r.Total.Cost.Work
		}
		if r.Total.Cost.Work != total || total == "0.000000" {
			t.Errorf("%s: costs %s, others see %s", name, r.Total.Cost.Work, total)
		}
	}
	csv := bob.NewToken().Must(http.MethodGet, "/api/v1/usage?by=agent&format=csv", nil, http.StatusOK)
	if lines := strings.Split(strings.TrimSpace(csv.Body), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "agent,calls,") || !strings.Contains(csv.Body, names["prompt"]+",2,") {
		t.Errorf("%q", csv.Body)
	}
	ada.NewToken().Must(http.MethodGet, "/api/v1/usage?of=portal", nil, http.StatusForbidden)
}
