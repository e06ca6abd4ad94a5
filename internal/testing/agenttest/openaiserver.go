package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/openai"
)

// OpenAIServer is a scripted server of the OpenAI API. The first segment of a request's path is its
// Mode; for example, the base URL of mode Echo is URL + "/echo/v1". Started and Stopped receive a value
// when a request in mode Wait begins and when it is cancelled.
type OpenAIServer struct {
	*httptest.Server
	Started, Stopped chan struct{}

	mu       sync.Mutex // guards the fields below
	requests []openai.ChatRequest
	headers  []http.Header
	lists    int
	script   func(int, openai.ChatRequest) Turn
	played   int
}

// NewOpenAIServer starts the server on loopback. It is closed when t ends.
func NewOpenAIServer(t testing.TB) *OpenAIServer { return (*Network)(nil).OpenAIServer(t) }

// OpenAIServer starts the server on the network n. It is closed when t ends.
func (n *Network) OpenAIServer(t testing.TB) *OpenAIServer {
	s := &OpenAIServer{Started: make(chan struct{}, 100), Stopped: make(chan struct{}, 100)}
	s.Server = n.Serve(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// Base returns the base URL of the API in a mode.
func (s *OpenAIServer) Base(mode Mode) string { return s.URL + "/" + string(mode) + "/v1" }

// Requests returns the chat requests so far, with the headers of each.
func (s *OpenAIServer) Requests() ([]openai.ChatRequest, []http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]openai.ChatRequest(nil), s.requests...), append([]http.Header(nil), s.headers...)
}

// Lists returns the number of requests for the list of models.
func (s *OpenAIServer) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

func (s *OpenAIServer) serve(w http.ResponseWriter, r *http.Request) {
	mode, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if path == "v1/models" {
		s.mu.Lock()
		s.lists++
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"list","data":[{"id":"echo-1","object":"model"},{"id":"echo-2","object":"model"}]}`)
		return
	}
	var req openai.ChatRequest
	if path != "v1/chat/completions" || json.NewDecoder(r.Body).Decode(&req) != nil || len(req.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	s.headers = append(s.headers, r.Header.Clone())
	s.mu.Unlock()
	if misbehave(Mode(mode), w, r) {
		return
	}
	if Mode(mode) == Scripted {
		s.play(w, r, req)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(delta string) error {
		chunk := openai.Chunk{Object: "chat.completion.chunk", Model: req.Model, Choices: []openai.ChunkChoice{{Delta: openai.Delta{Content: openai.Content(delta)}}}}
		b, _ := json.Marshal(chunk)
		_, err := fmt.Fprintf(w, "data: %s\n\n", b)
		http.NewResponseController(w).Flush()
		return err
	}
	switch Mode(mode) {
	case Wait:
		say("working on it")
		s.Started <- struct{}{}
		<-r.Context().Done()
		s.Stopped <- struct{}{}
	case Stall:
		say("well")
		<-r.Context().Done()
	case Cut:
		say("half an ans")
		panic(http.ErrAbortHandler)
	case Babble:
		for say(strings.Repeat("blah ", 200)) == nil {
		}
	default:
		say("")
		for _, word := range strings.SplitAfter(Echoed(string(req.Messages[len(req.Messages)-1].Content)), " ") {
			say(word)
		}
		io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n")
		io.WriteString(w, `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`+"\n\ndata: [DONE]\n\n")
	}
}

// misbehave answers in the modes that are independent of the protocol. It returns false, without an
// answer, for any other mode.
func misbehave(mode Mode, w http.ResponseWriter, r *http.Request) bool {
	switch mode {
	case Hang:
		// An HTTP/1.1 server notices a closed connection only after it has read the whole request.
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	case Garbage:
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: \x00\xff{{{ not json\n\n\x16\x03\x01")
	case Page:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, "<!DOCTYPE html><html><body>Welcome to nginx!</body></html>")
	case Oversize:
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":"`)
		chunk := strings.Repeat("x", 1<<20)
		for range 100 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return true
			}
		}
	default:
		return false
	}
	return true
}
