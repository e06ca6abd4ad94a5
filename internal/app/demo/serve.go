package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/ident"
)

const (
	// maxRequest bounds a request to an agent, in bytes.
	maxRequest = 1 << 20
	// maxInput bounds the text that an agent works on, in bytes.
	maxInput = 64 << 10
	// wordPause is the pause between the pieces of a streamed answer, so that they appear at
	// reading speed.
	wordPause = 25 * time.Millisecond
	// longestStream is the time after which the rest of an answer is sent without pauses.
	longestStream = 1500 * time.Millisecond
)

// workshop is the HTTP server of the agents and MCP servers of one portal, outside of the portal.
type workshop struct {
	url    string
	server *http.Server
	ended  chan struct{}
}

// openWorkshop starts the server on a free loopback port. The caller must call close.
func openWorkshop(ctx context.Context, list []agent, benches []server) (*workshop, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	w := &workshop{url: "http://" + l.Addr().String(), ended: make(chan struct{})}
	for _, a := range list {
		mux.Handle("POST /"+a.Name, a2aDoor{a})
		mux.HandleFunc("GET /"+a.Name+"/.well-known/agent-card.json",
			func(rw http.ResponseWriter, _ *http.Request) { sendJSON(rw, agentCard(a, w.url+"/"+a.Name)) })
	}
	for _, s := range benches {
		mux.Handle("/"+s.Name, mcpDoor(s))
	}
	// The contexts of requests end at shutdown, so that streamed answers do not delay it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	w.server.RegisterOnShutdown(cancel)
	go func() {
		defer close(w.ended)
		defer cancel()
		_ = w.server.Serve(l)
	}()
	return w, nil
}

// close stops the server, for at most 2 s with running requests, and waits for its goroutine.
func (w *workshop) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if w.server.Shutdown(ctx) != nil {
		w.server.Close()
	}
	<-w.ended
}

func sendJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

type object = map[string]any

// agentCard returns the A2A card of an agent (A2A 1.0 §4.4.1).
func agentCard(a agent, url string) object {
	return object{"name": a.Title, "description": a.About, "version": "1",
		"supportedInterfaces": []any{object{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}},
		"capabilities":        object{"streaming": true}, "defaultInputModes": []string{"text/plain"},
		"defaultOutputModes": []string{"text/plain"},
		"skills":             listSkills(a)}
}

// a2aDoor is the A2A 1.0 endpoint of an agent, over JSON-RPC. Each request is answered completely,
// so no task is kept and requests for a task fail.
type a2aDoor struct{ agent }

// Codes of errors (A2A 1.0 §9.5) and states of tasks.
const (
	codeParse    = -32700
	codeMethod   = -32601
	codeParams   = -32602
	codeNoTask   = -32001
	stateDone    = "TASK_STATE_COMPLETED"
	stateWorking = "TASK_STATE_WORKING"
)

// ServeHTTP implements http.Handler. It answers one JSON-RPC request, streamed for
// SendStreamingMessage.
func (d a2aDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Message struct {
				ContextID string `json:"contextId"`
				Parts     []struct {
					Text string `json:"text"`
				} `json:"parts"`
			} `json:"message"`
		} `json:"params"`
	}
	fail := func(code int, message string) {
		sendJSON(w, object{"jsonrpc": "2.0", "id": req.ID, "error": object{"code": code, "message": message}})
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
		fail(codeParse, "The request is not JSON.")
		return
	}
	switch req.Method {
	case "SendMessage", "SendStreamingMessage":
	case "GetTask", "CancelTask", "SubscribeToTask":
		fail(codeNoTask, "There is no such task: this agent answers at once.")
		return
	default:
		fail(codeMethod, "This agent does not know that method.")
		return
	}
	var said []string
	for _, p := range req.Params.Message.Parts {
		if p.Text != "" {
			said = append(said, p.Text)
		}
	}
	text := strings.Join(said, "\n")
	if text == "" {
		fail(codeParams, "Send a text.")
		return
	}
	answer := runWork(d.do, text)
	room := req.Params.Message.ContextID
	if room == "" {
		room = ident.NewID()
	}
	reply := func(v any) object { return object{"jsonrpc": "2.0", "id": req.ID, "result": v} }
	parts := func(s string) []any { return []any{object{"text": s}} }
	if req.Method == "SendMessage" {
		sendJSON(w, reply(object{"message": object{"messageId": ident.NewID(), "contextId": room, "role": "ROLE_AGENT",
			"parts": parts(answer)}}))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	task, artifact := ident.NewID(), ident.NewID()
	say := func(v any) bool {
		b, err := json.Marshal(reply(v))
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", b)
		}
		return err == nil && out.Flush() == nil
	}
	if !say(object{"task": object{"id": task, "contextId": room, "status": object{"state": stateWorking}}}) {
		return
	}
	began := time.Now()
	for i, piece := range splitAnswer(answer) {
		if i > 0 && time.Since(began) < longestStream && pauseFor(r.Context(), wordPause) != nil {
			return
		}
		if !say(object{"artifactUpdate": object{"taskId": task, "contextId": room, "append": i > 0,
			"artifact": object{"artifactId": artifact, "parts": parts(piece)}}}) {
			return
		}
	}
	say(object{"statusUpdate": object{"taskId": task, "contextId": room, "status": object{"state": stateDone}}})
}

// runWork returns the answer to a text. An error of do is returned as the answer.
func runWork(do work, in string) string {
	if len(in) > maxInput {
		return "That is too long for me: send at most 64 KiB."
	}
	out, err := do(in)
	if err != nil {
		return err.Error()
	}
	return out
}

// splitAnswer cuts an answer into pieces of at most three words for streaming. The pieces joined
// are the answer.
func splitAnswer(s string) []string {
	var out []string
	for s != "" {
		n := 0
		for range 3 {
			i := strings.IndexAny(s[n:], " \n")
			if i < 0 {
				n = len(s)
				break
			}
			n += i + 1
		}
		out, s = append(out, s[:n]), s[n:]
	}
	return out
}

func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mcpDoor returns the MCP endpoint of a server with its tools, without sessions.
func mcpDoor(s server) http.Handler {
	m := sdk.NewServer(&sdk.Implementation{Name: s.Name, Title: s.Title, Version: "1"},
		&sdk.ServerOptions{Instructions: s.About})
	for _, t := range s.Tools {
		m.AddTool(&sdk.Tool{Name: t.Name, Description: t.About,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true},
			InputSchema: object{"type": "object", "required": []string{t.Takes},
				"properties": object{t.Takes: object{"type": "string", "description": "for example " + t.Example}}}},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				var args map[string]string
				if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
					return nil, errors.New("the arguments are not texts")
				}
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: runWork(t.do,
					args[t.Takes])}}}, nil
			})
	}
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = struct {
			io.Reader
			io.Closer
		}{http.MaxBytesReader(w, r.Body, maxRequest), r.Body}
		h.ServeHTTP(w, r)
	})
}
