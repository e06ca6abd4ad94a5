package e2e

import (
	"testing"

	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestModels adds two models, registers an agent on the first, and sees the second answer after the first refuses its
// key.
func TestModels(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := agenttest.NewOpenAIServer(t), agenttest.NewOpenAIServer(t)
			first.Script(agenttest.Turns(agenttest.Turn{Status: 401, Refusal: "bad key"}))
			second.Script(agenttest.Turns(agenttest.Turn{Text: "The second one is here.", Usage: &openai.Usage{TotalTokens: 7}}))
			p := apptest.Start(t)
			ada := p.User(t, "ada")
			b := visit(t, root, p, s).as(ada)
			b.allow("400 (Bad Request)")
			b.open("/account/models")
			b.says("No model yet")
			fill := func(model, base, fallback string) {
				t.Helper()
				b.fill("details.card [name=name]", model)
				b.fill("details.card [name=url]", base)
				b.fill("details.card [name=model]", "m-"+model)
				b.fill("details.card [name=key]", "sk-"+model)
				b.fill("details.card [name=fallback]", fallback)
				b.press("form[action='/account/models'] .button-primary")
			}
			fill("spare", second.Base(agenttest.Scripted)+"/chat/completions", "")
			b.says("without /chat/completions")
			b.shot("models-error-"+name, true)
			fill("spare", second.Base(agenttest.Scripted), "")
			b.says("Saved.")
			b.click("details.card > summary")
			fill("clever", first.Base(agenttest.Scripted), "spare")
			b.says("then spare")
			b.shot("models-"+name, true)
			if s.width == desk.width {
				b.look("models")
			}

			b.open("/agents/new?kind=prompt")
			b.fill("[name=name]", "thinker")
			b.more()
			b.fill("[name=description]", "Thinks twice about every question.")
			b.fill("[name=instructions]", "Think, then answer.")
			b.choose("[name=named]", "clever")
			b.shot("models-form-"+name, true)
			b.press(".sheet .button-primary")
			b.open("/agents/thinker/edit")
			b.until("the chosen model", `document.querySelector("[name=named]").value === "clever"`)
			b.open("/chat/" + ada.Conversation("thinker"))
			b.send("Who are you?")
			b.answered("The second one is here.")
			if reqs, headers := second.Requests(); len(reqs) != 1 || reqs[0].Model != "m-spare" || headers[0].Get("Authorization") != "Bearer sk-spare" {
				t.Errorf("%+v %v", reqs, headers)
			}
			b.open("/account/usage?of=agents&by=agent")
			b.click("details.card > summary")
			b.fill("details.card [name=tokens]", "5")
			b.fill("details.card [name=agent]", "thinker")
			b.press("details.card .button-primary")
			b.says("7 of 5 tokens today")
			b.shot("ceilings-"+name, true)
			if s.width == desk.width {
				b.look("ceilings")
			}
			b.open("/chat/" + ada.Conversation("thinker"))
			b.send("Once more?")
			b.answered("opens again at 00:00 UTC")
			b.open("/account/models")
			b.press("#model-clever .row-actions button")
			b.says("Deleted.")
			b.open("/chat/" + ada.Conversation("thinker"))
			b.send("Still there?")
			b.answered(`model "clever" is not here any more`)
		})
	}
}
