package endpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentsite/handlers/request"
	"agentsite/internal/account"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

const anyInput = `{"type":"object"}`

func one(want string) *Wants {
	return &Wants{Requests: map[string]Request{want: {"elicitation/create", map[string]any{"message": want + "?", "requestedSchema": json.RawMessage(anyInput)}}}}
}

// offer is a server with one of each.
func offer() Offer {
	tool := func(name string, run func(context.Context, *Call) (Result, error)) Tool {
		return Tool{Name: name, Description: name, Input: json.RawMessage(anyInput), Run: run}
	}
	later := tool("later", func(context.Context, *Call) (Result, error) {
		return Result{Task: &Task{ID: "t1", Status: TaskWorking, CreatedAt: time.Unix(1, 0), UpdatedAt: time.Unix(2, 0), TTL: time.Minute, Poll: time.Second}}, nil
	})
	later.TaskOnly = true
	return Offer{Name: "x/test", Version: "1", Instructions: "Test.", TTL: time.Minute,
		Tools: []Tool{later,
			tool("greet", func(_ context.Context, c *Call) (Result, error) {
				name, _ := c.Arguments.Text("name")
				return Text("Hello, " + name + "!"), nil
			}),
			tool("steps", func(_ context.Context, c *Call) (Result, error) {
				c.ProgressOf(1, 2, "half")
				c.Log("debug", "small")
				c.Log("error", "large")
				return Text("done"), nil
			}),
			tool("twice", func(_ context.Context, c *Call) (Result, error) {
				switch {
				case c.Inputs["first"] == nil && c.State == "":
					w := one("first")
					w.State = c.Seal("1")
					return Result{Wants: w}, nil
				case c.Inputs["second"] == nil:
					if s, err := c.Unseal(); err != nil || s != "1" {
						return Result{}, err
					}
					w := one("second")
					w.State = c.Seal("1")
					return Result{Wants: w}, nil
				}
				return Text(string(c.Inputs["second"])), nil
			}),
			tool("sample", func(context.Context, *Call) (Result, error) {
				return Result{Wants: &Wants{Requests: map[string]Request{"s": {"sampling/createMessage", map[string]any{"maxTokens": 1}}}}}, nil
			}),
			tool("media", func(context.Context, *Call) (Result, error) {
				return Result{Content: []Content{{Type: "audio", Data: []byte{1}, MIMEType: "audio/wav"}, LinkContent("https://x.example/", "link", ""), TextContent("")}}, nil
			}),
		},
		Prompts: []Prompt{{Name: "hi", Arguments: []PromptArgument{{Name: "who", Required: true}}, Get: func(_ context.Context, c *Call) (PromptResult, error) {
			if c.Client.Elicitation && c.Inputs["first"] == nil {
				return PromptResult{Wants: one("first")}, nil
			}
			who, _ := c.Arguments.Text("who")
			return PromptResult{Messages: []PromptMessage{{"user", TextContent("Hi, " + who)}}}, nil
		}}},
		Changes:               Changes{Tools: true},
		Feeds:                 oneChange{},
		Handshake:             map[string]func(context.Context, *Call) (any, error){"logging/setLevel": func(context.Context, *Call) (any, error) { return struct{}{}, nil }},
		HandshakeCapabilities: map[string]any{"logging": struct{}{}},
	}
}

// oneChange opens feeds that report one change of the tools.
type oneChange struct{}

func (oneChange) OpenFeed(_ context.Context, _ *Call, w Watch) (Watch, Feed, error) {
	agreed := Watch{Tools: w.Tools}
	if !w.Tools {
		return agreed, &changeList{}, nil
	}
	return agreed, &changeList{{List: "tools"}}, nil
}

// changeList is a feed of the changes in it.
type changeList []Change

func (l *changeList) Next(context.Context) (Change, error) {
	if len(*l) == 0 {
		return Change{}, io.EOF
	}
	next := (*l)[0]
	*l = (*l)[1:]
	return next, nil
}

func (l *changeList) Close() {}

// serve serves the offer to everybody.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	accounts := account.New(storetest.New(t), account.Config{Policy: account.Open, Guests: true, URL: "http://test.example", CheapHashes: true, Log: slog.New(slog.DiscardHandler)})
	s, err := NewServer(offer())
	if err != nil {
		t.Fatal(err)
	}
	e := New(Config{Callers: request.NewCallers(accounts, nil, request.NewConnections(request.ConnectionLimits{All: 100, PerAddress: 100})), Key: []byte("key"), Log: slog.New(slog.DiscardHandler)})
	srv := httptest.NewServer(e.Post(func(context.Context, *http.Request, ident.Actor) (*Server, error) { return s, nil }))
	t.Cleanup(srv.Close)
	return srv
}

