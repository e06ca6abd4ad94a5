package remote_test

import (
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
	"agentsite/internal/hub"
	"agentsite/internal/task"
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
