package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
)

// model is a server of the OpenAI API that says what a test tells it to, piece
// by piece.
type model struct {
	*httptest.Server
	asked   chan string   // the last message of every request
	pieces  chan string   // what to say next; "" ends the answer
	stopped chan struct{} // a request went away before its end

	mu     sync.Mutex                    // guards answer
	answer func(message string) []string // when set, all pieces at once
}

func newModel(t testing.TB) *model {
	m := &model{asked: make(chan string, 100), pieces: make(chan string), stopped: make(chan struct{}, 100)}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *model) base() string { return m.URL + "/v1" }

// answers makes the model speak by itself.
func (m *model) answers(f func(message string) []string) *model {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = f
	return m
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"list","data":[{"id":"story-1","object":"model"}]}`)
		return
	}
	var req openai.ChatRequest
	if r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&req) != nil || len(req.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text string) {
		b, _ := json.Marshal(openai.Chunk{Object: "chat.completion.chunk", Model: req.Model, Choices: []openai.ChunkChoice{{Delta: openai.Delta{Content: openai.Content(text)}}}})
		fmt.Fprintf(w, "data: %s\n\n", b)
		http.NewResponseController(w).Flush()
	}
	end := func() {
		io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}
	message := string(req.Messages[len(req.Messages)-1].Content)
	m.mu.Lock()
	answer := m.answer
	m.mu.Unlock()
	if answer != nil {
		for _, piece := range answer(message) {
			say(piece)
		}
		end()
		return
	}
	m.asked <- message
	for {
		select {
		case piece := <-m.pieces:
			if piece == "" {
				end()
				return
			}
			say(piece)
		case <-r.Context().Done():
			m.stopped <- struct{}{}
			return
		}
	}
}

// nowhere is an address at which nothing answers.
func nowhere(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// echo is the address of an A2A agent that says what it is told: the a2a-go
// command line tool at AGENTSITE_TEST_A2A, else a server on the same SDK.
func echo(t testing.TB) string {
	t.Helper()
	tool := os.Getenv("AGENTSITE_TEST_A2A")
	if tool == "" {
		s := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
		return s.URL + "/" + string(agenttest.Echo)
	}
	address := nowhere(t) // the tool takes a number only
	_, port, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ":")
	cmd := exec.CommandContext(t.Context(), tool, "serve", "--echo", "--quiet", "--port", port, "--name", "Parrot", "--description", "Says again whatever it is told.")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for {
		resp, err := http.Get(address + "/.well-known/agent-card.json")
		if err == nil {
			resp.Body.Close()
			return address
		}
		if !strings.Contains(err.Error(), "refused") {
			t.Fatal(err)
		}
		if cmd.ProcessState != nil {
			t.Fatal("the a2a tool ended")
		}
	}
}
