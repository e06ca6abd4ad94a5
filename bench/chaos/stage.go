package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/linkwire"
)

// extTools is the URI of the A2A extension for the portal's tools.
const extTools = "https://agentsite.dev/ext/tools/v1"

// stage has what is outside of the portal in mode acts: a model that calls tools, an MCP server whose tool counts its
// calls, an A2A agent and a program that dials in. All live as long as the run.
type stage struct {
	*httptest.Server
	tools *mcp.Server

	mu     sync.Mutex // guards the fields below
	counts map[string]int
	base   string // the portal's address
	token  string // of the program that dials in
}

func newStage() *stage {
	s := &stage{counts: make(map[string]int)}
	s.tools = mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
	s.tools.AddTool(&mcp.Tool{Name: "count", Description: "Counts a key.", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}`)}, s.count)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
	})
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.tools },
		&mcp.StreamableHTTPOptions{Stateless: true}))
	mux.HandleFunc("GET /.well-known/agent-card.json", s.card)
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(s, a2asrv.WithLogger(slog.New(slog.DiscardHandler)))))
	s.Server = httptest.NewUnstartedServer(mux) // handlers read s.URL
	s.Start()
	return s
}

// work takes a moment, in which the portal may be killed.
func work(longest time.Duration) { time.Sleep(rand.N(longest)) }

// count is the tool of the MCP server. A call has taken effect when it begins.
func (s *stage) count(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct{ Key string }
	if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.counts[in.Key]++
	s.mu.Unlock()
	work(300 * time.Millisecond)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "counted " + in.Key}}}, nil
}

// repeated returns the keys that were counted more than once.
func (s *stage) repeated() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, n := range s.counts {
		if n > 1 {
			list = append(list, fmt.Sprintf("%s %d times", key, n))
		}
	}
	return list
}

// counted returns the number of calls of the tool.
func (s *stage) counted() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, calls := range s.counts {
		n += calls
	}
	return n
}

var keyForm = regexp.MustCompile(`key-[0-9a-z-]+`)

// complete is the model. The word count makes it call the tool count, the word ask the tool ask; the result of a tool
// is repeated, and so is any other text.
func (s *stage) complete(w http.ResponseWriter, r *http.Request) {
	type named struct {
		Function struct{ Name string }
	}
	var in struct {
		Messages []struct {
			Role    string
			Content any
		}
		Tools []named
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || len(in.Messages) == 0 {
		http.Error(w, `{"error":{"message":"no messages"}}`, http.StatusBadRequest)
		return
	}
	work(60 * time.Millisecond)
	last := in.Messages[len(in.Messages)-1]
	text := fmt.Sprint(last.Content)
	asked := text[max(strings.LastIndex(text, "please "), 0):] // earlier messages may stand before it
	message := map[string]any{"role": "assistant", "content": "It said: " + text}
	call := func(word, args string) {
		for _, t := range in.Tools {
			if strings.Contains(t.Function.Name, word) {
				message["content"] = nil
				message["tool_calls"] = []any{map[string]any{"id": "call_1", "type": "function",
					"function": map[string]any{"name": t.Function.Name, "arguments": args}}}
			}
		}
	}
	switch {
	case last.Role == "tool":
	case strings.HasPrefix(asked, "please count"):
		call("count", fmt.Sprintf(`{"key":%q}`, keyForm.FindString(asked)))
	case strings.HasPrefix(asked, "please ask"):
		call("ask", `{"agent":"calc","text":"20 + 22"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"object": "chat.completion", "choices": []any{map[string]any{
		"index": 0, "message": message, "finish_reason": "stop"}}})
}

func (s *stage) card(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"name": "Reacher", "description": "Asks others.", "version": "1",
		"capabilities": map[string]any{"streaming": true,
			"extensions": []any{map[string]any{"uri": extTools, "description": "Uses the portal's tools."}}},
		"defaultInputModes": []string{"text/plain"}, "defaultOutputModes": []string{"text/plain"},
		"skills": []any{map[string]any{"id": "reach", "name": "Reach", "description": "Asks.", "tags": []string{"t"}}},
		"supportedInterfaces": []any{map[string]any{"url": s.URL + "/rpc", "protocolBinding": "JSONRPC",
			"protocolVersion": "1.0"}}})
}

// Execute implements a2asrv.AgentExecutor: the agent asks calc with the tools of the message.
func (s *stage) Execute(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		if ec.StoredTask == nil && !yield(sdk.NewSubmittedTask(ec, ec.Message), nil) {
			return
		}
		if !yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateWorking, nil), nil) {
			return
		}
		var tools linkwire.Tools
		b, _ := json.Marshal(ec.Message.Metadata[extTools])
		json.Unmarshal(b, &tools)
		m := sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, sdk.NewTextPart(askCalc(ctx, &tools)))
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCompleted, m), nil)
	}
}

// Cancel implements a2asrv.AgentExecutor.
func (s *stage) Cancel(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCanceled, nil), nil)
	}
}

// askCalc asks calc with the portal's tools and returns the answer, or the reason why there is none.
func askCalc(ctx context.Context, tools *linkwire.Tools) string {
	if tools == nil || tools.URL == "" {
		return "No tools."
	}
	work(100 * time.Millisecond)
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c := mcp.NewClient(&mcp.Implementation{Name: "chaos", Version: "1"}, nil)
	session, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: tools.URL, MaxRetries: -1,
		HTTPClient: &http.Client{Transport: bearer(tools.Token)}}, nil)
	if err != nil {
		return "The call failed: " + err.Error()
	}
	defer session.Close()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "ask",
		Arguments: map[string]any{"agent": "calc", "text": "20 + 22"}})
	if err == nil && len(res.Content) == 1 {
		if text, ok := res.Content[0].(*mcp.TextContent); ok {
			return "It said: " + text.Text
		}
	}
	return "The call failed: " + errors.Join(err, errors.New("no text")).Error()
}

// bearer is a RoundTripper that sends a token.
type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// dialIn runs the program that dials in, until ctx ends. It finds the portal at the address of the last start.
func (s *stage) dialIn(ctx context.Context, name string, connected func()) error {
	a := &linkwire.Agent{Hello: linkwire.Hello{Name: name, Client: "chaos", Tools: []string{"ask"}, MaxTasks: 64},
		Dial: func(ctx context.Context) (*linkwire.Socket, error) {
			s.mu.Lock()
			base, token := s.base, s.token
			s.mu.Unlock()
			return linkwire.Dial(ctx, base, token, nil)
		},
		Work: func(ctx context.Context, t linkwire.Task, _ *linkwire.Answer) linkwire.Done {
			return linkwire.Done{State: linkwire.Completed, Text: askCalc(ctx, t.Tools)}
		},
		Connected: func(linkwire.Welcome) { connected() }}
	return a.Run(ctx)
}
