package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestTools_YesAndNoWithAFinger lets a prompt agent ask whether it may use a
// tool, and answers without typing: yes, then no, alone with it and beside
// another agent.
func TestTools_YesAndNoWithAFinger(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brain := agenttest.NewOpenAIServer(t)
			brain.Script(func(_ int, req openai.ChatRequest) agenttest.Turn {
				last := req.Messages[len(req.Messages)-1]
				if last.Role == "tool" {
					return agenttest.Turn{Text: "The tool said: " + string(last.Content)}
				}
				if strings.Contains(string(last.Content), "book") {
					return agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want("c1", "workshop__book", `{"name":"Bob","seats":2,"area":"bar","guest":{"phone":"1"}}`)}}
				}
				return agenttest.Turn{Text: "As you like."}
			})
			p := apptest.Start(t, func(c *app.Config) {
				c.LLMURL, c.LLMModel = brain.Base(agenttest.Scripted), "house"
			})
			ada := p.User(t, "ada")
			server := workshop(t)
			registerTools(ada, "workshop", server)
			config, err := json.Marshal(map[string]any{"instructions": "You book tables.", "tools": []string{"workshop"}})
			if err != nil {
				t.Fatal(err)
			}
			ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "butler", "title": "Butler", "description": "Books.", "kind": "prompt", "visibility": "public",
				"config": json.RawMessage(config)}, http.StatusCreated)
			b := visit(t, root, p, s).as(ada)
			answer := func(value string) {
				t.Helper()
				button := `[data-answer] button[value="` + value + `"]`
				b.until("the buttons of the last question alone", `[...document.querySelectorAll("[data-answer]")].filter((x) => x.checkVisibility()).length === 1`)
				if s.scripts {
					b.click(button)
				} else {
					b.press(button)
				}
			}
			for _, with := range [][]string{{"butler"}, {"butler", "guide"}} {
				before := len(server.Calls())
				to := ""
				if len(with) > 1 {
					to = "@butler "
				}
				b.open("/chat/" + ada.Conversation(with...))
				b.send(to + "book for two")
				b.answered("May I use book of workshop")
				answer("yes")
				b.answered("called book with area")
				if got := len(server.Calls()); got != before+1 {
					t.Errorf("%d calls after a yes, were %d", got, before)
				}
				if got := eval[string](b, `[...document.querySelectorAll(".message-mine .bubble")].at(-1).innerText.trim()`); got != to+"yes" {
					t.Errorf("the answer stands there as %q", got)
				}
				b.send(to + "book again")
				b.answered("May I use book of workshop")
				b.shot("consent-"+strings.ReplaceAll(name, " ", "-"), false)
				answer("no")
				over := `!document.querySelector("[data-working] [data-task]") && [...document.querySelectorAll("[data-messages] .message")].at(-1).innerText.includes("Butler") && ![...document.querySelectorAll("[data-answer]")].some((x) => x.checkVisibility())`
				b.looksUntil(over)
				b.until("the end of it", over)
				if got := len(server.Calls()); got != before+1 {
					t.Errorf("%d calls after a no", got-before)
				}
			}
			b.clean("consent")
		})
	}
}
