package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/ident"
	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/usage"
)

// The cost of a goal is exactly that which the providers reported: of a member, and of the agent that a member asked.
func TestGoals_TheirCostIsThatOfTheLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	prices := []byte(`{"currency":"USD","models":{"m":{"input":1,"output":2}}}`)
	if err := os.WriteFile(filepath.Join(dir, usage.PricesFile), prices, 0o600); err != nil {
		t.Fatal(err)
	}
	p := apptest.Start(t, func(c *app.Config) { c.Data = dir })
	ada := p.User(t, "ada")
	model := agenttest.NewOpenAIServer(t)
	model.Script(func(n int, _ openai.ChatRequest) agenttest.Turn {
		n++
		return agenttest.Turn{Text: "hello", Usage: &openai.Usage{PromptTokens: 1000 * n, CompletionTokens: 10 * n,
			TotalTokens: 1010 * n}}
	})
	helper := apptest.Fresh("helper")
	ada.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": helper, "description": "Helps.",
		"kind": "openai", "visibility": "public", "endpoint": model.Base(agenttest.Scripted),
		"config": map[string]any{"model": "m"}}, http.StatusCreated)
	e := newElsewhere(t, helper)
	reacher := e.reacher(ada)
	ada.NewToken().Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": reacher, "tool": "ask",
		"scope": "public", "decision": "allow"}, http.StatusOK)

	id := startGoal(ada, map[string]any{"goal": "Say hello.", "members": []string{helper}})
	followGoal(t, ada, id)
	got := readGoal(ada, id)
	if got.State != "concluded" || got.Cost.WorkTokens != 1010 || got.Cost.TalkTokens != 0 || got.Tasks[0].Tokens != 1010 ||
		got.Cost.Work != got.Tasks[0].Cost || got.Cost.Work != "0.001020" {
		t.Errorf("%+v", got)
	}
	id = startGoal(ada, map[string]any{"goal": "Reach it.", "members": []string{reacher}})
	followGoal(t, ada, id)
	if got = readGoal(ada, id); got.State != "concluded" || got.Cost.WorkTokens != 2020 || got.Cost.Work != "0.002040" {
		t.Errorf("through another agent: %+v", got)
	}
	// The third call reaches the budget, and the goal ends with it.
	id = startGoal(ada, map[string]any{"goal": "Say hello.", "members": []string{helper},
		"budget": map[string]any{"tokens": 3030, "cost": ""}})
	followGoal(t, ada, id)
	if got = readGoal(ada, id); got.State != "failed" || got.Reason != "budget: the tokens or the money are used up" ||
		got.Cost.WorkTokens != 3030 {
		t.Errorf("%+v", got)
	}
	var sum struct {
		Total struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		}
	}
	ada.Get(http.MethodGet, "/api/v1/usage?of=me&by=agent", nil, http.StatusOK, &sum)
	if sum.Total.Input+sum.Total.Output != 1010+2020+3030 {
		t.Errorf("%+v", sum)
	}
}