// post sends a request of the modern version, or with caps "" of an older one,
// and returns the messages of the answer.
func post(t *testing.T, url, caps, method, rest string, h ...string) []string {
	t.Helper()
	params := `{` + rest + `}`
	if caps != "" {
		params = `{"_meta":{"progressToken":5,"` + metaVersion + `":"` + Modern + `","` + metaCapabilities + `":` + caps + `}`
		if rest != "" {
			params += "," + rest
		}
		params += "}"
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if caps != "" {
		var p struct{ Name string }
		json.Unmarshal([]byte(params), &p)
		req.Header.Set(versionHeader, Modern)
		req.Header.Set(methodHeader, method)
		req.Header.Set(nameHeader, p.Name)
	}
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "application/json" {
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return []string{string(b)}
	}
	var out []string
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			out = append(out, data)
		}
	}
	return out
}

func TestOffer_InBothEras(t *testing.T) {
	t.Parallel()
	url := serve(t).URL
	for name, test := range map[string]struct {
		caps, method, rest string
		header             []string
		want               []string // what each message holds, in order
	}{
		"a call":                      {`{}`, "tools/call", `"name":"greet","arguments":{"name":"Ada"},"task":{"ttl":1}`, nil, []string{`"text":"Hello, Ada!"`}},
		"a call, older":               {``, "tools/call", `"name":"greet","arguments":{"name":"Ada"}`, nil, []string{`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Hello, Ada!"}]}}`}},
		"progress":                    {`{}`, "tools/call", `"name":"steps"`, nil, []string{`"progressToken":5,"progress":1,"total":2,"message":"half"`, `"done"`}},
		"progress, and no stream":     {`{}`, "tools/call", `"name":"steps"`, []string{"Accept", "application/json"}, []string{`"done"`}},
		"only a stream":               {`{}`, "tools/call", `"name":"greet"`, []string{"Accept", "text/event-stream"}, []string{`"Hello, !"`}},
		"logs, older":                 {``, "tools/call", `"name":"steps"`, nil, []string{`"level":"debug"`, `"level":"error"`, `"done"`}},
		"a task":                      {`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, "tools/call", `"name":"later"`, nil, []string{`{"resultType":"task","taskId":"t1","status":"working","createdAt":"1970-01-01T00:00:01.000Z","lastUpdatedAt":"1970-01-01T00:00:02.000Z","ttlMs":60000,"pollIntervalMs":1000,`}},
		"a task for who takes none":   {`{}`, "tools/call", `"name":"later"`, nil, []string{`"code":-32021`}},
		"a task, older":               {``, "tools/call", `"name":"later"`, nil, []string{`"code":-32021`}},
		"sampling, not declared":      {`{"elicitation":{}}`, "tools/call", `"name":"sample"`, nil, []string{`"requiredCapabilities":{"sampling":{}}`}},
		"sampling":                    {`{"sampling":{}}`, "tools/call", `"name":"sample"`, nil, []string{`"inputRequests":{"s":{"method":"sampling/createMessage","params":{"maxTokens":1}}}`}},
		"forms, of who has URLs only": {`{"elicitation":{"url":{}}}`, "tools/call", `"name":"twice"`, nil, []string{`"requiredCapabilities":{"elicitation":{}}`}},
		"a prompt":                    {`{}`, "prompts/get", `"name":"hi","arguments":{"who":"Ada"}`, nil, []string{`"messages":[{"role":"user","content":{"type":"text","text":"Hi, Ada"}}]`}},
		"a prompt that asks":          {`{"elicitation":{"form":{}}}`, "prompts/get", `"name":"hi","arguments":{"who":"Ada"}`, nil, []string{`"resultType":"input_required"`}},
		"a prompt without":            {`{}`, "prompts/get", `"name":"hi"`, nil, []string{`"code":-32602`}},
		"media":                       {`{}`, "tools/call", `"name":"media"`, nil, []string{`"content":[{"type":"audio","data":"AQ==","mimeType":"audio/wav"},{"type":"resource_link","uri":"https://x.example/","name":"link"},{"type":"text","text":""}]`}},
		"media, older":                {``, "tools/call", `"name":"media"`, []string{versionHeader, v2024Nov}, []string{`{"type":"resource","resource":{"uri":"data:audio/wav;base64,AQ==","mimeType":"audio/wav","blob":"AQ=="}},{"type":"text","text":"[link](https://x.example/)"}`}},
		"a feed":                      {`{}`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"promptsListChanged":true}`, nil, []string{`"notifications":{"toolsListChanged":true}`, `notifications/tools/list_changed`, `"resultType":"complete"`}},
		"a feed of nothing":           {`{}`, "subscriptions/listen", `"notifications":{}`, nil, []string{`"notifications":{}`, `"io.modelcontextprotocol/subscriptionId":1`}},
		"a method of before":          {``, "logging/setLevel", `"level":"info"`, nil, []string{`"result":{}`}},
		"the same, since":             {`{}`, "logging/setLevel", `"level":"info"`, nil, []string{`"code":-32601`}},
	} {
		got := post(t, url, test.caps, test.method, test.rest, test.header...)
		if len(got) != len(test.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], test.want[i]) {
				t.Errorf("%s: %s, want %s", name, got[i], test.want[i])
			}
		}
	}
	var d struct {
		Result struct{ Capabilities map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(post(t, url, `{}`, "server/discover", "")[0]), &d); err != nil || string(d.Result.Capabilities["tools"]) != `{"listChanged":true}` || d.Result.Capabilities["logging"] != nil || d.Result.Capabilities["resources"] != nil {
		t.Errorf("%s %v", d.Result.Capabilities, err)
	}
}

