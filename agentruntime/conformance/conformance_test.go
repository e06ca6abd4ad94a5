package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agentruntime/conformance"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// others answers for every other agent.
type others struct{}

func (others) Run(context.Context, task.Call, task.Sink) (task.Result, error) {
	return task.Done("somebody else"), nil
}

// clientID is a task.ClientID.
type clientID string

func (c clientID) ReadClientID(context.Context) (string, error) { return string(c), nil }

func call(id, text string) task.Call {
	return task.Call{Agent: task.Target{Name: conformance.Name}, Attempt: 1, Parts: []task.Part{task.TextPart(text)},
		ClientID: clientID(id)}
}

func TestRun_DoesWhatThePrefixSays(t *testing.T) {
	t.Parallel()
	d := conformance.New(others{})
	for _, c := range []struct {
		id, text string
		state    task.State
		shown    string // of the answer, the reason or the artifact
	}{
		{"tck-complete-task-1", "x", task.Completed, "Hello from TCK"},
		{"m", "tck-complete-task please", task.Completed, "Hello from TCK"},
		{"m", "anything", task.Completed, "Hello from TCK"},
		{"tck-reject-task-1", "tck-complete-task", task.Rejected, "rejected"},
		{"m", "tck-task-failure", task.Failed, "failed"},
		{"m", "tck-auth-required", task.AuthRequired, "Authorization"},
		{"m", "tck-input-required", task.InputRequired, "input"},
		{"tck-artifact-text-1", "x", task.Completed, "Generated text content"},
		{"tck-artifact-file-1", "x", task.Completed, "output.txt"},
		{"tck-artifact-file-url-1", "x", task.Completed, "https://example.com/output.txt"},
		{"tck-artifact-data-1", "x", task.Completed, `{"key":"value","count":42}`},
		{"tck-stream-chunked", "x", task.Completed, "chunk-1 chunk-2"},
	} {
		rec := new(agenttest.Recorder)
		r, err := d.Run(t.Context(), call(c.id, c.text), rec)
		shown := task.PlainText(r.Parts) + r.Reason
		for _, a := range rec.Artifacts() {
			shown += a.Parts[0].Filename + task.PlainText(a.Parts)
		}
		if err != nil || r.State != c.state || !strings.Contains(shown, c.shown) {
			t.Errorf("%s %q: %s %q %v", c.id, c.text, r.State, shown, err)
		}
		if faults := rec.Faults(); len(faults) > 0 {
			t.Errorf("%s: %v", c.id, faults)
		}
	}
	if r, _ := d.Run(t.Context(), call("tck-message-response", "x"), new(agenttest.Recorder)); !r.Direct {
		t.Error("a message is a task")
	}
	another := call("tck-reject-task", "x")
	another.Agent.Name = "calc"
	if r, _ := d.Run(t.Context(), another, new(agenttest.Recorder)); task.PlainText(r.Parts) != "somebody else" {
		t.Errorf("for another agent: %+v", r)
	}
}

func TestRun_TakesSeveralTurns(t *testing.T) {
	t.Parallel()
	d := conformance.New(others{})
	rec := new(agenttest.Recorder)
	if r, err := d.Run(t.Context(), call("m1", "tck-multi-turn start"), rec); err != nil || r.State != task.InputRequired {
		t.Fatalf("%+v %v", r, err)
	}
	for _, c := range []struct {
		text string
		want task.State
	}{{"here is more", task.InputRequired}, {"done", task.Completed}} {
		next := call("m2", c.text)
		next.Checkpoint = json.RawMessage(rec.LastCheckpoint())
		if r, err := d.Run(t.Context(), next, new(agenttest.Recorder)); err != nil || r.State != c.want {
			t.Errorf("%q: %+v %v", c.text, r, err)
		}
	}
}

func TestRun_WorksUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conformance.New(others{})
		start := time.Now()
		if r, err := d.Run(t.Context(), call("m", "tck-long-running"), new(agenttest.Recorder)); err != nil || r.State != task.Completed || time.Since(start) < time.Second {
			t.Errorf("%+v %v after %s", r, err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if _, err := d.Run(ctx, call("m", "tck-cancel"), new(agenttest.Recorder)); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
	})
}
