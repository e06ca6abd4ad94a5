package app_test

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"agentsite/internal/team/aware"
)

// mover is an A2A agent that speaks for itself in teams: it answers each question with one move.
type mover struct {
	*httptest.Server
	move map[string]any

	mu   sync.Mutex // guards seen
	seen []string   // messages as JSON
}

func newMover(t *testing.T, kind, text string) *mover {
	m := &mover{move: map[string]any{"kind": kind, "text": text}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"name": "Mover", "description": "Adds numbers.", "version": "1",
			"capabilities":      map[string]any{"extensions": []any{map[string]any{"uri": aware.Extension}}},
			"defaultInputModes": []string{"text/plain"}, "defaultOutputModes": []string{"text/plain"},
			"skills":              []any{map[string]any{"id": "add", "name": "Add", "description": "Adds.", "tags": []string{"sum"}}},
			"supportedInterfaces": []any{map[string]any{"url": m.URL + "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}}})
	})
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(m, a2asrv.WithLogger(slog.New(slog.DiscardHandler)))))
	m.Server = httptest.NewUnstartedServer(mux) // handlers read m.URL
	m.Start()
	t.Cleanup(m.Close)
	return m
}

// Execute implements a2asrv.AgentExecutor.
func (m *mover) Execute(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		b, _ := json.Marshal(ec.Message)
		m.mu.Lock()
		m.seen = append(m.seen, string(b))
		m.mu.Unlock()
		yield(sdk.NewMessage(sdk.MessageRoleAgent, sdk.NewDataPart(map[string]any{"move": m.move})), nil)
	}
}

// Cancel implements a2asrv.AgentExecutor.
func (m *mover) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[sdk.Event, error] {
	return func(func(sdk.Event, error) bool) {}
}

// An agent of another portal speaks for itself, and that portal learns only of its task.
func TestGoals_AnAgentElsewhereSpeaksForItself(t *testing.T) {
	t.Parallel()
	p := meet(t)
	m := newMover(t, aware.Result, "The sum is 42.")
	p.bob.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "mover", "description": "Adds numbers.", "kind": "a2a",
		"endpoint": m.URL, "visibility": "public"}, http.StatusCreated)
	var there struct {
		InputModes []string `json:"input_modes"`
	}
	p.bob.Get(http.MethodGet, "/api/v1/agents/mover", nil, http.StatusOK, &there)
	if !aware.TakesDocuments(there.InputModes) {
		t.Fatalf("its card was read as %v", there.InputModes)
	}
	p.known.put(p.bID, p.b.Host, "mover")
	p.known.mu.Lock()
	a := p.known.agents["mover@"+p.b.Host]
	a.InputModes = there.InputModes
	p.known.agents["mover@"+p.b.Host] = a
	p.known.mu.Unlock()
	id := startGoal(p.ada, map[string]any{"goal": "Add 17 and 25. What is 15% of 80?", "members": []string{"mover@" + p.b.Host, "calc"}})
	followGoal(t, p.ada, id)
	g := readGoal(p.ada, id)
	if g.State != "concluded" || g.Tasks[0].Owner != "mover@"+p.b.Host || g.Tasks[0].Result != "The sum is 42." {
		t.Fatalf("%+v", g)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) != 1 || !strings.Contains(m.seen[0], `"legal":["result","decline","recruit"]`) ||
		strings.Contains(m.seen[0], "15%") || strings.Contains(m.seen[0], "calc") {
		t.Errorf("it got %q", m.seen)
	}
}
