package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// far is a portal with an agent elsewhere, which lives longer than it.
func far(t *testing.T) (*apptest.Portal, *agenttest.A2AServer, *apptest.Client, string) {
	other := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	return p, other, ada.NewToken("agents:read", "chat:write", "tasks"), foreign(ada, other)
}

// wireTask is a task of the extension.
type wireTask struct {
	ResultType    string
	TaskID        string
	Status        string
	StatusMessage string
	CreatedAt     string
	LastUpdatedAt string
	TTL           json.RawMessage `json:"ttlMs"`
	Poll          int             `json:"pollIntervalMs"`
	InputRequests map[string]struct {
		Method string
		Params struct {
			Mode, Message   string
			RequestedSchema json.RawMessage
		}
	}
	Result       *wireResult
	Error        json.RawMessage
	RequestState string
}

// wireResult is the result of a call.
type wireResult struct {
	ResultType        string
	Content           []struct{ Type, Text string }
	StructuredContent answer
	IsError           bool
}

// once waits for a task to be in a state, by its feed.
func once(t *testing.T, c *apptest.Client, path, id, state string) wireTask {
	t.Helper()
	e := stream(t, c, path, `{"jsonrpc":"2.0","id":"feed","method":"subscriptions/listen","params":`+params(tasks, `"notifications":{"taskIds":["`+id+`"],"toolsListChanged":true}`)+`}`, standard)
	defer e.resp.Body.Close()
	m, _ := e.next(t)
	if m.Method != "notifications/subscriptions/acknowledged" || !strings.Contains(string(m.Params), `"taskIds":["`+id+`"]`) || strings.Contains(string(m.Params), "toolsListChanged") || !strings.Contains(string(m.Params), `"io.modelcontextprotocol/subscriptionId":"feed"`) {
		t.Fatalf("first %s %s", m.Method, m.Params)
	}
	for {
		m, ok := e.next(t)
		if !ok {
			t.Fatalf("the feed of %s ended before %s", id, state)
		}
		var k wireTask
		if err := json.Unmarshal(m.Params, &k); err != nil || m.Method != "notifications/tasks" || k.TaskID != id {
			t.Fatalf("%s %s %v", m.Method, m.Params, err)
		}
		if k.Status == state {
			return k
		}
	}
}

// TestTasks_Walk begins a task, is asked, answers and reads the result.
func TestTasks_Walk(t *testing.T) {
	t.Parallel()
	p, other, c, name := far(t)
	stranger := p.User(t, "bob").NewToken("chat:write")
	for _, path := range []string{"/mcp", "/agents/" + name + "/mcp"} {
		ask := func(text string) string {
			if path == "/mcp" {
				return tool("ask_agent", map[string]any{"agent": name, "text": text})
			}
			return tool("ask", map[string]any{"text": text})
		}
		of := func(id string) string { return `"taskId":"` + id + `"` }
		var k wireTask
		rpc(t, c, path, tasks, "tools/call", ask("wait")).result(t, &k)
		<-other.Started
		if k.ResultType != "task" || k.Status != "working" || k.CreatedAt == "" || k.LastUpdatedAt == "" || string(k.TTL) != "null" || k.Poll <= 0 || k.Result != nil || k.InputRequests != nil || k.RequestState != "" {
			t.Fatalf("%+v", k)
		}
		id := k.TaskID
		rpc(t, c, path, tasks, "tasks/get", of(id)).result(t, &k)
		if k.ResultType != "complete" || k.TaskID != id || k.Status != "working" {
			t.Errorf("%+v", k)
		}
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			rest := of(id) + `,"inputResponses":{}`
			if a := rpc(t, stranger, path, tasks, method, rest); a.code() != -32602 {
				t.Errorf("%s of another: %+v", method, a.Error)
			}
			if a := rpc(t, p.Guest(t), path, tasks, method, rest); a.code() != -32602 {
				t.Errorf("%s of a visitor: %+v", method, a.Error)
			}
			if a := rpc(t, c, path, asksMe, method, rest); a.code() != -32021 || a.status != 400 || !strings.Contains(string(a.Error.Data), `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`) {
				t.Errorf("%s undeclared: %d %+v", method, a.status, a.Error)
			}
		}
		if path == "/mcp" {
			if a := rpc(t, c, "/agents/calc/mcp", tasks, "tasks/get", of(id)); a.code() != -32602 {
				t.Errorf("at another agent: %+v", a.Error)
			}
		}
		ack := rpc(t, c, path, tasks, "tasks/cancel", of(id))
		if ack.code() != 0 || strings.Contains(string(ack.Result), "taskId") || !strings.Contains(string(ack.Result), `"resultType":"complete"`) {
			t.Errorf("%+v %s", ack.Error, ack.Result)
		}
		if k = once(t, c, path, id, "cancelled"); k.Result != nil || k.Error != nil {
			t.Errorf("%+v", k)
		}
		if ack = rpc(t, c, path, tasks, "tasks/cancel", of(id)); ack.code() != 0 {
			t.Errorf("again: %+v", ack.Error)
		}

		// The question is part of the result if it comes before the call turns into
		// a task, as it does unless the machine is busy; then the call is made again.
		var asked struct {
			ResultType    string
			InputRequests map[string]json.RawMessage
			RequestState  string
		}
		for asked.ResultType == "" || asked.ResultType == "task" {
			rpc(t, c, path, tasks, "tools/call", ask("ask")).result(t, &asked)
		}
		if asked.ResultType != "input_required" || len(asked.InputRequests) != 1 || asked.RequestState == "" || asked.InputRequests["taskId"] != nil {
			t.Fatalf("%+v", asked)
		}
	}
}

