// Package conformance is the agent that the official test suites of A2A require of a server. The prefix
// of the message's id (the technology compatibility kit) or of its text (the conformance test
// specification, ACTS) selects its behaviour. It exists only on a portal that was started with
// --conformance, and passes the calls of all other agents on. It makes no requests and stores nothing
// but the checkpoint of a waiting task.
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

// Name is the name of the agent, by which Driver recognises its calls.
const Name = "conformance"

// longRun is the duration of the long-running behaviour, long enough for a suite to get the task,
// cancel it and subscribe to it.
const longRun = 5 * time.Second

// Driver answers for the conformance agent and passes other calls on. It is safe for concurrent use.
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
	do, err := chooseBehaviour(ctx, call)
	if err != nil {
		return task.Result{}, err
	}
	return do(ctx, call, out)
}

// behaviour runs the agent's reaction to a message, with the contract of task.Agent.
type behaviour func(ctx context.Context, call task.Call, out task.Sink) (task.Result, error)

// behaviours maps prefixes of messages to behaviours. prefixes lists the keys, longest first, because
// one may be the prefix of another.
var behaviours = map[string]behaviour{
	"tck-complete-task":    answerText("Hello from TCK"),
	"tck-message-response": answerMessage("Direct message response"),
	"tck-artifact-text":    makeArtifact(task.TextPart("Generated text content")),
	"tck-artifact-file": makeArtifact(task.Part{Raw: []byte("Generated file content\n"),
		Filename: "output.txt", MediaType: "text/plain"}),
	"tck-artifact-file-url": makeArtifact(task.Part{URL: "https://example.com/output.txt", Filename: "output.txt",
		MediaType: "text/plain"}),
	"tck-artifact-data":           makeArtifact(task.Part{Data: json.RawMessage(`{"key":"value","count":42}`)}),
	"tck-input-required":          askInput(task.InputRequired, "More input is required.", ""),
	"tck-multi-turn":              askInput(task.InputRequired, sayMore, "done"),
	"tck-auth-required":           askInput(task.AuthRequired, "Authorization is required.", ""),
	"tck-reject-task":             endTask(task.Rejected, "rejected"),
	"tck-task-failure":            endTask(task.Failed, "The task failed, as it was asked to."),
	"tck-long-running":            workFor(longRun),
	"test-resubscribe-message-id": workFor(longRun),
	"tck-cancel":                  workFor(time.Hour),
	"tck-stream-001":              answerText("Stream hello from TCK"),
	"tck-stream-002":              endTask(task.Completed, ""),
	"tck-stream-003":              answerText("Stream task lifecycle"),
	"tck-stream-ordering-001":     answerText("Ordered output"),
	"tck-stream-basic":            answerText("Streamed content"),
	"tck-stream-chunked":          answerText("chunk-1 ", "chunk-2"),
	"tck-stream-artifact-text":    answerText("Streamed text content"),
	"tck-stream-artifact-chunked": answerText("chunk-1 ", "chunk-2"),
	"tck-stream-artifact-file": makeArtifact(task.Part{Raw: []byte("Streamed file content\n"),
		Filename: "output.txt", MediaType: "text/plain"}),
}

var prefixes = func() []string {
	var list []string
	for p := range behaviours {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}()

// chooseBehaviour selects the behaviour by the message's id or its first text. Without a match, a
// waiting task continues and any other is completed.
func chooseBehaviour(ctx context.Context, call task.Call) (behaviour, error) {
	var keys []string
	if call.ClientID != nil {
		id, err := call.ClientID.ReadClientID(ctx)
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
		return continueTask, nil
	}
	return behaviours["tck-complete-task"], nil
}

// answerText returns a behaviour that streams the pieces of a text and completes the task.
func answerText(pieces ...string) behaviour {
	return func(_ context.Context, _ task.Call, out task.Sink) (task.Result, error) {
		for _, p := range pieces {
			out.Text(p)
		}
		return task.Done(strings.Join(pieces, "")), nil
	}
}

// answerMessage returns a behaviour that answers with a message and no task.
func answerMessage(text string) behaviour {
	return func(context.Context, task.Call, task.Sink) (task.Result, error) {
		r := task.Done(text)
		r.Direct = true
		return r, nil
	}
}

// makeArtifact returns a behaviour that produces an artifact of one part and completes the task.
func makeArtifact(part task.Part) behaviour {
	return func(_ context.Context, _ task.Call, out task.Sink) (task.Result, error) {
		out.Artifact(task.Artifact{ID: "output", Name: "Output", Parts: []task.Part{part}})
		return task.Result{State: task.Completed}, nil
	}
}

// waiting is the checkpoint of a task that waits for input. Until is the lower-case beginning of the
// message that ends the task; with "" any message does.
type waiting struct {
	Until string `json:"until"`
}

// sayMore is the agent's text while a task waits for further messages.
const sayMore = "Please say more, or done."

// askInput returns a behaviour that puts the task into a waiting state with the given text. A later
// message that begins with until completes the task.
func askInput(state task.State, text, until string) behaviour {
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

// continueTask completes a waiting task when the message begins with the awaited text, else asks again.
func continueTask(_ context.Context, call task.Call, _ task.Sink) (task.Result, error) {
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

// endTask returns a behaviour that ends the task in the state at once, without an answer.
func endTask(state task.State, reason string) behaviour {
	return func(context.Context, task.Call, task.Sink) (task.Result, error) {
		return task.Result{State: state, Reason: reason}, nil
	}
}

// workFor returns a behaviour that works for a duration, until the task is cancelled.
func workFor(long time.Duration) behaviour {
	return func(ctx context.Context, _ task.Call, out task.Sink) (task.Result, error) {
		out.Status("Working")
		timer := time.NewTimer(long)
		defer timer.Stop()
		select {
		case <-timer.C:
			return answerText("Long-running work is done")(ctx, task.Call{}, out)
		case <-ctx.Done():
			return task.Result{}, ctx.Err()
		}
	}
}

// Draft returns the agent's registration for hub.Service.EnsureBuiltin. The portal registers it only
// with --conformance.
func Draft() hub.Draft {
	name, title, kind, visibility := Name, "Conformance", hub.Builtin, hub.Public
	description := "Behaves as the official A2A test suites ask, by how a message's id or text begins. For tests only."
	modes := []string{"text/plain", "application/json"}
	return hub.Draft{Name: &name, Title: &title, Description: &description, Kind: &kind, Visibility: &visibility,
		InputModes: &modes, OutputModes: &modes, Config: map[string]json.RawMessage{},
		Skills: &[]hub.Skill{{ID: "conformance", Name: "Conformance",
			Description: "Does what the prefix of a message asks for.",
			Tags:        []string{"test"}, Examples: []string{"tck-complete-task", "tck-stream-basic"}}}}
}
