package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// MCPServer is an MCP server with tools, built on the protocol's SDK. The first segment of a request's
// path is its Mode: in a misbehaving mode only tool calls misbehave. Started and Stopped receive a
// value when a tool call in mode Wait begins and when it is cancelled.
type MCPServer struct {
	*httptest.Server
	// Modern selects the version: 2026-07-28 without sessions if true, 2025-11-25 with sessions if
	// false.
	Modern           bool
	Started, Stopped chan struct{}

	door  http.Handler
	ended chan struct{}
	key   string

	mu      sync.Mutex // guards the fields below
	calls   []json.RawMessage
	methods []string
	headers []http.Header
}

// EchoSchema is the JSON schema of the arguments of the tool echo.
const EchoSchema = `{"type":"object","properties":{"text":{"type":"string","description":"What to say again","examples":["hello"]}},"required":["text"]}`

// NewMCPServer starts a server on loopback with the single tool echo. It is closed when t ends.
func NewMCPServer(t testing.TB, modern bool) *MCPServer {
	return (*Network)(nil).MCPServer(t, modern)
}

// MCPServer is NewMCPServer on the network n.
func (n *Network) MCPServer(t testing.TB, modern bool) *MCPServer { return n.mcpServer(t, modern, nil) }

// NewMCPServerWith is NewMCPServer with the tools that add registers, instead of echo.
func NewMCPServerWith(t testing.TB, modern bool, add func(*sdk.Server)) *MCPServer {
	return (*Network)(nil).mcpServer(t, modern, add)
}

func (n *Network) mcpServer(t testing.TB, modern bool, add func(*sdk.Server)) *MCPServer {
	s := &MCPServer{Modern: modern, ended: make(chan struct{}), Started: make(chan struct{}, 100), Stopped: make(chan struct{}, 100)}
	server := sdk.NewServer(&sdk.Implementation{Name: "echo-tools", Title: "Echo Tools", Version: "1.2"}, &sdk.ServerOptions{
		Instructions: "Says things again.", PageSize: 10,
	})
	if add == nil {
		add = func(server *sdk.Server) {
			server.AddTool(&sdk.Tool{Name: "echo", Description: "Says it again.", InputSchema: json.RawMessage(EchoSchema)}, s.echo)
		}
	}
	add(server)
	s.door = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: modern, SessionTimeout: time.Minute,
	})
	s.Server = n.Serve(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.ended)
		for session := range server.Sessions() {
			session.Close()
		}
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// WithKey makes the server refuse requests without the header "Authorization: Bearer key". It must be
// called before the first request.
func (s *MCPServer) WithKey(key string) *MCPServer {
	s.key = key
	return s
}

// Endpoint returns the address of the server in a mode.
func (s *MCPServer) Endpoint(mode Mode) string { return s.URL + "/" + string(mode) }

// Calls returns the parameters of all tool calls so far.
func (s *MCPServer) Calls() []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]json.RawMessage(nil), s.calls...)
}

// Methods returns the methods of all messages so far, and the headers of each request. The method of a
// request that is no POST is its HTTP method.
func (s *MCPServer) Methods() ([]string, []http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.methods...), append([]http.Header(nil), s.headers...)
}

// Forget empties the lists that Calls and Methods return.
func (s *MCPServer) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.methods, s.headers = nil, nil, nil
}

func (s *MCPServer) echo(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var args struct{ Text string }
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: Echoed(args.Text)}}}, nil
}

func (s *MCPServer) serve(w http.ResponseWriter, r *http.Request) {
	mode, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	b, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		return
	}
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	json.Unmarshal(b, &msg)
	if r.Method != http.MethodPost {
		msg.Method = r.Method
	}
	s.mu.Lock()
	s.methods = append(s.methods, msg.Method)
	s.headers = append(s.headers, r.Header.Clone())
	if msg.Method == "tools/call" {
		s.calls = append(s.calls, msg.Params)
	}
	s.mu.Unlock()
	if s.key != "" && r.Header.Get("Authorization") != "Bearer "+s.key {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	if msg.Method == "tools/call" {
		if misbehave(Mode(mode), w, r) {
			return
		}
		switch Mode(mode) {
		case Wait:
			s.wait(w, r, msg.ID)
			return
		case Stall, Cut, Babble:
			s.halfway(Mode(mode), w, r)
			return
		}
	}
	if msg.Method == "notifications/cancelled" && Mode(mode) == Wait && !s.Modern {
		s.Stopped <- struct{}{}
	}
	s.door.ServeHTTP(w, r)
}

// wait answers a tool call with progress until the client cancels it: by closing the stream in version
// 2026-07-28, by a notification in the older version.
func (s *MCPServer) wait(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
	w.Header().Set("Content-Type", "text/event-stream")
	s.progress(w, 1)
	s.Started <- struct{}{}
	select {
	case <-r.Context().Done():
		if s.Modern {
			s.Stopped <- struct{}{}
		}
	case <-s.ended:
	}
}

func (s *MCPServer) progress(w http.ResponseWriter, n int) error {
	_, err := fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"call\",\"progress\":%d,\"message\":\"working on it\"}}\n\n", n)
	http.NewResponseController(w).Flush()
	return err
}

// halfway sends the valid beginning of an answer and then behaves like mode, without completing the
// answer.
func (s *MCPServer) halfway(mode Mode, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	s.progress(w, 1)
	switch mode {
	case Stall:
		select {
		case <-r.Context().Done():
		case <-s.ended:
		}
	case Cut:
		io.WriteString(w, `data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"te`)
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Babble:
		for n := 2; s.progress(w, n) == nil; n++ {
		}
	}
}