// TestTasks_UpdateGivesInput answers a task that waits by tasks/update, once.
func TestTasks_UpdateGivesInput(t *testing.T) {
	t.Parallel()
	_, _, c, name := far(t)
	// Asked without elicitation, the task waits.
	var res wireResult
	rpc(t, c, "/mcp", noCaps, "tools/call", tool("ask_agent", map[string]any{"agent": name, "text": "ask"})).result(t, &res)
	id := res.StructuredContent.TaskID
	if res.ResultType != "complete" || res.StructuredContent.State != "input_required" || res.IsError || !strings.Contains(res.Content[0].Text, "Which one?") || !strings.Contains(res.Content[len(res.Content)-1].Text, res.StructuredContent.ContextID) {
		t.Fatalf("%+v", res)
	}
	k := once(t, c, "/mcp", id, "input_required")
	var key string
	for name, q := range k.InputRequests {
		if key = name; q.Method != "elicitation/create" || q.Params.Mode != "form" || !strings.Contains(q.Params.Message, "Which one?") || !strings.Contains(string(q.Params.RequestedSchema), `"answer"`) {
			t.Errorf("%+v", q)
		}
	}
	get := func(caps string) (k wireTask) {
		rpc(t, c, "/mcp", caps, "tasks/get", `"taskId":"`+id+`"`).result(t, &k)
		return k
	}
	if k := get(onlyExt); len(k.InputRequests) != 0 || k.Status != "input_required" || !strings.Contains(k.StatusMessage, res.StructuredContent.ContextID) {
		t.Errorf("asked whom nobody may ask: %+v", k)
	}
	update := func(key, value string) {
		t.Helper()
		if a := rpc(t, c, "/mcp", tasks, "tasks/update", `"taskId":"`+id+`","inputResponses":{"`+key+`":`+value+`}`); a.code() != 0 || !strings.Contains(string(a.Result), `"resultType":"complete"`) || strings.Contains(string(a.Result), "status") {
			t.Errorf("%+v %s", a.Error, a.Result)
		}
	}
	update("another", `{"action":"accept","content":{"answer":"no"}}`)
	update(key, `{"action":"accept","content":{"answer":""}}`)
	update(key, `{"action":"accept"}`)
	if k := get(tasks); k.Status != "input_required" || k.InputRequests[key].Method == "" {
		t.Errorf("what is no answer counted: %+v", k)
	}
	update(key, `{"action":"accept","content":{"answer":"the blue one"}}`)
	update(key, `{"action":"accept","content":{"answer":"the red one"}}`)
	k = once(t, c, "/mcp", id, "completed")
	if k.Result == nil || k.Result.IsError || !strings.Contains(k.Result.Content[0].Text, "the blue one") || k.Result.StructuredContent.TaskID != id {
		t.Errorf("%+v", k)
	}
}

