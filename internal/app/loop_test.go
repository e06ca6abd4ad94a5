package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// circle registers agents of which each has the next one's face here as its
// endpoint, the last the first one's, and returns their names.
func circle(t *testing.T, p *apptest.Portal, owner *apptest.Client, kinds ...string) []string {
	t.Helper()
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = apptest.Fresh("ring")
	}
	for i, kind := range kinds {
		next := names[(i+1)%len(names)]
		body := map[string]any{"name": names[i], "description": "Calls another one.", "kind": kind, "visibility": "public"}
		switch kind {
		case "a2a":
			body["endpoint"], body["config"] = p.Base+"/agents/"+next+"/a2a", map[string]any{"binding": "JSONRPC", "version": "1.0"}
		case "openai":
			body["endpoint"], body["config"] = p.Base+"/v1", map[string]any{"model": next}
		}
		owner.Must(http.MethodPost, "/api/v1/agents", body, http.StatusCreated)
	}
	return names
}

// outcome is how the one task of an agent in a conversation ended.
func outcome(t *testing.T, c *apptest.Client, agent string) (state, reason string) {
	t.Helper()
	room := c.Conversation(agent)
	s := c.Events(room)
	defer s.Close()
	said := c.Say(room, "Hello?")
	if len(said.Tasks) != 1 {
		t.Fatal(said)
	}
	s.Answered(said.Tasks[0].ID)
	var out struct {
		Status struct {
			State   string
			Message struct{ Parts []struct{ Text string } }
		}
	}
	a := c.Must(http.MethodGet, "/api/v1/tasks/"+said.Tasks[0].ID, nil, http.StatusOK)
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil {
		t.Fatal(err)
	}
	return out.Status.State, a.Body
}

func TestLoop_AgentsThatCallEachOtherEndAtOnce(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	owner := p.User(t, "ada")
	c := owner.NewToken()
	for name, kinds := range map[string][]string{"itself": {"a2a"}, "two": {"a2a", "a2a"}, "model": {"openai"}, "mixed": {"openai", "a2a", "openai"}} {
		names := circle(t, p, owner, kinds...)
		state, all := outcome(t, c, names[0])
		if state != "TASK_STATE_FAILED" || !strings.Contains(all, "agents call each other in a circle") || !strings.Contains(all, names[0]+" was not asked") {
			t.Errorf("%s: %s", name, all)
		}
	}
}

func TestLoop_ThroughAnotherPortal(t *testing.T) {
	t.Parallel()
	here, there := apptest.Start(t), apptest.Start(t)
	ada, bob := here.User(t, "ada"), there.User(t, "bob")
	config := map[string]any{"binding": "JSONRPC", "version": "1.0"}
	for owner, c := range map[*apptest.Client][2]string{ada: {"near", there.Base + "/agents/away/a2a"}, bob: {"away", here.Base + "/agents/near/a2a"}} {
		owner.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": c[0], "description": "Calls another one.", "kind": "a2a", "visibility": "public",
			"endpoint": c[1], "config": config}, http.StatusCreated)
	}
	if state, all := outcome(t, ada.NewToken(), "near"); state != "TASK_STATE_FAILED" || !strings.Contains(all, "near was not asked: it waits for this very answer") {
		t.Error(all)
	}
}

func TestLoop_ALongWayEnds(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	owner := p.User(t, "ada")
	names := circle(t, p, owner, slices.Repeat([]string{"a2a"}, 12)...)
	state, all := outcome(t, owner.NewToken(), names[0])
	if state != "TASK_STATE_FAILED" || !strings.Contains(all, names[8]+" was not asked: 8 agents have asked each other") {
		t.Error(all)
	}
}

func TestLoop_DoorsSayItInTheirOwnWords(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "ada").NewToken()
	hops := func(v string) func(*http.Request) { return setHeader("Agentsite-Hops", v) }
	far := strings.TrimSuffix(strings.Repeat(`"a.example/x", `, 8), ", ")
	message := `{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"2+2"}]}}`
	rpc := `{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":` + message + `}`
	tool := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask_agent","arguments":{"agent":"calc","text":"2+2"}}}`
	chat := map[string]any{"model": "calc", "messages": []any{map[string]string{"role": "user", "content": "2+2"}}}
	for _, d := range []struct {
		path       string
		body       any
		okay       int
		loop, junk []string
	}{
		{"/agents/calc/a2a", rpc, 200, []string{`"id":7`, `"code":-32600`, `LOOP_DETECTED`, `8 agents have asked each other`}, []string{`"code":-32602`, `list of quoted strings`}},
		{"/agents/calc/a2a/message:send", message, 400, []string{`"code":400`, `LOOP_DETECTED`}, []string{`"code":400`, `list of quoted strings`}},
		{"/v1/chat/completions", chat, 400, []string{`"loop_detected"`, `"invalid_request_error"`}, []string{`"invalid_request_error"`, `list of quoted strings`}},
		{"/mcp", tool, 200, []string{`"id":7`, `"isError":true`, `8 agents have asked each other`}, []string{`"isError":true`, `list of quoted strings`}},
	} {
		for v, want := range map[string][]string{far: d.loop, "a.example/x": d.junk, `"a.example"`: d.junk, `"` + strings.Repeat("a", 400) + `/b"`: d.junk} {
			a := c.Must(http.MethodPost, d.path, d.body, d.okay, hops(v))
			for _, w := range want {
				if !strings.Contains(a.Body, w) {
					t.Errorf("%s with %.20s: %s lacks %s", d.path, v, a.Body, w)
				}
			}
		}
		c.Must(http.MethodPost, d.path, d.body, 200, hops(`"a.example/x"`), hops(`"b.example:8080/y","[::1]:8080/z"`))
	}
}
