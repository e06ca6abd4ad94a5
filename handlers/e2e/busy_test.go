package e2e

import (
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// A message to a busy agent stays, says when to try again, and its button asks the agent again.
func TestBusy_TheButtonAsksAgain(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t, func(c *app.Config) { c.Limits = "running-per-agent=2,waiting-per-account=1" })
	b := visit(t, root, p, desk)
	b.open("/")
	b.allow("400 (Bad Request)")
	b.signUp("ada")
	b.asks("POST", "/api/v1/agents", map[string]any{"name": "slow", "title": "Slow", "description": "Never answers.", "kind": "openai",
		"endpoint": model.Base(agenttest.Wait), "visibility": "public", "config": map[string]string{"model": "echo-1"}}, nil)
	var room struct{ ID string }
	b.asks("POST", "/api/v1/conversations", map[string]any{"members": []string{"slow"}}, &room)
	at := "/api/v1/conversations/" + room.ID
	say := func(text string) {
		b.asks("POST", at+"/messages", map[string]any{"client_id": text, "text": text, "told": []string{"slow"}}, nil)
	}
	say("one")
	<-model.Started
	say("two")
	b.open("/chat/" + room.ID)
	b.until("a task that waits says so", `[...document.querySelectorAll("main .message-working")].some((el) => el.textContent.includes("waiting for its turn"))`)

	b.fill("#text", "three")
	b.enter()
	b.until("the live page says that the agent is busy", `document.querySelector(".mark-busy")?.textContent.includes("slow is busy, about")`)
	b.until("the message stays", row("three"))
	b.asks("POST", at+"/stop", map[string]any{}, nil)
	b.click(".mark-busy button")
	<-model.Started
	b.until("the agent works on it", `document.querySelectorAll("main .message-working[data-task]").length === 1`)
	b.clean("a busy agent")
}