// TestCall_AsksBackByItsAnswer is MRTR: the call is made again with what the
// agent wanted to know.
func TestCall_AsksBackByItsAnswer(t *testing.T) {
	t.Parallel()
	p, _, c, name := far(t)
	ask := tool("ask_agent", map[string]any{"agent": name, "text": "ask"})
	var asked struct {
		ResultType    string
		InputRequests map[string]json.RawMessage
		RequestState  string
	}
	rpc(t, c, "/mcp", asksMe, "tools/call", ask).result(t, &asked)
	if asked.ResultType != "input_required" || len(asked.InputRequests) != 1 {
		t.Fatalf("%+v", asked)
	}
	var key string
	for key = range asked.InputRequests {
	}
	again := func(c *apptest.Client, rest, state, value string) rpcAnswer {
		return rpc(t, c, "/mcp", asksMe, "tools/call", rest+`,"requestState":"`+state+`","inputResponses":{"`+key+`":`+value+`,"more":{}}`)
	}
	const blue = `{"action":"accept","content":{"answer":"blue"}}`
	for name, a := range map[string]rpcAnswer{
		"another's":       again(p.User(t, "eve").NewToken("chat:write"), ask, asked.RequestState, blue),
		"a visitor's":     again(p.Guest(t), ask, asked.RequestState, blue),
		"a changed one":   again(c, ask, asked.RequestState+"A", blue),
		"of another tool": again(c, tool("follow_task", map[string]any{"task_id": "x"}), asked.RequestState, blue),
	} {
		if a.code() != -32602 {
			t.Errorf("the state, %s: %+v %s", name, a.Error, a.Result)
		}
	}
	// Without the answer it asks again.
	var repeated struct{ ResultType string }
	again(c, ask, asked.RequestState, `{"action":"accept","content":{}}`).result(t, &repeated)
	if repeated.ResultType != "input_required" {
		t.Errorf("%+v", repeated)
	}
	var first, second wireResult
	again(c, ask, asked.RequestState, blue).result(t, &first)
	again(c, ask, asked.RequestState, blue).result(t, &second)
	if first.ResultType != "complete" || !strings.Contains(first.Content[0].Text, "blue") || second.StructuredContent != first.StructuredContent {
		t.Errorf("%+v, sent again %+v", first, second)
	}

	// Who will not answer ends the task.
	asked.InputRequests = nil
	rpc(t, c, "/mcp", asksMe, "tools/call", ask).result(t, &asked)
	for key = range asked.InputRequests {
	}
	again(c, ask, asked.RequestState, `{"action":"decline"}`).result(t, &first)
	if first.StructuredContent.State != "canceled" || !first.IsError {
		t.Errorf("declined: %+v", first)
	}
}

// TestSDK_IsAsked is the same by the protocol's own client, in each era: on a
// stream before 2026-07-28.
func TestSDK_IsAsked(t *testing.T) {
	t.Parallel()
	p, _, c, name := far(t)
	for _, version := range []string{modern, legacy, "2025-06-18"} {
		questions := 0
		s := connect(t, p, c, "/agents/"+name+"/mcp", version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			questions++
			if !strings.Contains(r.Params.Message, "Which one?") {
				t.Errorf("%s: asked %q", version, r.Params.Message)
			}
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "blue"}}, nil
		}})
		r := call(t, s, "ask", map[string]any{"text": "ask"})
		if questions != 1 || !strings.Contains(text(r), "blue") || r.IsError || dataOf(t, r).State != "completed" {
			t.Errorf("%s: asked %d times: %s", version, questions, text(r))
		}
		// A client that cannot be asked is told how to go on.
		s = connect(t, p, c, "/agents/"+name+"/mcp", version, nil)
		r = call(t, s, "ask", map[string]any{"text": "ask"})
		a := dataOf(t, r)
		if a.State != "input_required" || !strings.Contains(text(r), a.ContextID) {
			t.Errorf("%s: %s", version, text(r))
		}
		if r = call(t, s, "ask", map[string]any{"text": "green", "context_id": a.ContextID}); !strings.Contains(text(r), "green") || dataOf(t, r).TaskID != a.TaskID {
			t.Errorf("%s: %s", version, text(r))
		}
	}
}

