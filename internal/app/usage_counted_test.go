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

// A budget in money is spent by what the provider reported, and an agent says that it is used up.
func TestModelBudget_InMoney(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	prices := filepath.Join(dir, usage.PricesFile)
	if err := os.WriteFile(prices, []byte(`{"currency":"EUR","models":{"house":{"output":1000}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	model := agenttest.NewOpenAIServer(t)
	model.Script(func(int, openai.ChatRequest) agenttest.Turn {
		return agenttest.Turn{Text: "hello", Usage: &openai.Usage{PromptTokens: 1, CompletionTokens: 2000, TotalTokens: 2001}}
	})
	p := apptest.Start(t, func(c *app.Config) {
		c.Data, c.LLMURL, c.LLMModel, c.ModelBudget = dir, model.Base(agenttest.Scripted), "house", "20.00EUR"
	})
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "butler", "description": "Answers.", "kind": "prompt", "visibility": "public",
		"config": map[string]any{"instructions": "Answer."}}, http.StatusCreated)
	for i, want := range []string{"hello", "You have used up your share of today's budget"} { // 4.10 EUR are set aside, of 5.00
		talk := bob.Conversation("butler")
		said := bob.Say(talk, "hello")
		if end := bob.Socket(talk).Wait("the end", func(e apptest.Event) bool {
			return e.Task.ID == said.Tasks[0].ID && (e.Task.State == "completed" || e.Task.State == "failed")
		}); !strings.Contains(end.Raw, want) {
			t.Errorf("question %d: %s", i, end.Raw)
		}
	}
}