// TestOffer_AsksMoreThanOnce goes through two questions by states.
func TestOffer_AsksMoreThanOnce(t *testing.T) {
	t.Parallel()
	url := serve(t).URL
	type result struct {
		Result struct {
			ResultType, RequestState string
			InputRequests            map[string]any
			Content                  []struct{ Text string }
		}
		Error *Problem
	}
	state, input := "", ""
	for i, want := range []string{"first", "second", ""} {
		rest := `"name":"twice"`
		if state != "" {
			rest += `,"requestState":"` + state + `","inputResponses":{"` + input + `":{"action":"accept","content":{}}}`
		}
		var r result
		if err := json.Unmarshal([]byte(post(t, url, `{"elicitation":{}}`, "tools/call", rest)[0]), &r); err != nil || r.Error != nil {
			t.Fatal(i, r.Error, err)
		}
		if want == "" {
			if r.Result.ResultType != "complete" || r.Result.Content[0].Text != `{"action":"accept","content":{}}` {
				t.Errorf("%+v", r)
			}
			continue
		}
		if r.Result.InputRequests[want] == nil || r.Result.RequestState == "" {
			t.Fatalf("%+v", r)
		}
		state, input = r.Result.RequestState, want
	}
}

// TestSession_IsWhatTheHandshakeSaid: nothing else is taken for one.
func TestSession_IsWhatTheHandshakeSaid(t *testing.T) {
	t.Parallel()
	e, other := New(Config{Key: []byte("one")}), New(Config{Key: []byte("two")})
	for _, s := range []session{{v2025Nov, Client{Elicitation: true}}, {v2024Nov, Client{Sampling: true, Roots: true}}} {
		id := e.sessionID(s)
		if got, ok := e.readSession(id); !ok || got != s {
			t.Errorf("%+v became %+v", s, got)
		}
		if id == e.sessionID(s) {
			t.Error("two sessions have one id")
		}
		for _, bad := range []string{"", "x", id + "A", id[:len(id)-1], strings.ToLower(id), "A" + id[1:]} {
			if _, ok := e.readSession(bad); ok && bad != id {
				t.Errorf("%q is a session", bad)
			}
		}
		if _, ok := other.readSession(id); ok {
			t.Error("another portal takes the session")
		}
	}
}

func TestNewServer_RefusesWhatNobodyCanUse(t *testing.T) {
	t.Parallel()
	tool := func(name, schema string) Tool { return Tool{Name: name, Input: json.RawMessage(schema)} }
	for name, list := range map[string][]Tool{
		"no name":     {tool("", anyInput)},
		"a long name": {tool(strings.Repeat("x", 200), anyInput)},
		"twice":       {tool("a", anyInput), tool("a", anyInput)},
		"no object":   {tool("a", `{"type":"string"}`)},
		"no schema":   {tool("a", ``)},
	} {
		if _, err := NewServer(Offer{Tools: list}); err == nil {
			t.Errorf("%s is fine", name)
		}
	}
}
