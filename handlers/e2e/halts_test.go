package e2e

import (
	"net/http"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestHalts pauses an agent as its owner and sees why it does not answer; the operator then stops its provider.
func TestHalts(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := agenttest.NewOpenAIServer(t)
			p := apptest.Start(t)
			ada, boss := p.User(t, "ada"), p.Operator(t, "boss")
			ada.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "echoes", "title": "Echoes", "description": "Repeats what you say.",
				"kind": "openai", "endpoint": far.Base(agenttest.Echo), "config": map[string]any{"model": "echo-1"}}, http.StatusCreated)
			b := visit(t, root, p, s).as(ada)
			b.allow("400 (Bad Request)")
			b.open("/agents/echoes")
			b.press("form[action='/agents/echoes/pause'] button")
			b.says("has paused it")
			b.shot("halts-profile-"+name, true)
			chat := "/chat/" + ada.Conversation("echoes")
			b.open(chat)
			b.send("Hello?")
			b.answered("has paused it")
			b.shot("halts-chat-"+name, false)
			b.open("/agents/echoes")
			b.press("form[action='/agents/echoes/pause'] button")
			b.until("no notice", `!document.body.innerText.includes("has paused it")`)
			b.open(chat)
			b.send("Hello again?")
			b.answered("Hello again?")

			o := visit(t, root, p, s).as(boss)
			o.allow("400 (Bad Request)")
			o.open("/admin/queue")
			o.says("Nothing is stopped.")
			o.click("details.card > summary")
			o.choose("[name=kind]", "owner")
			o.fill("details.card [name=name]", "nobody")
			o.press("details.card .button-danger")
			o.says("nobody")
			o.choose("[name=kind]", "owner")
			o.fill("details.card [name=name]", "ada")
			o.fill("details.card [name=reason]", "Too many complaints.")
			o.press("details.card .button-danger")
			o.says("Too many complaints.")
			o.shot("halts-operator-"+name, true)
			if s.width == desk.width {
				o.look("halts")
			}
			b.open(chat)
			b.send("And now?")
			b.answered("Too many complaints.")
			o.press(".rows form button")
			o.says("Nothing is stopped.")
			b.send("Finally?")
			b.answered("Finally?")
		})
	}
}
