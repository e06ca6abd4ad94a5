package app_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/settings"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// Every door refuses a caller with a full queue in the terms of its protocol and stores nothing; other
// callers are served.
func TestBusy_EachDoorSaysSo(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t, func(c *app.Config) { c.Limits = "running-per-agent=2,waiting-per-account=1" })
	oper := p.Operator(t, "oper")
	owner, bob, otto := p.User(t, "olga"), p.User(t, "bob").NewToken(), p.User(t, "otto").NewToken()
	owner.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "slow", "description": "Never answers.", "visibility": "public",
		"kind": "openai", "endpoint": model.Base(agenttest.Wait), "config": map[string]any{"model": "echo-1"}}, http.StatusCreated)
	room := bob.Conversation("slow")
	bob.Say(room, "one")
	<-model.Started
	bob.Say(room, "two")

	const busy = "slow is busy, about "
	message := `{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"three"}]}`
	tool := func(name string, args map[string]any) map[string]any {
		return map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}}
	}
	model1 := map[string]any{"model": "slow", "messages": []any{map[string]string{"role": "user", "content": "three"}}}
	stream := map[string]any{"model": "slow", "stream": true, "messages": []any{map[string]string{"role": "user", "content": "three"}}}
	for name, c := range map[string]struct {
		path string
		body any
		says []string
	}{
		"A2A JSON-RPC":           {"/agents/slow/a2a", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":` + message + `}}`, []string{`"code":-32000`, "RATE_LIMITED"}},
		"A2A JSON-RPC stream":    {"/agents/slow/a2a", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":` + message + `}}`, []string{`"code":-32000`, "RATE_LIMITED"}},
		"A2A JSON-RPC, 0.3":      {"/agents/slow/a2a", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m-3","role":"user","parts":[{"kind":"text","text":"three"}]}}}`, []string{`"code":-32000`}},
		"A2A HTTP+JSON":          {"/agents/slow/a2a/message:send", `{"message":` + message + `}`, []string{`"code":429`, "RESOURCE_EXHAUSTED", "RATE_LIMITED"}},
		"A2A HTTP+JSON stream":   {"/agents/slow/a2a/message:stream", `{"message":` + message + `}`, []string{`"code":429`, "RESOURCE_EXHAUSTED"}},
		"A2A, in a conversation": {"/agents/slow/a2a/message:send", `{"message":{"messageId":"m-2","contextId":"` + room + `","role":"ROLE_USER","parts":[{"text":"three"}]}}`, []string{`"code":429`}},
		"MCP, of the portal":     {"/mcp", tool("ask_agent", map[string]any{"agent": "slow", "text": "three"}), []string{`"code":-32000`}},
		"MCP, of the agent":      {"/agents/slow/mcp", tool("ask", map[string]any{"text": "three"}), []string{`"code":-32000`}},
		"OpenAI":                 {"/v1/chat/completions", model1, []string{`"code":"rate_limit_exceeded"`}},
		"OpenAI stream":          {"/v1/chat/completions", stream, []string{`"code":"rate_limit_exceeded"`}},
	} {
		a := bob.Do(http.MethodPost, c.path, c.body)
		if a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, busy) {
			t.Errorf("%s: %d %v %s", name, a.Status, a.Header, a.Body)
		}
		for _, want := range c.says {
			if !strings.Contains(a.Body, want) {
				t.Errorf("%s lacks %s: %s", name, want, a.Body)
			}
		}
	}

	var said struct {
		Tasks []struct {
			State, Reason string
			RetryAfter    int64 `json:"retry_after"`
		}
	}
	bob.Get(http.MethodPost, "/api/v1/conversations/"+room+"/messages", map[string]any{"client_id": "3", "text": "three"}, http.StatusCreated, &said)
	if k := said.Tasks[0]; k.State != "rejected" || k.RetryAfter < 1 || !strings.HasPrefix(k.Reason, busy) {
		t.Errorf("the API says %+v", said)
	}
	var rooms struct{ Conversations []struct{ ID string } }
	bob.Get(http.MethodGet, "/api/v1/conversations", nil, http.StatusOK, &rooms)
	if len(rooms.Conversations) != 1 {
		t.Errorf("refused questions opened conversations: %+v", rooms)
	}

	// Others are served, by the same agent too.
	otto.Say(otto.Conversation("slow"), "one")
	<-model.Started
	if a := otto.Do(http.MethodPost, "/mcp", tool("ask_agent", map[string]any{"agent": "calc", "text": "2+2"})); !strings.Contains(a.Body, "4") {
		t.Errorf("another person: %d %s", a.Status, a.Body)
	}

	var queue struct {
		Running, Waiting, Refused int
		Accounts                  []struct {
			Account                   string
			Running, Waiting, Refused int
		}
		Agents []struct {
			Name             string
			Running, Waiting int
		}
	}
	oper.Get(http.MethodGet, "/api/v1/queue", nil, http.StatusOK, &queue)
	if queue.Running != 2 || queue.Waiting != 1 || queue.Refused < 11 || len(queue.Accounts) != 2 || queue.Accounts[0].Account != "bob" ||
		queue.Accounts[0].Running != 1 || queue.Accounts[0].Waiting != 1 || queue.Accounts[0].Refused < 11 || queue.Agents[0].Name != "slow" ||
		queue.Agents[0].Running != 2 {
		t.Errorf("the operator sees %+v", queue)
	}
	oper.Must(http.MethodGet, "/admin/queue", nil, http.StatusOK)
	if a := oper.NewToken().Must(http.MethodGet, "/metrics", nil, http.StatusOK); !strings.Contains(a.Body, `agentsite_tasks_refused_total{class="accounts"} 1`) {
		t.Error("the metrics lack the refused tasks")
	}

	// Room again: the refused task can be asked for once more.
	bob.Must(http.MethodPost, "/api/v1/conversations/"+room+"/stop", nil, http.StatusOK)
	var list struct {
		Messages []struct {
			Seq  int64
			Task struct{ State string }
		}
	}
	bob.Get(http.MethodGet, "/api/v1/conversations/"+room+"/messages", nil, http.StatusOK, &list)
	for _, m := range list.Messages {
		if m.Task.State == "rejected" {
			bob.Must(http.MethodPost, "/api/v1/conversations/"+room+"/messages/"+strconv.FormatInt(m.Seq, 10)+"/again", nil, http.StatusAccepted)
		}
	}
}

// One account that runs as much as it may on a host, with agents that never answer, leaves the host's other
// places to the agents of others.
func TestBusy_HostOfOthers(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	bob, otto := p.User(t, "bob").NewToken(), p.User(t, "otto").NewToken()
	work := settings.DefaultLimits().Work
	for range work.RunningPerAccount / (work.RunningPerAgent / 2) {
		name := bob.Agent("public", model.Base(agenttest.Wait))
		for range work.RunningPerAgent / 2 {
			bob.Say(bob.Conversation(name), "one")
			<-model.Started
		}
	}
	room := otto.Conversation(otto.Agent("public", model.Base(agenttest.Echo)))
	events := otto.Events(room)
	events.Answered(otto.Say(room, "two").Tasks[0].ID)
	select {
	case <-model.Stopped:
		t.Error("the answer came only after a call of the other account had ended")
	default:
	}
}

// A task that waits shows when it is about to start: in the API, on the page and live, and as a waiting one
// after a restart too.
func TestBusy_WaitingTasksShowTheirTurn(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	edit := func(c *app.Config) { c.Limits = "running-per-agent=2,disk-free=0,disk-reserve=0" }
	p := apptest.Start(t, edit)
	bob := p.User(t, "bob")
	bob.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "slow", "description": "Never answers.", "visibility": "public",
		"kind": "openai", "endpoint": model.Base(agenttest.Wait), "config": map[string]any{"model": "echo-1"}}, http.StatusCreated)
	bob.Say(bob.Conversation("slow"), "one")
	<-model.Started
	bob.Say(bob.Conversation("slow"), "two")
	room := bob.Conversation("slow")
	s := bob.Events(room)
	id := bob.Say(room, "three").Tasks[0].ID
	const turn = "; 1 before it"
	s.Wait("its turn", func(e apptest.Event) bool {
		return strings.Contains(e.Raw, turn) && strings.Contains(e.Raw, `"position":2`)
	})
	s.Close()
	shown := func(p *apptest.Portal, bob *apptest.Client) {
		t.Helper()
		var k struct {
			State    string
			Position int
			Wait     int64 `json:"waits_s"`
			Turn     string
		}
		bob.Get(http.MethodGet, "/api/v1/tasks/"+id, nil, http.StatusOK, &k)
		if k.State != "submitted" || k.Position != 2 || k.Wait < 1 || !strings.HasSuffix(k.Turn, turn) {
			t.Errorf("the API says %+v", k)
		}
		if a := bob.Must(http.MethodGet, "/chat/"+room, nil, http.StatusOK); !strings.Contains(a.Body, "waiting for its turn, "+k.Turn) {
			t.Errorf("the page does not say %q", k.Turn)
		}
	}
	shown(p, bob)
	p.Stop()
	p = apptest.Start(t, edit, func(c *app.Config) { c.Data = p.Dir })
	<-model.Started
	shown(p, p.LogIn(t, "bob"))
}
