package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// An agent answers until the ceiling of its owner is reached, in tokens or in money, and the sums of usage are those that
// the model reported.
func TestCeilings(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	model.Script(agenttest.Turns(agenttest.Turn{Text: "Here I am.", Usage: &openai.Usage{PromptTokens: 600, CompletionTokens: 400, TotalTokens: 1000}}))
	p := apptest.Start(t, func(c *app.Config) { c.LLMURL, c.LLMModel = model.Base(agenttest.Scripted), "house" })
	ada := p.User(t, "ada")
	token := ada.NewToken()
	token.Must(http.MethodPost, "/api/v1/models", map[string]any{"name": "own", "url": model.Base(agenttest.Scripted), "model": "m-1",
		"price": map[string]any{"input": 1000, "output": 1000}}, http.StatusCreated)
	register := func(config map[string]any) string {
		name := apptest.Fresh("agent")
		config["instructions"], config["max_tokens"] = "Answer.", 400
		token.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Answers.", "kind": "prompt", "config": config},
			http.StatusCreated)
		return name
	}
	own, house := register(map[string]any{"model": "own"}), register(map[string]any{})
	set := func(body map[string]any) { token.Must(http.MethodPut, "/api/v1/ceilings", body, http.StatusNoContent) }
	ask := func(name string) string {
		l := listensTo(ada, name)
		_, says := l.outcome(l.Say(l.talk, "hello"))
		return says
	}
	expect := func(what, name string, answers bool) {
		t.Helper()
		if got := ask(name); strings.Contains(got, "Here I am.") != answers || !answers && !strings.Contains(got, "opens again at 00:00 UTC") {
			t.Errorf("%s: %q", what, got)
		}
	}
	set(map[string]any{"tokens": 2500})
	expect("the first", own, true)
	expect("the second", own, true)
	expect("beyond all", own, false)
	expect("the portal pays", house, true)
	set(map[string]any{"agent": house, "tokens": 1500})
	expect("beyond the agent's, although the portal pays", house, false)
	set(map[string]any{"agent": house})
	expect("without the agent's", house, true)
	set(map[string]any{"cost": "2.5"})
	expect("beyond the money", own, false)
	set(map[string]any{"cost": "4.00"})
	expect("within the money", own, true)

	var report struct {
		Currency string
		Rows     []struct {
			Key          string
			Calls        int
			InputTokens  int `json:"input_tokens"`
			OutputTokens int `json:"output_tokens"`
			Cost         struct{ Work string }
		}
	}
	token.Get(http.MethodGet, "/api/v1/usage?of=agents&by=model", nil, http.StatusOK, &report)
	if len(report.Rows) != 2 || report.Currency != "USD" || report.Rows[0].Key != "m-1" || report.Rows[0].Calls != 3 ||
		report.Rows[0].InputTokens != 1800 || report.Rows[0].OutputTokens != 1200 || report.Rows[0].Cost.Work != "3.000000" || report.Rows[1].Calls != 2 {
		t.Errorf("%+v", report)
	}
	var list struct {
		Ceilings []struct {
			Agent, Cost string
			Tokens      int
			SpentTokens int    `json:"spent_tokens"`
			SpentCost   string `json:"spent_cost"`
		}
	}
	token.Get(http.MethodGet, "/api/v1/ceilings", nil, http.StatusOK, &list)
	if len(list.Ceilings) != 1 || list.Ceilings[0].Cost != "4.000000" || list.Ceilings[0].SpentTokens != 3000 || list.Ceilings[0].SpentCost != "3.000000" {
		t.Errorf("%+v", list)
	}
}

// An agent with a schema answers with data, which programs read and people see.
func TestOutput_IsData(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	model.Script(agenttest.Turns(agenttest.Turn{Text: "```json\n{\"city\": \"Oslo\"}\n```"}))
	p := apptest.Start(t, func(c *app.Config) { c.LLMURL, c.LLMModel = model.Base(agenttest.Scripted), "house" })
	ada := p.User(t, "ada")
	token, name := ada.NewToken(), apptest.Fresh("agent")
	config := map[string]any{"instructions": "Name the city.", "output": map[string]any{"type": "object", "required": []string{"city"}}}
	token.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Answers.", "kind": "prompt", "config": config}, http.StatusCreated)
	l := listensTo(ada, name)
	said := l.Say(l.talk, "Which one?")
	if state, _ := l.outcome(said); state != "completed" {
		t.Errorf("%s", state)
	}
	var page struct {
		Messages []struct {
			Parts []struct {
				Data      map[string]string
				MediaType string `json:"mediaType"`
			}
		}
	}
	token.Get(http.MethodGet, fmt.Sprintf("/api/v1/conversations/%s/messages?after=%d", l.talk, said.Seq), nil, http.StatusOK, &page)
	if len(page.Messages) != 1 || len(page.Messages[0].Parts) != 1 || page.Messages[0].Parts[0].Data["city"] != "Oslo" || page.Messages[0].Parts[0].MediaType != "application/json" {
		t.Errorf("%+v", page)
	}
	if got := ada.Must(http.MethodGet, "/chat/"+l.talk, nil, http.StatusOK); !strings.Contains(string(got.Body), "Oslo") {
		t.Error("the page does not show it")
	}
	without := map[string]any{"instructions": "Name the city.", "output": nil} // as the form sends it
	token.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name + "y", "description": "Answers.", "kind": "prompt", "config": without}, http.StatusCreated)
	bad := map[string]any{"instructions": "Name the city.", "output": "a city"}
	token.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name + "x", "description": "Answers.", "kind": "prompt", "config": bad}, http.StatusBadRequest)
}
