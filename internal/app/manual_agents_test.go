package app_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"agentsite/docs"
	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// The page of the manual about agents that act: its commands run as they stand, and the agent that it registers asks,
// is allowed and asks another one. It needs bash and curl.
func TestManual_Agents(t *testing.T) {
	t.Parallel()
	requireShell(t)
	model := agenttest.NewOpenAIServer(t)
	model.Script(asker("calc"))
	p := apptest.Start(t, func(c *app.Config) { c.LLMURL, c.LLMModel = model.Base(agenttest.Scripted), "house" })
	ada := p.User(t, "ada")
	token := ada.NewToken()
	page, ok := docs.FindPage("agents")
	if !ok {
		t.Fatal("the page is gone")
	}
	blocks := shellBlock.FindAllStringSubmatch(page.Source, -1)
	if len(blocks) != 7 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	run := func(script string) string { t.Helper(); return runCommands(t, p, token, script) }
	run(blocks[0][1])
	talk := ada.Conversation("butler")
	person := actor{ada, t, talk, ada.Socket(talk)}
	if got := person.say("ask calc for 6*7"); !strings.Contains(got, "May I ask `calc`") {
		t.Fatalf("before it asks: %q", got)
	}
	person.say("no")
	elsewhere := newElsewhere(t, "calc")
	run(strings.ReplaceAll(blocks[1][1], "https://agent.example", elsewhere.URL))
	talk = ada.Conversation("reacher")
	reacher := actor{ada, t, talk, ada.Socket(talk)}
	if got := reacher.say("6*7"); !strings.Contains(got, "May I ask `calc`") {
		t.Fatalf("before it asks: %q", got)
	}
	if got := reacher.say("yes"); !strings.Contains(got, "42") {
		t.Fatalf("after a yes: %q", got)
	}
	run(blocks[2][1])
	dialAs(t, p, ada, "dialer")
	talk = ada.Conversation("dialer")
	dialer := actor{ada, t, talk, ada.Socket(talk)}
	if got := dialer.say("6*7"); !strings.Contains(got, "May I ask `calc`") {
		t.Fatalf("before it asks: %q", got)
	}
	if got := dialer.say("yes"); !strings.Contains(got, "42") {
		t.Fatalf("after a yes: %q", got)
	}
	if got := run(blocks[3][1]); !strings.Contains(got, `"scope":"public"`) || !strings.Contains(got, `"calls":100`) {
		t.Errorf("grants: %s", got)
	}
	var list struct{ Grants []json.RawMessage }
	token.Get(http.MethodGet, "/api/v1/grants", nil, http.StatusOK, &list)
	if len(list.Grants) != 0 {
		t.Errorf("after the last command: %s", list.Grants)
	}
	// The servers of models in the manual are replaced, because the portal probes them.
	named := strings.NewReplacer("https://llm.example/v1", model.Base(agenttest.Echo), "https://api.anthropic.com/v1", model.Base(agenttest.Echo))
	if got := run(named.Replace(blocks[4][1])); strings.Contains(got, "sk-example") || !strings.Contains(got, `"fallback":"spare"`) || !strings.Contains(got, `"name":"thinker"`) {
		t.Errorf("models: %s", got)
	}
	talk = ada.Conversation("thinker")
	thinker := actor{ada, t, talk, ada.Socket(talk)}
	if got := thinker.say("hello"); !strings.Contains(got, "hello") { // from the second, because the first has no such path
		t.Errorf("the agent with a named model: %q", got)
	}
	if got := run(blocks[5][1]); !strings.Contains(got, `"key":"house"`) || !strings.Contains(got, `"key":"small-1"`) {
		t.Errorf("usage: %s", got)
	}
	if got := run(blocks[6][1]); !strings.Contains(got, `"cost":"5.000000"`) || !strings.Contains(got, `"agent":"butler","tokens":200000`) {
		t.Errorf("ceilings: %s", got)
	}
}
