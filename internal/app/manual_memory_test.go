package app_test

import (
	"strings"
	"testing"

	"agentsite/docs"
	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// The page of the manual about memory: its commands run as they stand, in the order of the page, with a token of the
// scopes that it names. It needs bash and curl.
func TestManual_Memory(t *testing.T) {
	t.Parallel()
	requireShell(t)
	model, m := agenttest.NewOpenAIServer(t), newMind()
	model.Script(m.turn)
	p := apptest.Start(t, func(c *app.Config) { c.LLMURL, c.LLMModel = model.Base(agenttest.Scripted), "house" })
	ada := p.User(t, "ada")
	token := ada.NewToken("account", "agents:write")
	page, ok := docs.FindPage("memory")
	if !ok {
		t.Fatal("the page is gone")
	}
	blocks := shellBlock.FindAllStringSubmatch(page.Source, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	run := func(script string) string { t.Helper(); return runCommands(t, p, token, script) }
	run(blocks[0][1])
	if got := run(blocks[1][1]); !strings.Contains(got, `"tool":"memory"`) {
		t.Errorf("grant: %s", got)
	}
	talkTo(t, ada, "minder").say("remember: The person has a dog named Rex.")
	talkTo(t, ada, "minder").say("remember: The person likes tea.")
	if got := run(blocks[2][1]); !strings.Contains(got, "named Rex") || !strings.Contains(got, "named Max") ||
		!strings.Contains(got, `"deleted":1`) {
		t.Errorf("memories: %s", got)
	}
	if got := memoriesOf(ada, ""); len(got.Memories) > 0 {
		t.Errorf("after the last command: %+v", got)
	}
}
