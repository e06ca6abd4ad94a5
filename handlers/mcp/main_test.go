package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// bearer is a transport that adds an API token.
type bearer struct {
	token string
	to    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.to.RoundTrip(r)
}

// The versions that the tests speak: one of each era, and the oldest.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
	oldest = "2024-11-05"
)

// connect is the protocol's own Go client at a path of the portal.
func connect(t *testing.T, p *apptest.Portal, c *apptest.Client, path, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	tr := &sdk.StreamableClientTransport{Endpoint: p.URL() + path, HTTPClient: &http.Client{Transport: bearer{c.Token, c.HTTP.Transport}}}
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts).Connect(t.Context(), tr, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(version, err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// text is the text of a result.
func text(r *sdk.CallToolResult) string {
	var s string
	for _, c := range r.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			s += c.Text + "\n"
		}
	}
	return s
}

// answer is the data of a result.
type answer struct {
	Agent     string
	TaskID    string `json:"task_id"`
	ContextID string `json:"context_id"`
	State     string
	Answer    string
	Reason    string
}

func dataOf(t *testing.T, r *sdk.CallToolResult) (a answer) {
	t.Helper()
	b, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func call(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) *sdk.CallToolResult {
	t.Helper()
	r, err := s.CallTool(context.WithoutCancel(t.Context()), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// foreign registers an A2A agent elsewhere and returns its name.
func foreign(c *apptest.Client, s *agenttest.A2AServer) string {
	name := apptest.Fresh("far")
	c.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Elsewhere.", "kind": "a2a", "endpoint": s.Endpoint(agenttest.Echo),
		"visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	return name
}

// rpcAnswer is an answer as it stands on the wire.
type rpcAnswer struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	status int
	header http.Header
}

func (a rpcAnswer) code() int {
	if a.Error == nil {
		return 0
	}
	return a.Error.Code
}

// result reads the result into out.
func (a rpcAnswer) result(t *testing.T, out any) {
	t.Helper()
	if a.Error != nil {
		t.Fatalf("%d: error %d: %s", a.status, a.Error.Code, a.Error.Message)
	}
	if err := json.Unmarshal(a.Result, out); err != nil {
		t.Fatalf("%v in %s", err, a.Result)
	}
}

// caps are the capabilities that rpc declares.
const (
	noCaps  = `{}`
	asksMe  = `{"elicitation":{}}`
	tasks   = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	onlyExt = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

// params adds what 2026-07-28 wants in every request to params, an object.
func params(caps, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return `{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientCapabilities":` + caps + `}` + rest + `}`
}

// rpc calls a method in the version 2026-07-28; rest are members of params.
func rpc(t *testing.T, c *apptest.Client, path, caps, method, rest string, edit ...func(*http.Request)) rpcAnswer {
	t.Helper()
	return raw(t, c, path, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":`+params(caps, rest)+`}`, append([]func(*http.Request){standard}, edit...)...)
}

// standard sets the headers that repeat the body.
func standard(r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(b))
	var m struct {
		Method string
		Params struct{ Name, URI, TaskID string }
	}
	json.Unmarshal(b, &m)
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", modern)
	r.Header.Set("Mcp-Method", m.Method)
	if name := m.Params.Name + m.Params.URI + m.Params.TaskID; name != "" {
		r.Header.Set("Mcp-Name", name)
	}
}

// raw sends a body as it is.
func raw(t *testing.T, c *apptest.Client, path, body string, edit ...func(*http.Request)) (a rpcAnswer) {
	t.Helper()
	got := c.Do(http.MethodPost, path, body, edit...)
	a.status, a.header = got.Status, got.Header
	if got.Status == http.StatusAccepted {
		if got.Body != "" {
			t.Errorf("202 with a body: %q", got.Body)
		}
		return a
	}
	if err := json.Unmarshal([]byte(got.Body), &a); err != nil {
		t.Fatalf("%d %v: %.300q", got.Status, err, got.Body)
	}
	return a
}

// tool is the members of params of tools/call.
func tool(name string, args map[string]any) string {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return `"name":"` + name + `","arguments":` + string(b)
}

// events are the messages of a stream.
type events struct {
	resp *http.Response
	in   *bufio.Scanner
}

// stream opens one; it ends with the test.
func stream(t *testing.T, c *apptest.Client, path, body string, edit ...func(*http.Request)) *events {
	t.Helper()
	req := c.Request(t.Context(), http.MethodPost, path, body)
	for _, e := range edit {
		e(req)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") || resp.Header.Get("X-Accel-Buffering") != "no" {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%d, %s: %.300s", resp.StatusCode, kind, b)
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	return &events{resp, in}
}

// message is what a stream brings.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

// next is the next message; ok is false at the end.
func (e *events) next(t *testing.T) (m message, ok bool) {
	t.Helper()
	for e.in.Scan() {
		if data, is := strings.CutPrefix(e.in.Text(), "data: "); is {
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				t.Fatalf("%v in %q", err, data)
			}
			return m, true
		}
	}
	return m, false
}
