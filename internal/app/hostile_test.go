package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// hostile answers each call in a way its path names, repeating the key it was
// given, as some providers do. It records what it was sent.
type hostile struct {
	*httptest.Server
	mu   sync.Mutex // guards seen
	seen []http.Header
}

func newHostile(t *testing.T, elsewhere string) *hostile {
	h := new(hostile)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.seen = append(h.seen, r.Header.Clone())
		h.mu.Unlock()
		io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20))
		if strings.HasSuffix(r.URL.Path, "/models") {
			io.WriteString(w, `{"object":"list","data":[{"id":"echo-1"}]}`)
			return
		}
		said := "You sent " + r.Header.Get("Authorization")
		mode := strings.Split(r.URL.Path, "/")[1]
		fail := func(code int) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(code)
			json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": said, "type": "x"}, "message": said, "detail": said})
		}
		event := func(v string) { fmt.Fprintf(w, "data: %s\n\n", v); http.NewResponseController(w).Flush() }
		switch mode {
		case "401":
			fail(401)
		case "400":
			fail(400)
		case "429":
			fail(429)
		case "500":
			fail(500)
		case "redirect":
			w.Header().Set("Location", elsewhere)
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "error-inside":
			w.Header().Set("Content-Type", "text/event-stream")
			event(`{"choices":[{"index":0,"delta":{"content":"Half "}}]}`)
			b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": said}})
			event(string(b))
		case "error-200":
			w.Header().Set("Content-Type", "application/json")
			b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "1", "error": map[string]any{"code": -32000, "message": said}})
			w.Write(b)
		case "twice":
			w.Header().Set("Content-Type", "text/event-stream")
			for range 2 {
				event(`{"choices":[{"index":0,"delta":{"content":"Once."},"finish_reason":"stop"}]}`)
				event(`[DONE]`)
			}
		case "twice-a2a":
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 2 {
				event(fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","result":{"message":{"messageId":"m%d","role":"ROLE_AGENT","parts":[{"text":"Once."}]}}}`, i))
			}
		case "wrong-type":
			w.Header().Set("Content-Type", "image/png")
			w.Write([]byte("\x89PNG\r\n\x1a\n"))
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func TestHostileEndpoints_HurtOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	elsewhere := newTrap(t, "")
	far := agenttest.NewOpenAIServer(t)
	farA := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	bad := newHostile(t, "http://127.0.0.1:"+elsewhere.port+"/v1/chat/completions")
	var exports sync.Mutex
	p := apptest.Start(t)
	olga := p.User(t, "olga")
	caller := olga.NewToken()
	key := p.Canary("sk-canary-5ec2e7-key-of-an-agent")
	p.Canary(caller.Token)
	register := func(kind, endpoint string) string {
		name := apptest.Fresh("bad")
		config := map[string]any{"model": "echo-1", "key": key}
		if kind == "a2a" {
			config = map[string]any{"streaming": true, "binding": "JSONRPC", "version": "1.0", "token": key}
		}
		caller.Must(http.MethodPost, "/api/v1/agents", map[string]any{
			"name":        name,
			"description": "Bad.",
			"kind":        kind,
			"endpoint":    endpoint,
			"visibility":  "public",
			"config":      config,
		}, http.StatusCreated)
		return name
	}

	// Another user works on beside them.
	otto := p.User(t, "otto")
	room := otto.Conversation("calc")
	stream := otto.Socket(room)
	ask := func() { stream.Answered(otto.Say(room, "2+2").Tasks[0].ID) }
	var neighbour sync.WaitGroup
	neighbour.Go(func() {
		for range 20 {
			ask()
		}
	})

	type trial struct {
		name, kind, endpoint string
		state                string
	}
	trials := []trial{}
	for _, m := range []agenttest.Mode{agenttest.Babble, agenttest.Oversize, agenttest.Garbage, agenttest.Page, agenttest.Cut} {
		trials = append(trials, trial{"openai " + string(m), "openai", far.Base(m), "failed"}, trial{"a2a " + string(m), "a2a", farA.Endpoint(m), "failed"})
	}
	for _, m := range []string{"400", "401", "429", "500", "redirect", "error-inside", "error-200", "wrong-type"} {
		state := "failed"
		if m == "429" { // a busy agent, which may answer later
			state = "rejected"
		}
		trials = append(trials, trial{"openai " + m, "openai", bad.URL + "/" + m + "/v1", state}, trial{"a2a " + m, "a2a", bad.URL + "/" + m, state})
	}
	trials = append(trials, trial{"openai twice", "openai", bad.URL + "/twice/v1", "completed"}, trial{"a2a twice", "a2a", bad.URL + "/twice-a2a", "completed"})
	t.Run("each", func(t *testing.T) {
		for _, c := range trials {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				name := register(c.kind, c.endpoint)
				me := caller.With(t)
				room := me.Conversation(name)
				s := me.Events(room)
				id := me.Say(room, "Hello").Tasks[0].ID
				end := s.Answered(id)
				if end.Task.State != c.state {
					t.Errorf("ended %s: %.300s", end.Task.State, end.Raw)
				}
				if c.state == "failed" && strings.Count(end.Task.Reason, " ") < 3 {
					t.Errorf("no readable reason: %q", end.Task.Reason)
				}
				t.Logf("%s: %s", end.Task.State, end.Task.Reason)
				var out struct {
					Messages []struct {
						Sender struct{ Kind string }
						Task   struct{ ID string }
					}
				}
				me.Get(http.MethodGet, "/api/v1/conversations/"+room+"/messages", nil, http.StatusOK, &out)
				n := 0
				for _, m := range out.Messages {
					if m.Sender.Kind == "agent" {
						n++
					}
				}
				if n != 1 {
					t.Errorf("%d messages of the agent", n)
				}
				for _, path := range []string{"/api/v1/tasks/" + id, "/api/v1/agents/" + name, "/api/v1/agents/" + name + "/versions", "/api/v1/search?q=" + name} {
					me.Must(http.MethodGet, path, nil, http.StatusOK)
				}
				exports.Lock() // an account may have a few at once
				me.Must(http.MethodGet, "/api/v1/conversations/"+room+"/export", nil, http.StatusOK)
				exports.Unlock()
				for _, path := range []string{"/chat/" + room, "/agents/" + name, "/agents/" + name + "/edit", "/account"} {
					olga.With(t).Must(http.MethodGet, path, nil, http.StatusOK)
				}
			})
		}
	})
	neighbour.Wait()

	// Five agents hang at once. The neighbour is answered meanwhile, and each of
	// the five ends only when it is stopped.
	type hanging struct {
		trial
		room, task string
		stream     *apptest.Stream
	}
	var all []*hanging
	for _, c := range []trial{
		{"openai hang", "openai", far.Base(agenttest.Hang), ""},
		{"openai stall", "openai", far.Base(agenttest.Stall), ""},
		{"openai wait", "openai", far.Base(agenttest.Wait), ""},
		{"a2a hang", "a2a", farA.Endpoint(agenttest.Hang), ""},
		{"a2a stall", "a2a", farA.Endpoint(agenttest.Stall), ""},
	} {
		h := &hanging{trial: c, room: caller.Conversation(register(c.kind, c.endpoint))}
		h.stream = caller.Events(h.room)
		h.task = caller.Say(h.room, "Hello").Tasks[0].ID
		all = append(all, h)
	}
	for _, h := range all {
		h.stream.Wait("work", func(e apptest.Event) bool { return e.Type == "task" && e.Task.ID == h.task })
		if !strings.HasSuffix(h.name, "hang") {
			h.stream.Wait("text", func(e apptest.Event) bool { return e.Type == "delta" })
		}
	}
	for range 5 {
		ask()
	}
	for _, h := range all {
		if slices.ContainsFunc(h.stream.All(), func(e apptest.Event) bool { return e.Sender.Kind == "agent" }) {
			t.Errorf("%s: ended before it was stopped", h.name)
		}
		caller.Must(http.MethodPost, "/api/v1/conversations/"+h.room+"/stop", nil, http.StatusOK)
		end := h.stream.Answered(h.task)
		if end.Task.State != "canceled" {
			t.Errorf("%s: ended %s", h.name, end.Task.State)
		}
		if strings.HasSuffix(h.name, "stall") && end.Plain() != "well" {
			t.Errorf("%s: the text before the stop is lost: %q", h.name, end.Plain())
		}
	}
	if n := elsewhere.hits.Load(); n != 0 {
		t.Errorf("%d requests where a redirect pointed", n)
	}
	_, h1 := far.Requests()
	_, h2 := farA.Messages()
	bad.mu.Lock()
	defer bad.mu.Unlock()
	requests := slices.Concat(h1, h2, bad.seen)
	for _, h := range requests {
		for name, values := range h {
			for _, v := range values {
				if strings.Contains(v, caller.Token) || strings.Contains(v, "agss_") || name == "Cookie" || strings.Contains(v, "olga") {
					t.Errorf("%s: %s was passed on to an endpoint", name, v)
				}
			}
		}
	}
	if len(requests) < 20 {
		t.Errorf("the endpoints saw only %d requests", len(requests))
	}
}

// Deleting a room while its agent speaks leaves nothing behind, and the
// portal's stop does not wait for endpoints.
func TestRoom_DeletedWhileAnswering(t *testing.T) {
	t.Parallel()
	far := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t, func(*app.Config) {})
	c := p.User(t, "olga")
	name := c.Agent("public", far.Base(agenttest.Wait))
	room := c.Conversation(name)
	s := c.Events(room)
	c.Say(room, "Hello")
	<-far.Started
	c.Must(http.MethodDelete, "/api/v1/conversations/"+room, nil, http.StatusNoContent)
	<-s.Ended
	select {
	case <-far.Stopped:
	case <-time.After(apptest.WaitTime):
		t.Error("the endpoint was not told to stop")
	}
	var out struct{ Tasks []any }
	c.Get(http.MethodGet, "/api/v1/tasks", nil, http.StatusOK, &out)
	if len(out.Tasks) != 0 {
		t.Errorf("tasks of a conversation that is gone: %v", out.Tasks)
	}
}
