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

// askSlow runs a task at an agent and ends ctx with cause a second after it was sent.
func askSlow(t *testing.T, d *remote.A2A, streaming bool, cause error) error {
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { cancel(cause) })
	config, err := json.Marshal(hub.A2AConfig{Streaming: streaming})
	if err != nil {
		return err
	}
	_, err = d.Run(ctx, task.Call{TaskID: "T", MessageID: "M", Attempt: 1, Parts: []task.Part{task.TextPart("hi")},
		Agent: task.Target{Kind: string(hub.A2A), Endpoint: "http://agent.example/", Config: config},
	}, &agenttest.Recorder{})
	return err
}

// A driver returns as soon as its task is canceled, because the worker waits less than half a second for it. Whether
// the agent names the task later does not matter.
func TestRun_CancelsATaskThatHasNoNameYet(t *testing.T) {
	for name, c := range map[string]struct {
		names     time.Duration
		streaming bool
		cause     error
		canceled  int32
	}{
		"named late, stream":      {3 * time.Second, true, context.Canceled, 1},
		"named late, call":        {3 * time.Second, false, context.Canceled, 1},
		"named too late, stream":  {7 * time.Second, true, context.Canceled, 0},
		"never named, stream":     {time.Hour, true, context.Canceled, 0},
		"never named, call":       {time.Hour, false, context.Canceled, 0},
		"out of time, named late": {3 * time.Second, true, context.DeadlineExceeded, 1},
		"the portal stops":        {3 * time.Second, true, task.ErrShutdown, 0},
		"named before, polling":   {0, false, context.Canceled, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &slow{after: c.names}
				d := remote.NewA2A(agent, remote.Config{Log: slog.New(slog.DiscardHandler)})
				began := time.Now()
				if err := askSlow(t, d, c.streaming, c.cause); !errors.Is(err, c.cause) {
					t.Errorf("error %v, want %v", err, c.cause)
				}
				if took := time.Since(began); took != time.Second {
					t.Errorf("Run took %s, want 1s", took)
				}
				time.Sleep(time.Hour)
				d.Close()
				if n := agent.canceled.Load(); n != c.canceled {
					t.Errorf("%d cancellations, want %d", n, c.canceled)
				}
			})
		})
	}
}

func TestRun_BoundsTheWaitsForNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &slow{after: 3 * time.Second}
		d := remote.NewA2A(agent, remote.Config{Log: slog.New(slog.DiscardHandler)})
		defer d.Close()
		for want := range int32(2) { // The places are free again for the second round.
			for range 103 {
				go askSlow(t, d, true, context.Canceled)
			}
			time.Sleep(time.Minute)
			if n := agent.canceled.Load(); n != 100*(want+1) {
				t.Errorf("%d cancellations after round %d", n, want+1)
			}
		}
	})
}

func TestClose_EndsTheWaitsForNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &slow{after: 3 * time.Second}
		d := remote.NewA2A(agent, remote.Config{Log: slog.New(slog.DiscardHandler)})
		if err := askSlow(t, d, true, context.Canceled); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		began := time.Now()
		d.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %s", took)
		}
		time.Sleep(time.Hour)
		if n := agent.canceled.Load(); n != 0 {
			t.Errorf("%d cancellations after Close", n)
		}
	})
}

// panicking is a transport that panics after a while.
type panicking time.Duration

// RoundTrip implements http.RoundTripper.
func (p panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	clock.Sleep(r.Context(), time.Duration(p))
	panic("hostile answer")
}

// A panic in Run reaches the worker, which recovers it. A panic after Run has returned is logged.
func TestRun_RecoversWhileItWaitsForTheName(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: true, 3 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			d := remote.NewA2A(panicking(after), remote.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
			panicked := func() (p any) {
				defer func() { p = recover() }()
				if err := askSlow(t, d, true, context.Canceled); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return nil
			}()
			time.Sleep(time.Hour)
			d.Close()
			if (panicked != nil) != want || strings.Contains(log.String(), "hostile answer") == want {
				t.Errorf("after %s: panic %v, log %s", after, panicked, log.String())
			}
		})
	}
}
