// Package conformance is the agent that the official test suites of A2A ask a
// server for: what it does with a message is told by how the message's id
// begins (the technology compatibility kit) or its text (the conformance test
// specification, ACTS). It is there only where a portal is started with
// --conformance, and passes every other agent's calls on. It reaches nothing
// and keeps nothing but the checkpoint that a task waits with.
package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// Name is the agent's.
const Name = "conformance"

// longRun is how long the long-running behaviour takes: a suite must be able
// to ask for the task, cancel it and subscribe to it meanwhile.
const longRun = 5 * time.Second

// Driver answers for the agent, and has others answer for the rest. It is safe
// for concurrent use.
type Driver struct{ next task.Agent }

var _ task.Agent = (*Driver)(nil)

// New returns a driver that passes calls of agents with another name to next.
func New(next task.Agent) *Driver { return &Driver{next} }

// Run implements task.Agent.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	if call.Agent.Name != Name {
		return d.next.Run(ctx, call, out)
	}
	if err := ctx.Err(); err != nil {
		return task.Result{}, err
	}
	do, err := behaviour(ctx, call)
	if err != nil {
		return task.Result{}, err
	}
	return do(ctx, call, out)
}

// doing is what the agent does with a message.
type doing func(ctx context.Context, call task.Call, out task.Sink) (task.Result, error)

// behaviours are what prefixes stand for, and prefixes those, the longest
// first: one may be how another begins.
var behaviours = map[string]doing{
	"tck-complete-task":           says("Hello from TCK"),
	"tck-message-response":        replies("Direct message response"),
	"tck-artifact-text":           makes(task.TextPart("Generated text content")),
	"tck-artifact-file":           makes(task.Part{Raw: []byte("Generated file content\n"), Filename: "output.txt", MediaType: "text/plain"}),
	"tck-artifact-file-url":       makes(task.Part{URL: "https://example.com/output.txt", Filename: "output.txt", MediaType: "text/plain"}),
	"tck-artifact-data":           makes(task.Part{Data: json.RawMessage(`{"key":"value","count":42}`)}),
	"tck-input-required":          asks(task.InputRequired, "More input is required.", ""),
	"tck-multi-turn":              asks(task.InputRequired, sayMore, "done"),
	"tck-auth-required":           asks(task.AuthRequired, "Authorization is required.", ""),
	"tck-reject-task":             ends(task.Rejected, "rejected"),
	"tck-task-failure":            ends(task.Failed, "The task failed, as it was asked to."),
	"tck-long-running":            works(longRun),
	"test-resubscribe-message-id": works(longRun),
	"tck-cancel":                  works(time.Hour),
	"tck-stream-001":              says("Stream hello from TCK"),
	"tck-stream-002":              ends(task.Completed, ""),
	"tck-stream-003":              says("Stream task lifecycle"),
	"tck-stream-ordering-001":     says("Ordered output"),
	"tck-stream-basic":            says("Streamed content"),
	"tck-stream-chunked":          says("chunk-1 ", "chunk-2"),
	"tck-stream-artifact-text":    says("Streamed text content"),
	"tck-stream-artifact-chunked": says("chunk-1 ", "chunk-2"),
	"tck-stream-artifact-file":    makes(task.Part{Raw: []byte("Streamed file content\n"), Filename: "output.txt", MediaType: "text/plain"}),
}