// TestSDK_CancelStopsTheWork ends a call in each era's own way.
func TestSDK_CancelStopsTheWork(t *testing.T) {
	t.Parallel()
	p, other, c, name := far(t)
	for _, version := range []string{modern, legacy} {
		for tool, args := range map[string]map[string]any{
			"ask_agent":  {"agent": name, "text": "wait"},
			"ask_agents": {"agents": []string{name}, "text": "wait"},
		} {
			s := connect(t, p, c, "/mcp", version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
				done <- err
			}()
			<-other.Started
			cancel()
			once(t, c, "/mcp", latest(t, c), "cancelled")
			if err := <-done; err == nil {
				t.Errorf("%s %s: a cancelled call has a result", version, tool)
			}
		}
	}
}

// TestHandshake_GoneIsNotCancelled: before 2026-07-28 a connection that ends
// cancels nothing.
func TestHandshake_GoneIsNotCancelled(t *testing.T) {
	t.Parallel()
	_, other, c, name := far(t)
	ctx, cancel := context.WithCancel(t.Context())
	req := c.Request(ctx, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+tool("ask_agent", map[string]any{"agent": name, "text": "wait"})+`}}`)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := c.HTTP.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	<-other.Started
	cancel()
	<-gone
	id := latest(t, c)
	once(t, c, "/mcp", id, "working")
	// Another call finds it and ends it.
	if a := rpc(t, c, "/mcp", tasks, "tasks/cancel", `"taskId":"`+id+`"`); a.code() != 0 {
		t.Fatal(a.Error)
	}
	once(t, c, "/mcp", id, "cancelled")
}

// latest is the caller's last task.
func latest(t *testing.T, c *apptest.Client) string {
	t.Helper()
	var list struct{ Tasks []struct{ ID string } }
	if c.Get(http.MethodGet, "/api/v1/tasks", nil, 200, &list); len(list.Tasks) == 0 {
		t.Fatal("there is no task")
	}
	return list.Tasks[0].ID
}

// TestSDK_ProgressAndRefusal looks at what is told on the way, and at an agent
// that says no.
func TestSDK_ProgressAndRefusal(t *testing.T) {
	t.Parallel()
	p, _, c, name := far(t)
	for _, version := range []string{modern, legacy} {
		var told []sdk.ProgressNotificationParams
		heard := make(chan sdk.ProgressNotificationParams, 100)
		s := connect(t, p, c, "/mcp", version, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { heard <- *r.Params }})
		params := &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"agent": name, "text": "hello there"}}
		params.SetProgressToken("mine")
		r, err := s.CallTool(t.Context(), params)
		if err != nil || !strings.Contains(text(r), "hello there") {
			t.Fatal(version, text(r), err)
		}
		for len(told) == 0 || len(heard) > 0 {
			told = append(told, <-heard)
		}
		for i, n := range told {
			if n.ProgressToken != "mine" || n.Message == "" || i > 0 && n.Progress <= told[i-1].Progress {
				t.Errorf("%s: %+v", version, told)
			}
		}
		r = call(t, s, "ask_agent", map[string]any{"agent": name, "text": "refuse"})
		if a := dataOf(t, r); !r.IsError || a.State != "rejected" || !strings.Contains(text(r), "not my job") {
			t.Errorf("%s: %+v %s", version, a, text(r))
		}
		for tool, args := range map[string]map[string]any{
			"ask_agent":      {"agent": "nobody", "text": "hello"},
			"describe_agent": {"agent": "nobody"},
			"get_task":       {"task_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
			"search_agents":  {"limit": 500},
			"ask_agents":     {"agents": []string{"calc", "calc"}, "text": "1"},
			"follow_task":    {"id": "x"},
		} {
			if r := call(t, s, tool, args); !r.IsError || len(text(r)) < 20 {
				t.Errorf("%s %s: %s", version, tool, text(r))
			}
		}
	}
}
