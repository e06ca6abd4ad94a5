package app_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"agentsite/docs"
	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// The page of the manual about memory: its commands run as they stand, in the order of the page, with a token of the scopes that
// it names. It needs bash and curl.
func TestManual_Memory(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), program) {
				t.Fatal(err)
			}
			t.Skip(program + " is not here")
		}
	}
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
	run := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		cmd.Env = append(os.Environ(), "AGENTSITE_PORTAL="+p.Base, "AGENTSITE_TOKEN="+token.Token)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s\n%s", err, stderr.String(), out)
		}
		return string(out)
	}
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
