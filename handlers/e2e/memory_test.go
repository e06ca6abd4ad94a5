package e2e

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

// A person lets an agent remember, finds it recalled, sees, edits and erases it, and turns the memory off.
func TestMemory(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brain := agenttest.NewOpenAIServer(t)
			brain.Script(func(n int, req openai.ChatRequest) agenttest.Turn {
				last := req.Messages[len(req.Messages)-1]
				text := string(last.Content)
				if strings.HasPrefix(string(req.Messages[0].Content), "Below is one exchange") {
					return agenttest.Turn{Text: "none"}
				}
				if last.Role == openai.ToolRole {
					return agenttest.Turn{Text: "I will keep that in mind."}
				}
				if _, fact, ok := strings.Cut(text, "Remember: "); ok {
					return agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want(fmt.Sprint(n), "remember", fmt.Sprintf(`{"text":%q}`, fact))}}
				}
				for _, name := range []string{"Rex", "Max"} {
					if strings.Contains(text, name) {
						return agenttest.Turn{Text: "Your dog is called " + name + "."}
					}
				}
				return agenttest.Turn{Text: "I do not know."}
			})
			p := apptest.Start(t, func(c *app.Config) { c.LLMURL, c.LLMModel = brain.Base(agenttest.Scripted), "house" })
			ada := p.User(t, "ada")
			ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "minder", "title": "Minder", "description": "Remembers.", "kind": "prompt",
				"visibility": "public", "config": map[string]any{"instructions": "Remember.", "tools": []string{"memory"}}}, http.StatusCreated)
			b := visit(t, root, p, s).as(ada)
			picture := strings.ReplaceAll(name, " ", "-")
			b.open("/chat/" + ada.Conversation("minder"))
			b.send("Remember: The person has a dog named Rex.")
			b.answered("May I remember this?")
			b.shot("memory-question-"+picture, false)
			b.send("always")
			b.answered("I will keep that in mind.")
			b.open("/chat/" + ada.Conversation("minder"))
			b.send("What is my dog called?")
			b.answered("Your dog is called Rex.")
			b.send("What do you remember of me?")
			b.answered("The person has a dog named Rex.")
			b.shot("memory-list-"+picture, false)
			b.open("/agents/minder")
			b.says("It remembers 1 thing about you.")
			b.press(".talk p.quiet a")
			b.says("It remembers what you say and uses it later.")
			b.shot("memory-page-"+picture, true)
			b.click("details.edit summary")
			b.fill("textarea[name=text]", "The person has a dog named Max.")
			b.press("details.edit button")
			b.says("Saved.")
			b.says("named Max")
			b.until("the heading of erasing all in one piece, not in columns",
				`[...document.querySelector("details.card > summary").childNodes].every((n) => n.nodeType !== Node.TEXT_NODE || !n.data.trim())`)
			b.open("/chat/" + ada.Conversation("minder"))
			b.send("What is my dog called?")
			b.answered("Your dog is called Max.")
			b.open("/account/memories?agent=minder")
			b.press(`button[value="deny"]`)
			b.says("It remembers nothing new and uses nothing below.")
			b.shot("memory-off-"+picture, true)
			if s.width == desk.width {
				b.look("memory")
				b.resize(s)
			}
			b.press(".row-actions button")
			b.says("Erased.")
			b.says("Nothing is remembered")
		})
	}
}
