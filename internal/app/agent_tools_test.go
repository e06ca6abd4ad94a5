package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/app"
	"agentsite/internal/ident"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

const extTools = "https://agentsite.dev/ext/tools/v1"

// elsewhere is an A2A agent on another machine, with the SDK of the protocol. It asks one agent with the tools that
// come with its messages, through the SDK of MCP, and repeats the answer.
type elsewhere struct {
	*httptest.Server
	asks     string // handle of the agent that it asks
	question string
	// idle makes it call no tool before the test has read the token from got; then it waits for its end.
	idle  bool
	ended chan struct{} // closed when the test ends

	mu   sync.Mutex // guards the fields below
	seen []string   // texts that it got
	got  chan handedOver
	last handedOver
}

// handedOver is the metadata of a message under the URI of the extension.
type handedOver struct{ URL, Token string }

func newElsewhere(t *testing.T, asks string) *elsewhere {
	t.Helper()
	e := &elsewhere{asks: asks, question: "6*7", got: make(chan handedOver, 10), ended: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{
			"name": "Reacher", "description": "Asks others.", "version": "1",
			"capabilities": map[string]any{"streaming": true,
				"extensions": []any{map[string]any{"uri": extTools, "description": "Uses the portal's tools."}}},
			"defaultInputModes": []string{"text/plain"}, "defaultOutputModes": []string{"text/plain"},
			"skills":              []any{map[string]any{"id": "reach", "name": "Reach", "description": "Asks.", "tags": []string{"t"}}},
			"supportedInterfaces": []any{map[string]any{"url": e.URL + "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}},
		})
	})
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(e, a2asrv.WithLogger(slog.New(slog.DiscardHandler)))))
	e.Server = httptest.NewUnstartedServer(mux) // handlers read e.URL
	e.Start()
	t.Cleanup(func() { close(e.ended); e.CloseClientConnections(); e.Close() })
	return e
}

// Execute implements a2asrv.AgentExecutor.
func (e *elsewhere) Execute(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		if ec.StoredTask == nil && !yield(sdk.NewSubmittedTask(ec, ec.Message), nil) {
			return
		}
		if !yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateWorking, nil), nil) {
			return
		}
		var h handedOver
		b, _ := json.Marshal(ec.Message.Metadata[extTools])
		json.Unmarshal(b, &h)
		text := ""
		for _, p := range ec.Message.Parts {
			text += p.Text()
		}
		e.mu.Lock()
		e.seen, e.last = append(e.seen, text), h
		e.mu.Unlock()
		e.got <- h
		state, said := sdk.TaskStateCompleted, ""
		switch {
		case e.idle:
			select {
			case <-ctx.Done():
			case <-e.ended:
			}
			return
		case h.Token == "":
			said = "No tools."
		default:
			answer, err := useTool(ctx, h, "ask", map[string]any{"agent": e.asks, "text": e.question})
			switch {
			case err != nil:
				said = "The call failed: " + err.Error()
			case strings.HasPrefix(answer, "Not called yet"), strings.HasPrefix(answer, "Not answered yet"):
				state, said = sdk.TaskStateInputRequired, "Please wait, my token is "+h.Token
			default:
				said = "It said: " + answer + " by " + h.Token
			}
		}
		m := sdk.NewMessageForTask(sdk.MessageRoleAgent, ec, sdk.NewTextPart(said))
		yield(sdk.NewStatusUpdateEvent(ec, state, m), nil)
	}
}

// Cancel implements a2asrv.AgentExecutor.
func (e *elsewhere) Cancel(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		yield(sdk.NewStatusUpdateEvent(ec, sdk.TaskStateCanceled, nil), nil)
	}
}

// texts returns the texts of the messages that the agent got.
func (e *elsewhere) texts() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.seen...)
}

// handed is a RoundTripper that sends a token.
type handed string

func (h handed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(h))
	return http.DefaultTransport.RoundTrip(r)
}

// useTool calls a tool of an MCP server with the SDK.
func useTool(ctx context.Context, h handedOver, name string, args map[string]any) (string, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "reacher", Version: "1"}, nil)
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: h.URL, HTTPClient: &http.Client{Transport: handed(h.Token)},
		MaxRetries: -1}, nil)
	if err != nil {
		return "", err
	}
	defer s.Close()
	if _, err := s.ListTools(ctx, nil); err != nil {
		return "", err
	}
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return "", err
	}
	text, ok := res.Content[0].(*mcp.TextContent)
	if !ok {
		return "", errors.New("no text")
	}
	return text.Text, nil
}