var prefixes = func() []string {
	var list []string
	for p := range behaviours {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}()

// behaviour is what the message's id says, or its first text. Without either,
// a task that waited goes on, and any other is completed.
func behaviour(ctx context.Context, call task.Call) (doing, error) {
	var keys []string
	if call.ClientID != nil {
		id, err := call.ClientID(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the id of the message: %w", err)
		}
		keys = append(keys, id)
	}
	if len(call.Parts) > 0 {
		keys = append(keys, strings.TrimSpace(call.Parts[0].Text))
	}
	for _, key := range keys {
		for _, p := range prefixes {
			if strings.HasPrefix(key, p) {
				return behaviours[p], nil
			}
		}
	}
	if len(call.Checkpoint) > 0 {
		return goesOn, nil
	}
	return behaviours["tck-complete-task"], nil
}

// says answers with text, which streams piece by piece.
func says(pieces ...string) doing {
	return func(_ context.Context, _ task.Call, out task.Sink) (task.Result, error) {
		for _, p := range pieces {
			out.Text(p)
		}
		return task.Done(strings.Join(pieces, "")), nil
	}
}

// replies answers with a message and no task.
func replies(text string) doing {
	return func(context.Context, task.Call, task.Sink) (task.Result, error) {
		r := task.Done(text)
		r.Direct = true
		return r, nil
	}
}

// makes leaves an artifact of one part.
func makes(part task.Part) doing {
	return func(_ context.Context, _ task.Call, out task.Sink) (task.Result, error) {
		out.Artifact(task.Artifact{ID: "output", Name: "Output", Parts: []task.Part{part}})
		return task.Result{State: task.Completed}, nil
	}
}

// waiting is what a task that asked for input is kept with: the text that ends
// it, "" for any.
type waiting struct {
	Until string `json:"until"`
}

// sayMore is what a conversation of several turns asks.
const sayMore = "Please say more, or done."

// asks waits for what the caller says next, until that begins with a text.
func asks(state task.State, text, until string) doing {
	return func(ctx context.Context, _ task.Call, out task.Sink) (task.Result, error) {
		b, err := json.Marshal(waiting{until})
		if err == nil {
			err = out.Checkpoint(ctx, b)
		}
		if err != nil {
			return task.Result{}, fmt.Errorf("remember that input was asked for: %w", err)
		}
		return task.Result{State: state, Parts: []task.Part{task.TextPart(text)}, Reason: text}, nil
	}
}

// goesOn is what a task that waited does with its input.
func goesOn(_ context.Context, call task.Call, _ task.Sink) (task.Result, error) {
	var w waiting
	if err := json.Unmarshal(call.Checkpoint, &w); err != nil {
		return task.Result{}, fmt.Errorf("read what was waited for: %w", err)
	}
	said := task.PlainText(call.Parts)
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(said)), w.Until) {
		return task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart(sayMore)}, Reason: sayMore}, nil
	}
	return task.Done("Input received: " + said), nil
}

// ends is over at once, without an answer.
func ends(state task.State, reason string) doing {
	return func(context.Context, task.Call, task.Sink) (task.Result, error) {
		return task.Result{State: state, Reason: reason}, nil
	}
}

// works takes its time, unless it is stopped.
func works(long time.Duration) doing {
	return func(ctx context.Context, _ task.Call, out task.Sink) (task.Result, error) {
		out.Status("Working")
		timer := time.NewTimer(long)
		defer timer.Stop()
		select {
		case <-timer.C:
			return says("Long-running work is done")(ctx, task.Call{}, out)
		case <-ctx.Done():
			return task.Result{}, ctx.Err()
		}
	}
}

// Draft is the agent's registration, for hub.Service.EnsureBuiltin.
func Draft() hub.Draft {
	name, title, kind, visibility := Name, "Conformance", hub.Builtin, hub.Public
	description := "Behaves as the official A2A test suites ask, by how a message's id or text begins. For tests only."
	modes := []string{"text/plain", "application/json"}
	return hub.Draft{Name: &name, Title: &title, Description: &description, Kind: &kind, Visibility: &visibility,
		InputModes: &modes, OutputModes: &modes, Config: map[string]json.RawMessage{},
		Skills: &[]hub.Skill{{ID: "conformance", Name: "Conformance", Description: "Does what the prefix of a message asks for.",
			Tags: []string{"test"}, Examples: []string{"tck-complete-task", "tck-stream-basic"}}}}
}
