package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
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
				turn := agenttest.Turn{Usage: &openai.Usage{PromptTokens: 100, CompletionTokens: 20, TotalTokens: 120}}
				switch text := string(last.Content); {
				case last.Role != openai.ToolRole:
					turn.Calls = []openai.ToolCall{agenttest.Want("f", "find", `{"query":"arithmetic sums"}`)}
				case strings.Contains(text, `"agent":"calc"`):
					turn.Calls = []openai.ToolCall{agenttest.Want("a", "ask", `{"agent":"calc","text":"6*7"}`)}
				default:
					turn.Text = "I have it from calc: " + text
				}
				return turn
			})
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, usage.PricesFile), []byte(`{"currency":"EUR","models":{"house":{"input":250,"output":1000}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			p := apptest.Start(t, func(c *app.Config) {
				c.Data, c.LLMURL, c.LLMModel = dir, brain.Base(agenttest.Scripted), "house"
			})
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
			b.open("/account/running")
			b.says("waits for your answer")
			if s.width == desk.width {
				b.look("running")
			}
			b.open(chat)
			answer("never")
			b.answered("does not allow")
			b.open("/account/running")
			b.says("Nothing runs for you")
			b.open("/account/grants")
			b.says("may never ask calc")
			if s.width == desk.width {
				b.look("grants")
			}
			// A permission for one conversation is taken back beside it.
			b.press(".rows form button")
			b.open(chat)
			b.send("6 times 7, please?")
			b.answered("May I ask calc with this?")
			answer("always here")
			b.answered("42")
			b.open(chat)
			b.until("the permission beside the conversation", `document.querySelector(".side-body").textContent.includes("may ask calc")`)
			if s.width == desk.width {
				b.shot("grants-side-"+picture, false)
				b.click(".side-settings > summary")
				b.press("form[action$='/ask-again'] button")
			} else {
				ada.Must(http.MethodPost, chat+"/ask-again", url.Values{}, http.StatusSeeOther)
				b.open(chat)
			}
			b.until("no permission beside the conversation", `!document.querySelector(".side-body").textContent.includes("may ask calc")`)
			b.send("6 times 7, again?")
			b.answered("May I ask calc with this?")
			answer("no")
			b.answered("did not agree")
			// 18 answers of the model, each of which reported 120 tokens.
			b.open("/account/usage?of=agents")
			b.until("18 calls and 2,160 tokens", `[...document.querySelectorAll("table.calls td.num")].map((c) => c.textContent.trim().replace(/\s+/g, " ")).join("; ").startsWith("18 calls; 2,160 tokens; ")`)
			b.says("0.81 EUR")
			b.until("a bar for today", `document.querySelectorAll("svg.bars rect.bar").length === 1`)
			if s.width == desk.width {
				b.look("usage")
			}
			b.open("/account/usage?of=agents&by=person")
			b.says("person")
			b.open("/account")
			b.press(`a[href="/agents/helper/owner/work"]`)
			b.says("Nothing runs and nothing waits")
			b.says("Cost today")
			b.says("0.81 EUR")
			b.says("It has no ceiling of its own.")
			b.until("a bar for today, twice", `document.querySelectorAll("svg.bars rect.bar-calls").length === 2`)
			b.shot("grants-work-"+picture, true)
			if s.width == desk.width {
				b.look("work")
			}
			b.click("details.card > summary")
			b.fill("details.card [name=reason]", "It costs too much.")
			b.press("details.card button")
			b.says("has paused it. It costs too much.")
			b.press("form[action='/agents/helper/pause'] button")
			b.says("Pause it")
			b.clean("grants")
		})
	}
}
