package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// A2AServer is an A2A agent built on the protocol's SDK, in one version and binding. The first segment
// of a request's path is its Mode; modes Stall, Cut and Babble begin with a valid answer of the protocol.
// Started and Stopped receive a value when a waiting task begins and when it is cancelled.
type A2AServer struct {
	*httptest.Server
	Version, Binding string
	Started, Stopped chan struct{}

	door  http.Handler
	ended chan struct{}

	mu       sync.Mutex // guards the fields below
	messages []*sdk.Message
	headers  []http.Header
}

// NewA2AServer starts an agent on loopback for version "1.0" or "0.3" and binding "JSONRPC" or
// "HTTP+JSON". It is closed when t ends.
func NewA2AServer(t testing.TB, version, binding string) *A2AServer {
	return (*Network)(nil).A2AServer(t, version, binding)
}

// A2AServer is NewA2AServer on the network n.
func (n *Network) A2AServer(t testing.TB, version, binding string) *A2AServer {
	return n.a2aServer(t, version, binding, func(h a2asrv.RequestHandler) http.Handler {
		switch {
		case version == "1.0" && binding == "JSONRPC":
			return a2asrv.NewJSONRPCHandler(h)
		case version == "1.0":
			return a2asrv.NewRESTHandler(h)
		}
		return old{h, binding}
	})
}

// NewA2AServerWith is NewA2AServer with an HTTP handler that door builds around the agent.
func NewA2AServerWith(t testing.TB, version, binding string, door func(a2asrv.RequestHandler) http.Handler) *A2AServer {
	return (*Network)(nil).a2aServer(t, version, binding, door)
}

func (n *Network) a2aServer(t testing.TB, version, binding string, door func(a2asrv.RequestHandler) http.Handler) *A2AServer {
	s := &A2AServer{Version: version, Binding: binding, ended: make(chan struct{}),
		Started: make(chan struct{}, 100), Stopped: make(chan struct{}, 100)}
	s.door = door(a2asrv.NewHandler(echoer{s}, a2asrv.WithLogger(slog.New(slog.DiscardHandler))))
	s.Server = n.Serve(http.HandlerFunc(s.serve))
	t.Cleanup(func() { close(s.ended); s.Close() })
	return s
}

// Endpoint returns the address of the agent in a mode.
func (s *A2AServer) Endpoint(mode Mode) string { return s.URL + "/" + string(mode) }

// Card returns the agent card for a mode, in the form of the server's version.
func (s *A2AServer) Card(mode Mode, streaming bool) map[string]any {
	card := map[string]any{
		"name": "Echo Agent", "description": "Says it again.", "version": "1",
		"capabilities":      map[string]any{"streaming": streaming},
		"defaultInputModes": []string{"text/plain"}, "defaultOutputModes": []string{"text/plain"},
		"skills": []any{map[string]any{"id": "echo", "name": "Echo", "description": "Repeats", "tags": []string{"test"}}},
	}
	if s.Version == "1.0" {
		card["supportedInterfaces"] = []any{map[string]any{"url": s.Endpoint(mode), "protocolBinding": s.Binding, "protocolVersion": "1.0"}}
		return card
	}
	card["url"], card["preferredTransport"], card["protocolVersion"] = s.Endpoint(mode), s.Binding, "0.3.0"
	return card
}

// Messages returns the messages that the agent received, and the headers of all requests.
func (s *A2AServer) Messages() ([]*sdk.Message, []http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*sdk.Message(nil), s.messages...), append([]http.Header(nil), s.headers...)
}

func (s *A2AServer) serve(w http.ResponseWriter, r *http.Request) {
	mode, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	s.headers = append(s.headers, r.Header.Clone())
	s.mu.Unlock()
	if strings.Contains(r.URL.Path, "/.well-known/agent-card.json") {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(s.Card(Mode(mode), true))
		return
	}
	if misbehave(Mode(mode), w, r) {
		return
	}
	switch Mode(mode) {
	case Stall, Cut, Babble:
		s.halfway(Mode(mode), w, r)
		return
	}
	http.StripPrefix("/"+mode, s.door).ServeHTTP(w, r)
}

