package endpoint

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/handlers/request"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// watchedWriter notes when writes had to be over, as they began.
type watchedWriter struct {
	*httptest.ResponseRecorder
	deadline time.Time
	writes   []time.Time
}

func (w *watchedWriter) SetReadDeadline(time.Time) error { return nil }

func (w *watchedWriter) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// Write implements http.ResponseWriter.
func (w *watchedWriter) Write(b []byte) (int, error) {
	w.writes = append(w.writes, w.deadline)
	return w.ResponseRecorder.Write(b)
}

// alone is the handler of a server with one tool, for visitors.
func alone(t *testing.T, run func(context.Context, *Call) (Result, error)) http.Handler {
	t.Helper()
	s, err := NewServer(Offer{Name: "x/alone", Version: "1", Tools: []Tool{{Name: "tool", Input: json.RawMessage(anyInput), Run: run}}})
	if err != nil {
		t.Fatal(err)
	}
	e := New(Config{Callers: request.NewCallers(nil, nil, request.NewConnections(request.ConnectionLimits{All: 100, PerAddress: 100})), Key: []byte("key"), Log: slog.New(slog.DiscardHandler)})
	return e.Post(func(context.Context, *http.Request, ident.Actor) (*Server, error) { return s, nil })
}

const callTool = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool"}}`

func ask(body, accept string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header.Set("Accept", accept)
	return r
}

// A call may take minutes, and who called may then read nothing of the answer:
// that must not hold the connection for ever.
func TestReply_HasADeadlineWhereItIsWritten(t *testing.T) {
	t.Parallel()
	h := alone(t, func(context.Context, *Call) (Result, error) { return Text("done"), nil })
	for _, c := range []struct{ body, accept string }{
		{callTool, "application/json"}, {callTool, "application/json, text/event-stream"}, {callTool, "text/event-stream"},
		{"[" + callTool + "," + callTool + "]", "application/json"},
		{strings.Replace(callTool, "tool\"", "none\"", 1), "application/json"},
	} {
		w := &watchedWriter{ResponseRecorder: httptest.NewRecorder(), deadline: time.Now().Add(time.Minute)}
		h.ServeHTTP(w, ask(c.body, c.accept))
		if len(w.writes) == 0 {
			t.Errorf("%s, %s: no answer", c.body, c.accept)
		}
		for _, by := range w.writes {
			if by.IsZero() {
				t.Errorf("%s, %s: written without a deadline", c.body, c.accept)
			}
		}
	}
}

// The server has the connection for another request by then.
func TestReply_WritesNothingAfterAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := alone(t, func(context.Context, *Call) (Result, error) { panic("no") })
		w := &watchedWriter{ResponseRecorder: httptest.NewRecorder()}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is swallowed")
				}
			}()
			h.ServeHTTP(w, ask(callTool, "application/json, text/event-stream"))
		}()
		time.Sleep(3 * stillAfter)
		synctest.Wait()
		if len(w.writes) > 0 {
			t.Errorf("%d writes after the end: %s", len(w.writes), w.Body)
		}
	})
}

// Two goroutines that write headers at once are the end of the program: run
// with -race.
func TestReply_EndsWhileASignOfLifeIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := alone(t, func(context.Context, *Call) (Result, error) {
			time.Sleep(stillAfter)
			return Result{}, fault.Limited(time.Minute, "Wait.")
		})
		w := &watchedWriter{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, ask(callTool, "application/json, text/event-stream"))
		if !strings.Contains(w.Body.String(), `"Wait."`) {
			t.Errorf("%d, %s", w.Code, w.Body)
		}
	})
}
