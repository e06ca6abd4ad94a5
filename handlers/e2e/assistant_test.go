package e2e

import (
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// TestAssistant_AnswersFromTheHomePage types into the first field of the home page of a portal with a model: a guest
// has the model's answer by one key, or one click on a phone. Beyond the share of guests the guide answers.
func TestAssistant_AnswersFromTheHomePage(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t).answers(func(string) []string { return []string{"Hello from the ", "**model**."} })
			p := apptest.Start(t, ownModel(m))
			g := visit(t, root, p, s)
			g.open("/")
			for _, scheme := range []string{"dark", "light"} {
				g.scheme(scheme)
				g.shot("assistant-"+name+"-"+scheme, false)
			}
			if first := eval[string](g, `document.querySelector("main textarea, main input:not([type=hidden])").id`); first != "assistant-text" {
				t.Errorf("the first field is %q", first)
			}
			g.says("What you write stays on this portal.")
			g.fill("#assistant-text", "Who are you?")
			if s.scripts && !s.phone {
				g.leaves(func() { g.enter() })
			} else {
				g.press(".guide-assistant .say button")
			}
			g.answered("Hello from the model.")
			g.shot("assistant-answer-"+name, false)
			g.open("/agents/guide")
			g.fill("#text", "Hello")
			g.press(".talk .say button")
			g.answered("Hello from the model.")
			g.clean("the assistant")
		})
	}
	t.Run("new chat", func(t *testing.T) {
		t.Parallel()
		m := newModel(t).answers(func(string) []string { return []string{"Hello from the ", "**model**."} })
		p := apptest.Start(t, ownModel(m))
		for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
			x := visit(t, root, p, s).as(p.User(t, "ada-"+name))
			x.open("/chat?new=1")
			x.says("Without one, the assistant answers your first message. What you write stays on this portal.")
			x.shot("new-chat-"+name, false)
			x.focused("the first message", "#text")
			if x.types("Who are you?"); s.scripts && !s.phone {
				x.leaves(x.enter)
			} else {
				x.press(".new-chat .button-primary")
			}
			x.answered("Hello from the model.")
			x.clean("a new chat with the assistant")
		}
	})
	t.Run("ceiling", func(t *testing.T) {
		t.Parallel()
		m := newModel(t).answers(func(string) []string { return []string{"Never."} })
		p := apptest.Start(t, ownModel(m), func(c *app.Config) { c.ModelBudget = "10k" })
		g := visit(t, root, p, desk)
		g.open("/")
		g.fill("#assistant-text", "who can calculate percentages?")
		g.leaves(func() { g.enter() })
		g.answered("The guide answers instead")
		g.answered("Talk to calc")
		if text := eval[string](g, `document.querySelector("[data-messages]").innerText`); strings.Contains(text, "Never.") ||
			!strings.Contains(text, "today’s budget") && !strings.Contains(text, "today's budget") {
			t.Errorf("the answer is %q", text)
		}
		g.clean("the guide in place of the assistant")
	})
}
