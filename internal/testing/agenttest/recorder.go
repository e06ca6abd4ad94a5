package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"agentsite/internal/task"
)

// Recorder is a task.Sink that records all calls. It also records violations of the sink's contract:
// use by two goroutines at once, or after Run returned. The zero value is ready.
type Recorder struct {
	mu          sync.Mutex // guards the fields below, up to faults
	shown       strings.Builder
	replaced    int
	deltas      int
	statuses    []string
	artifacts   []task.Artifact
	checkpoints []json.RawMessage
	busy, over  bool
	faults      []string

	// OnCheckpoint, unless nil, is called before a checkpoint is recorded. If it returns an error,
	// Checkpoint returns the error and records nothing. It must be set before use.
	OnCheckpoint func(json.RawMessage) error
	// Active, unless nil, is closed at the first use of the sink. It must be set before use.
	Active chan struct{}
}

// begin records the start of a call and returns the function that ends it. what names the method in a
// violation.
func (r *Recorder) begin(what string) func() {
	r.mu.Lock()
	if r.busy {
		r.faults = append(r.faults, what+" was called while another call ran")
	}
	if r.over {
		r.faults = append(r.faults, what+" was called after Run had returned")
	}
	r.busy = true
	if r.Active != nil {
		close(r.Active)
		r.Active = nil
	}
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		r.busy = false
		r.mu.Unlock()
	}
}

// Text implements task.Sink.
func (r *Recorder) Text(delta string) {
	defer r.begin("Text")()
	r.mu.Lock()
	r.shown.WriteString(delta)
	r.deltas++
	r.mu.Unlock()
}

// Replace implements task.Sink.
func (r *Recorder) Replace(text string) {
	defer r.begin("Replace")()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown.Reset()
	r.shown.WriteString(text)
	r.replaced++
}

// Status implements task.Sink.
func (r *Recorder) Status(text string) {
	defer r.begin("Status")()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses = append(r.statuses, text)
}

// Artifact implements task.Sink.
func (r *Recorder) Artifact(a task.Artifact) {
	defer r.begin("Artifact")()
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.artifacts, func(b task.Artifact) bool { return a.ID == b.ID }); i >= 0 {
		r.artifacts[i] = a
		return
	}
	r.artifacts = append(r.artifacts, a)
}

// Checkpoint implements task.Sink.
func (r *Recorder) Checkpoint(ctx context.Context, state json.RawMessage) error {
	defer r.begin("Checkpoint")()
	if r.OnCheckpoint != nil {
		if err := r.OnCheckpoint(state); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checkpoints = append(r.checkpoints, slices.Clone(state))
	return ctx.Err()
}

// Over says that Run has returned: every later use of the sink is a violation.
func (r *Recorder) Over() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// Shown returns the text that readers of the conversation see.
func (r *Recorder) Shown() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown.String()
}

// Deltas returns the number of calls of Text.
func (r *Recorder) Deltas() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deltas
}

// Statuses returns the texts given to Status, oldest first.
func (r *Recorder) Statuses() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.statuses)
}

// Artifacts returns the latest state of each artifact.
func (r *Recorder) Artifacts() []task.Artifact {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.artifacts)
}

// LastCheckpoint returns the last recorded checkpoint, or nil if there is none.
func (r *Recorder) LastCheckpoint() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.checkpoints) == 0 {
		return nil
	}
	return r.checkpoints[len(r.checkpoints)-1]
}

// Faults returns the recorded violations of the sink's contract.
func (r *Recorder) Faults() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.faults)
}

// String returns a summary for messages of tests.
func (r *Recorder) String() string {
	s := r.Shown()
	if len(s) > 200 {
		s = fmt.Sprintf("%s… (%d bytes)", s[:200], len(s))
	}
	return fmt.Sprintf("shown %q, status %q", s, r.Statuses())
}