// reacher registers the agent from its card, with the tools find and ask.
func (e *elsewhere) reacher(owner *apptest.Client) string {
	name := apptest.Fresh("reacher")
	owner.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Asks others.", "kind": "a2a",
		"visibility": "public", "endpoint": e.URL + "/.well-known/agent-card.json", "config": map[string]any{"tools": []string{"find", "ask"}}}, http.StatusCreated)
	return name
}

// An agent on another machine asks another agent by the tools that come with its task: the person is asked by the
// portal, a yes holds for the call, an always for all, a never for none. The token is in no text and no trace, and ends
// with the task.
func TestElsewhere_AsksWithPermission(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	e := newElsewhere(t, "calc")
	talk := ada.Conversation(e.reacher(ada))
	person := actor{ada, t, talk, ada.Socket(talk)}
	got := person.say("what is 6 times 7?")
	if !strings.Contains(got, "May I ask `calc` with this?") || !strings.Contains(got, "6*7") || !strings.Contains(got, "“always here”") && !strings.Contains(got, "“Always here”") || strings.Contains(got, "Please wait") {
		t.Fatalf("the question: %q", got)
	}
	first := e.last
	if got := person.say("yes"); !strings.Contains(got, "It said: **42** by [") || strings.Contains(got, "agtools_") {
		t.Fatalf("after a yes: %q", got)
	}
	if got := e.texts(); len(got) != 2 || !strings.HasPrefix(got[1], "The person agrees.") {
		t.Errorf("the agent got %q", got)
	}
	person.stream.Heard("Asked calc: “6*7”")
	if got := person.say("again"); !strings.Contains(got, "May I ask `calc`") {
		t.Fatalf("a yes holds for one call, but: %q", got)
	}
	if got := person.say("always"); !strings.Contains(got, "It said: **42**") {
		t.Fatalf("after an always: %q", got)
	}
	if got := person.say("once more"); !strings.Contains(got, "It said: **42**") {
		t.Fatalf("it asked again: %q", got)
	}
	for _, h := range []handedOver{first, e.last} {
		if text, err := useTool(t.Context(), h, "find", map[string]any{"query": "sums"}); err == nil {
			t.Errorf("the token outlived its task: %q", text)
		}
		token := strings.TrimPrefix(h.Token, "agtools_")
		for _, path := range []string{"/api/v1/conversations/" + talk + "/messages", "/api/v1/tasks"} {
			if body := ada.NewToken().Must(http.MethodGet, path, nil, http.StatusOK).Body; strings.Contains(body, token) {
				t.Errorf("%s has the token", path)
			}
		}
	}
	e.asks = "guide"
	if got := person.say("ask another"); !strings.Contains(got, "May I ask `guide`") {
		t.Fatalf("another agent: %q", got)
	}
	if got := person.say("never"); !strings.Contains(got, "It said: Not called: the person does not allow this.") {
		t.Fatalf("after a never: %q", got)
	}
}

// The tokens of tasks count for the agent of the task only, while it runs, and at the endpoint for tools only.
func TestElsewhere_TokensAreForOneRunningTask(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	e := newElsewhere(t, "calc")
	e.idle = true
	name := e.reacher(ada)
	talk := ada.Conversation(name)
	id := ada.Say(talk, "go").Tasks[0].ID
	h := <-e.got
	if text, err := useTool(t.Context(), h, "find", map[string]any{"query": "sums"}); err != nil || !strings.Contains(text, `"agent":"calc"`) {
		t.Fatalf("find: %q %v", text, err)
	}
	second := ada.Conversation(e.reacher(ada))
	ada.Say(second, "go")
	other := <-e.got
	parts, others := strings.Split(h.Token, "."), strings.Split(other.Token, ".")
	for which, token := range map[string]string{
		"none": "", "nonsense": "agtools_x", "another mark": parts[0] + "." + parts[1] + "." + others[2],
		"another task": others[0] + "." + parts[1] + "." + parts[2], "a later end": parts[0] + ".zzzzzzz." + parts[2],
		"an API token": ada.NewToken().Token, "cut": h.Token[:len(h.Token)-1],
	} {
		if text, err := useTool(t.Context(), handedOver{h.URL, token}, "find", map[string]any{"query": "sums"}); err == nil {
			t.Errorf("%s: %q", which, text)
		}
	}
	for _, path := range []string{"/api/v1/me", "/api/v1/tasks", "/api/v1/conversations"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+path, nil)
		req.Header.Set("Authorization", "Bearer "+h.Token)
		res, err := p.Visitor(t).HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: HTTP %d", path, res.StatusCode)
		}
	}
	// Of two tasks of one agent, each has its own.
	if h.Token == other.Token {
		t.Error("one token for two tasks")
	}
	if text, err := useTool(t.Context(), h, "ask", map[string]any{"agent": "calc", "text": "say " + h.Token}); err != nil || !strings.Contains(text, "must not be passed on") {
		t.Errorf("the token in a question: %q %v", text, err)
	}
	if text, err := useTool(t.Context(), h, "ask", map[string]any{"agent": "nobody-there", "text": "hello"}); err != nil || !strings.Contains(text, "There is no agent") {
		t.Errorf("an agent that does not exist: %q %v", text, err)
	}
	stream := ada.Socket(talk)
	ada.Must(http.MethodPost, "/api/v1/conversations/"+talk+"/stop", nil, http.StatusOK)
	stream.Wait("the end of the task", func(e apptest.Event) bool { return e.Task.ID == id && e.Task.State == "canceled" })
	if text, err := useTool(t.Context(), h, "find", map[string]any{"query": "sums"}); err == nil {
		t.Errorf("after the stop: %q", text)
	}
	// The owner's record of the call has the messages, without the token.
	traces := ada.NewToken().Must(http.MethodGet, "/api/v1/agents/"+name+"/calls/"+id, nil, http.StatusOK).Body
	if strings.Contains(traces, parts[2]) || !strings.Contains(traces, "[removed]") || !strings.Contains(traces, extTools) {
		t.Errorf("the traces: %s", traces)
	}
}

