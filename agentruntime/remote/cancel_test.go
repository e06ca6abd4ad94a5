package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agentruntime/remote"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// failing is an agent that cannot be reached for the first requests.
type failing struct {
	failures int32
	requests atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (f *failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.requests.Add(1) <= f.failures {
		return nil, errors.New("connection refused")
	}
	var in struct{ ID json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	answer := `{"jsonrpc":"2.0","id":` + string(in.ID) + `,"result":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_CANCELED"}}}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

func TestStop_TriesAgainUntilTheAgentAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		failures, want int32
		closes         bool // while the driver waits before its second try
	}{
		"an agent that answers":         {0, 1, false},
		"an agent that is restarted":    {2, 3, false},
		"an agent that is gone":         {1000, 6, false},
		"a portal that stops meanwhile": {1000, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &failing{failures: c.failures}
				d := remote.NewA2A(agent, remote.Config{Log: slog.New(slog.DiscardHandler)})
				d.Stop(t.Context(), task.Call{Agent: task.Target{Kind: string(hub.A2A), Endpoint: "http://agent.example/"},
					Checkpoint: json.RawMessage(`{"task":"t","context":"c"}`)})
				synctest.Wait()
				if !c.closes {
					time.Sleep(time.Hour)
				}
				began := time.Now()
				d.Close()
				if n := agent.requests.Load(); n != c.want {
					t.Errorf("%d requests, want %d", n, c.want)
				}
				if time.Since(began) != 0 {
					t.Error("Close waited for a try that it forbids")
				}
			})
		})
	}
}

// slow is an agent that names a task a while after it got the message.
type slow struct {
	after    time.Duration
	canceled atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	var in struct {
		ID     json.RawMessage
		Method string
		Params struct{ ID string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	state, kind := "TASK_STATE_WORKING", "application/json"
	if in.Method == "CancelTask" {
		if in.Params.ID == "t" {
			s.canceled.Add(1)
		}
		state = "TASK_STATE_CANCELED"
	} else if !clock.Sleep(r.Context(), s.after) {
		return nil, r.Context().Err()
	}
	result := `{"id":"t","contextId":"c","status":{"state":"` + state + `"}}`
	if in.Method != "CancelTask" {
		result = `{"task":` + result + `}`
	}
	answer := `{"jsonrpc":"2.0","id":` + string(in.ID) + `,"result":` + result + `}`
	if in.Method == "SendStreamingMessage" {
		answer, kind = "data: "+answer+"\n\n", "text/event-stream"
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}},
		Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

func TestRun_CancelsATaskThatHasNoNameYet(t *testing.T) {
	for name, c := range map[string]struct {
		names     time.Duration
		streaming bool
		cause     error
		took      time.Duration
		canceled  int32
	}{
		"named late, stream":    {3 * time.Second, true, context.Canceled, 3 * time.Second, 1},
		"named late, call":      {3 * time.Second, false, context.Canceled, 3 * time.Second, 1},
		"never named, stream":   {time.Hour, true, context.Canceled, 6 * time.Second, 0},
		"never named, call":     {time.Hour, false, context.Canceled, 6 * time.Second, 0},
		"the portal stops":      {time.Hour, true, task.ErrShutdown, time.Second, 0},
		"named before, polling": {0, false, context.Canceled, time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &slow{after: c.names}
				d := remote.NewA2A(agent, remote.Config{Log: slog.New(slog.DiscardHandler)})
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(c.cause) })
				config, _ := json.Marshal(hub.A2AConfig{Streaming: c.streaming})
				began := time.Now()
				_, err := d.Run(ctx, task.Call{TaskID: "T", MessageID: "M", Attempt: 1,
					Parts: []task.Part{task.TextPart("hi")},
					Agent: task.Target{Kind: string(hub.A2A), Endpoint: "http://agent.example/", Config: config},
				}, &agenttest.Recorder{})
				if !errors.Is(err, c.cause) {
					t.Errorf("error %v, want %v", err, c.cause)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("Run took %s, want %s", took, c.took)
				}
				synctest.Wait()
				d.Close()
				if n := agent.canceled.Load(); n != c.canceled {
					t.Errorf("%d cancellations, want %d", n, c.canceled)
				}
			})
		})
	}
}
