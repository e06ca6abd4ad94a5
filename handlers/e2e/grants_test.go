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

// TestGrants lets a prompt agent find an agent that does sums and ask it: after a question, without one after
// “Always”, and not any more when the person takes that back.
func TestGrants(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brain := agenttest.NewOpenAIServer(t)
			brain.Script(func(_ int, req openai.ChatRequest) agenttest.Turn {
				last := req.Messages[len(req.Messages)-1]
				switch text := string(last.Content); {
				case last.Role != openai.ToolRole:
					return agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want("f", "find", `{"query":"arithmetic sums"}`)}}
				case strings.Contains(text, `"agent":"calc"`):
					return agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want("a", "ask", `{"agent":"calc","text":"6*7"}`)}}
				default:
					return agenttest.Turn{Text: "I have it from calc: " + text}
				}
			})
			p := apptest.Start(t, func(c *app.Config) { c.LLMURL, c.LLMModel = brain.Base(agenttest.Scripted), "house" })
			ada := p.User(t, "ada")
			config, err := json.Marshal(map[string]any{"instructions": "Find somebody for the work.", "tools": []string{"find", "ask"}})
			if err != nil {
				t.Fatal(err)
			}
			ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "helper", "title": "Helper", "description": "Finds help.", "kind": "prompt",
				"visibility": "public", "config": json.RawMessage(config)}, http.StatusCreated)
			b := visit(t, root, p, s).as(ada)
			picture := strings.ReplaceAll(name, " ", "-")
			answer := func(value string) {
				t.Helper()
				b.until("the buttons of the last question alone", `[...document.querySelectorAll("[data-answer]")].filter((x) => x.checkVisibility()).length === 1`)
				button := `[data-answer] button[value="` + value + `"]`
				if s.scripts {
					b.click(button)
				} else {
					b.press(button)
				}
			}
			b.open("/chat/" + ada.Conversation("helper"))
			b.send("What is 6 times 7?")
			b.answered("May I ask calc with this?")
			b.shot("grants-question-"+picture, false)
			answer("yes")
			b.answered("42")
			b.send("And 6 times 7 again?")
			b.answered("May I ask calc with this?")
			answer("always")
			b.until("the second result", `[...document.querySelectorAll("[data-messages] .message")].filter((m) => m.innerText.includes("I have it from calc")).length === 2`)
			b.send("Once more, 6 times 7?")
			b.until("the result without a question", `[...document.querySelectorAll("[data-messages] .message")].filter((m) => m.innerText.includes("I have it from calc")).length === 3`)
			b.until("a link to each question", `document.querySelectorAll("[data-messages] .event a[href^='/chat/']").length === 3`)
			b.shot("grants-allowed-"+picture, false)
			chat := b.path()
			aside := eval[string](b, `document.querySelector("[data-messages] .event a[href^='/chat/']").getAttribute("href")`)
			b.open(aside)
			b.says("6*7")
			b.shot("grants-aside-"+picture, false)
			b.open("/account/grants")
			b.says("may ask calc")
			b.says("used 2 times")
			b.shot("grants-page-"+picture, true)
			b.press(".rows form button")
			b.says("Taken back.")
			b.says("No agent has a permission")
			b.open(chat)
			b.send("6 times 7?")
			b.answered("May I ask calc with this?")
			answer("never")
			b.answered("does not allow")
			b.open("/account/grants")
			b.says("may never ask calc")
			b.clean("grants")
		})
	}
}