// A stop of the person ends a question that is under way, and the agent that was asked.
func TestElsewhere_AStopEndsCallsUnderWay(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	slow := agenttest.NewOpenAIServer(t)
	far := apptest.Fresh("slow")
	token := ada.NewToken()
	token.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": far, "description": "Slow.", "kind": "openai", "visibility": "public",
		"endpoint": slow.Base(agenttest.Wait), "config": map[string]any{"model": "echo-1"}}, http.StatusCreated)
	e := newElsewhere(t, far)
	name := e.reacher(ada)
	token.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": name, "tool": "ask", "scope": "public", "decision": "allow"}, http.StatusOK)
	talk := ada.Conversation(name)
	ada.Say(talk, "ask it")
	<-slow.Started
	ada.Must(http.MethodPost, "/api/v1/conversations/"+talk+"/stop", nil, http.StatusOK)
	<-slow.Stopped
}

// A visitor's agent asks each time, and a permission of a visitor lasts for one call.
func TestElsewhere_VisitorsKeepNoPermission(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	e := newElsewhere(t, "calc")
	name := e.reacher(p.User(t, "ada"))
	guest := p.Visitor(t)
	talk := guest.Conversation(name)
	person := actor{guest, t, talk, guest.Socket(talk)}
	if got := person.say("what is 6 times 7?"); !strings.Contains(got, "May I ask `calc`") || strings.Contains(got, "lways here") {
		t.Fatalf("the question: %q", got)
	}
	if got := person.say("always"); strings.Contains(got, "42") {
		t.Fatalf("after an always: %q", got)
	}
	if got := person.say("6 times 7?"); !strings.Contains(got, "May I ask `calc`") {
		t.Fatalf("the question: %q", got)
	}
	if got := person.say("yes"); !strings.Contains(got, "It said: **42**") {
		t.Fatalf("after a yes: %q", got)
	}
}

// A person of one portal talks to an agent that a second one lists and that runs elsewhere, which asks an agent of a
// third one.
func TestElsewhere_OverThreePortals(t *testing.T) {
	t.Parallel()
	p := meet(t)
	c := apptest.Start(t, func(cfg *app.Config) { app.Found(cfg, &yellow{}) })
	if err := p.b.Greet(t.Context(), c.URL()); err != nil {
		t.Fatal(err)
	}
	cy := c.User(t, "cy")
	cy.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "far-parrot", "description": "Repeats.", "kind": "a2a", "endpoint": p.agents.Endpoint(agenttest.Echo),
		"visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	p.back.put(c.NetworkID(), c.Host, "far-parrot")
	e := newElsewhere(t, "far-parrot@"+c.Host)
	e.question = "hello"
	name := e.reacher(p.bob)
	p.known.put(p.bID, p.b.Host, name)
	talk := p.ada.Conversation(name + "@" + p.b.Host)
	ada := actor{p.ada, t, talk, p.ada.Socket(talk)}
	if got := ada.say("ask the parrot"); !strings.Contains(got, "May I ask `far-parrot@"+c.Host+"`") || strings.Contains(got, "“always”") {
		t.Fatalf("before it asks: %q", got)
	}
	if got := ada.say("always here"); !strings.Contains(got, "It said: "+agenttest.Echoed("hello")) || strings.Contains(got, "agtools_") {
		t.Fatalf("after a yes: %q", got)
	}
	if got := ada.say("ask the parrot again"); !strings.Contains(got, agenttest.Echoed("hello")) {
		t.Fatalf("it asked again: %q", got)
	}
}