// halfway sends the valid beginning of an answer and then behaves like mode, without completing the
// answer.
func (s *A2AServer) halfway(mode Mode, w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(kind string, body map[string]any) error {
		body["taskId"], body["contextId"] = "t-1", "c-1"
		_, err := fmt.Fprintf(w, "data: %s\n\n", s.Event(kind, body))
		http.NewResponseController(w).Flush()
		return err
	}
	say("task", map[string]any{"id": "t-1", "status": map[string]any{"state": s.State("working")}})
	piece := func(text string) map[string]any {
		return map[string]any{"append": true, "artifact": map[string]any{"artifactId": "a-1", "parts": []any{s.Text(text)}}}
	}
	switch mode {
	case Stall:
		say("artifactUpdate", piece("well"))
		<-r.Context().Done()
	case Cut:
		say("artifactUpdate", piece("half an ans"))
		panic(http.ErrAbortHandler)
	case Babble:
		for say("artifactUpdate", piece(strings.Repeat("blah ", 200))) == nil {
		}
	}
}

// Event encodes an event in the form of the server's version and binding. kind is task, message,
// statusUpdate or artifactUpdate. It may change body.
func (s *A2AServer) Event(kind string, body map[string]any) []byte {
	var v any = map[string]any{kind: body}
	if s.Version == "0.3" && s.Binding == "JSONRPC" {
		body["kind"] = map[string]string{"task": "task", "message": "message", "statusUpdate": "status-update", "artifactUpdate": "artifact-update"}[kind]
		v = body
	}
	if s.Binding == "JSONRPC" {
		v = map[string]any{"jsonrpc": "2.0", "id": "1", "result": v}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// State returns a task state in the spelling of the server's version and binding. in is lower case with
// underscores.
func (s *A2AServer) State(in string) string {
	if s.Version == "0.3" && s.Binding == "JSONRPC" {
		return strings.ReplaceAll(in, "_", "-")
	}
	return "TASK_STATE_" + strings.ToUpper(in)
}

// Text returns a text part in the form of the server's version and binding.
func (s *A2AServer) Text(text string) map[string]any {
	p := map[string]any{"text": text}
	if s.Version == "0.3" && s.Binding == "JSONRPC" {
		p["kind"] = "text"
	}
	return p
}

// echoer is the agent: it repeats the text, asks for input at "ask", answers without a task at "message
// only", rejects "refuse", and at "wait" works until it is cancelled.
type echoer struct{ s *A2AServer }

// Execute implements a2asrv.AgentExecutor.
func (e echoer) Execute(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		e.s.mu.Lock()
		e.s.messages = append(e.s.messages, ec.Message)
		e.s.mu.Unlock()
		var text string
		for _, p := range ec.Message.Parts {
			text += p.Text()
		}
		if text == "message only" {
			m := sdk.NewMessage(sdk.MessageRoleAgent, sdk.NewTextPart(Echoed(text)))
			m.ContextID = ec.ContextID
			yield(m, nil)
			return
		}
		if ec.StoredTask == nil && !yield(sdk.NewSubmittedTask(ec, ec.Message), nil) {
			return
		}
		working := sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, sdk.NewTextPart("thinking"))
		if !yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateWorking, working), nil) {
			return
		}
		switch strings.ToLower(text) {
		case "ask":
			q := sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, sdk.NewTextPart("Which one?"))
			yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateInputRequired, q), nil)
			return
		case "wait", "never mind":
			e.s.Started <- struct{}{}
			select {
			case <-ctx.Done():
			case <-e.s.ended:
			}
			return
		case "refuse":
			no := sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, sdk.NewTextPart("not my job"))
			yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateRejected, no), nil)
			return
		}
		var id sdk.ArtifactID
		for _, word := range strings.SplitAfter(Echoed(text), " ") {
			ev := sdk.NewArtifactUpdateEvent(ec, id, sdk.NewTextPart(word))
			if id == "" {
				ev = sdk.NewArtifactEvent(ec, sdk.NewTextPart(word))
				id = ev.Artifact.ID
			}
			if !yield(ev, nil) {
				return
			}
		}
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCompleted, nil), nil)
	}
}

// Cancel implements a2asrv.AgentExecutor.
func (e echoer) Cancel(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		e.s.Stopped <- struct{}{}
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCanceled, nil), nil)
	}
}
