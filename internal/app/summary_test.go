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

// A long conversation is summarised once, which the transcript shows; deleting a message that is in the summary makes
// another one without it.
func TestSummary_ForgetsADeletedMessage(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	summaries := 0
	model.Script(func(_ int, req openai.ChatRequest) agenttest.Turn {
		if !strings.HasPrefix(string(req.Messages[0].Content), "Summarise") {
			return agenttest.Turn{Text: "Noted."}
		}
		summaries++
		text := "Summary without the secret."
		if strings.Contains(string(req.Messages[1].Content), "my secret is 4711") {
			text = "Summary with the secret 4711."
		}
		return agenttest.Turn{Text: text}
	})
	p := apptest.Start(t, func(c *app.Config) { c.LLMURL, c.LLMModel = model.Base(agenttest.Scripted), "house" })
	ada := p.User(t, "ada")
	name := apptest.Fresh("agent")
	ada.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Answers.", "kind": "prompt",
		"config": map[string]any{"instructions": "Answer."}}, http.StatusCreated)
	l := listensTo(ada, name)
	say := func(text string) apptest.Said {
		t.Helper()
		said := l.Say(l.talk, text)
		if state, says := l.outcome(said); state != "completed" {
			t.Fatalf("%s: %s %s", text, state, says)
		}
		return said
	}
	secret := say("my secret is 4711")
	for i := range 8 {
		say(fmt.Sprintf("part %d %s", i, strings.Repeat("word ", 800)))
	}
	l.stream.Heard("Summary of the earlier messages, for its model: Summary with the secret 4711.")
	if summaries != 1 {
		t.Errorf("%d summaries", summaries)
	}
	sent := func() string {
		reqs, _ := model.Requests()
		var b strings.Builder
		for _, m := range reqs[len(reqs)-1].Messages {
			b.WriteString(string(m.Content))
		}
		return b.String()
	}
	say("and now?")
	if got := sent(); summaries != 1 || !strings.Contains(got, "Summary with the secret") || strings.Contains(got, "my secret is") {
		t.Errorf("%d summaries; sent %.300q", summaries, got)
	}
	ada.NewToken().Must(http.MethodDelete, fmt.Sprintf("/api/v1/conversations/%s/messages/%d", l.talk, secret.Seq), nil, http.StatusOK)
	say("and after that?")
	if got := sent(); summaries != 2 || strings.Contains(got, "4711") || !strings.Contains(got, "Summary without the secret") {
		t.Errorf("%d summaries; sent %.300q", summaries, got)
	}
}
