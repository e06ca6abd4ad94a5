package e2e

import (
	"encoding/json"
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

// TestGrants_OverThreePortals is TestGrants with a person of one portal, a prompt agent of a second one, and an agent
// for sums of a third one, which the prompt agent finds. The person has no page at the second portal, and takes the
// permission back by writing so.
func TestGrants_OverThreePortals(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, usage.PricesFile), []byte(`{"currency":"EUR","models":{"house":{"input":250,"output":1000}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			second := apptest.Start(t, func(c *app.Config) { c.Data = dir })
			joins := func(c *app.Config) { c.Join = second.URL() }
			first, third := apptest.Start(t, joins), apptest.Start(t, joins)
			adder := "adder@" + third.Host
			sums, brain := agenttest.NewOpenAIServer(t), agenttest.NewOpenAIServer(t)
			sums.Script(func(int, openai.ChatRequest) agenttest.Turn { return agenttest.Turn{Text: "It is 42."} })
			brain.Script(func(_ int, req openai.ChatRequest) agenttest.Turn {
				last := req.Messages[len(req.Messages)-1]
				turn := agenttest.Turn{Usage: &openai.Usage{PromptTokens: 100, CompletionTokens: 20, TotalTokens: 120}}
				switch text := string(last.Content); {
				case last.Role != openai.ToolRole:
					turn.Calls = []openai.ToolCall{agenttest.Want("f", "find", `{"query":"abacus sums"}`)}
				case strings.Contains(text, `"agent":"`+adder+`"`):
					turn.Calls = []openai.ToolCall{agenttest.Want("a", "ask", `{"agent":"`+adder+`","text":"6*7"}`)}
				default:
					turn.Text = "I have it from the adder: " + text
				}
				return turn
			})
			third.User(t, "cy").Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "adder", "title": "Adder", "description": "An abacus for sums.", "kind": "openai",
				"visibility": "public", "endpoint": sums.Base(agenttest.Scripted), "config": map[string]any{"model": "m"}}, http.StatusCreated)
			bob := second.User(t, "bob")
			bob.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "helper", "title": "Helper", "description": "Finds help.", "kind": "prompt", "visibility": "public",
				"endpoint": brain.Base(agenttest.Scripted), "config": map[string]any{"model": "house", "instructions": "Find somebody for the work.", "tools": []string{"find", "ask"}}}, http.StatusCreated)
			ada := first.User(t, "ada")
			found := func(c *apptest.Client, query, handle string) {
				t.Helper()
				if !eventually(func() bool {
					a, err := c.Try(http.MethodGet, "/api/v1/agents?q="+query, nil)
					return err == nil && strings.Contains(a.Body, handle)
				}) {
					t.Fatalf("%s does not know %s", c.Name, handle)
				}
			}
			found(bob, "abacus", adder)
			found(ada, "helper", "helper@"+second.Host)

			b := visit(t, root, first, s).as(ada)
			picture := strings.ReplaceAll(name, " ", "-")
			b.open("/chat/" + ada.Conversation("helper@"+second.Host))
			b.send("What is 6 times 7?")
			b.answered("May I ask " + adder + " with this?")
			b.shot("portals-question-"+picture, false)
			b.send("always here")
			b.answered("It is 42.")
			b.send("And 6 times 7 again?")
			b.until("the result without a question", `[...document.querySelectorAll("[data-messages] .message")].filter((m) => m.innerText.includes("I have it from the adder")).length === 2`)
			b.send("ask again")
			b.answered("I ask you again before")
			b.send("Once more, 6 times 7?")
			b.answered("May I ask " + adder + " with this?")
			b.send("never")
			b.answered("does not allow")
			b.send("Please, 6 times 7?")
			b.answered("does not allow")
			b.shot("portals-refused-"+picture, false)
			b.clean("the person")

			o := visit(t, root, second, s).as(bob)
			o.open("/agents/helper/owner/work")
			o.says("a person of another portal")
			o.says("Cost today")
			o.until("a bar for the cost of today", `document.querySelectorAll("#cost svg.bars rect.bar").length === 1`)
			o.until("neither the name of the person nor a text", `!/\bada\b|6 times 7/.test(document.querySelector("main").innerText)`)
			o.shot("portals-work-"+picture, true)
			o.clean("the owner")
			var r struct {
				Rows []struct {
					Calls int
					Cost  json.RawMessage
				}
			}
			bob.NewToken().Get(http.MethodGet, "/api/v1/usage?of=agents&by=person", nil, http.StatusOK, &r)
			if _, asked := brain.Requests(); len(r.Rows) != 1 || r.Rows[0].Calls != len(asked) {
				t.Errorf("%+v for %d answers of the model", r.Rows, len(asked))
			}
		})
	}
}
