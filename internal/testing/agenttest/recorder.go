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

// Recorder is a task.Sink that remembers what it was given and what its user
// did wrong: using it from two goroutines at once, or after Run returned. The
// zero value is ready.
type Recorder struct {
	mu          sync.Mutex // guards all below
	shown       strings.Builder
	replaced    int
	deltas      int
	statuses    []string
	artifacts   []task.Artifact
	checkpoints []json.RawMessage
	busy, over  bool
	faults      []string

	// OnCheckpoint, when set before use, is asked before a checkpoint is kept;
	// its error is what Checkpoint returns.
	OnCheckpoint func(json.RawMessage) error
	// Active, when set before use, is closed at the first use.
	Active chan struct{}
}

// begin notes a use of the sink and returns how to end it.
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

// Over says that Run has returned: from now on every use is a fault.
func (r *Recorder) Over() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// Shown is the text readers see.
func (r *Recorder) Shown() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown.String()
}

// Deltas is how often Text was called.
func (r *Recorder) Deltas() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deltas
}

// Statuses are the texts of Status, oldest first.
func (r *Recorder) Statuses() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.statuses)
}

// Artifacts are the artifacts as they stand.
func (r *Recorder) Artifacts() []task.Artifact {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.artifacts)
}

// LastCheckpoint is the state stored last, or nil.
func (r *Recorder) LastCheckpoint() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.checkpoints) == 0 {
		return nil
	}
	return r.checkpoints[len(r.checkpoints)-1]
}

// Faults is what the user of the sink did wrong.
func (r *Recorder) Faults() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.faults)
}

// String sums up for messages of tests.
func (r *Recorder) String() string {
	s := r.Shown()
	if len(s) > 200 {
		s = fmt.Sprintf("%s… (%d bytes)", s[:200], len(s))
	}
	return fmt.Sprintf("shown %q, status %q", s, r.Statuses())
}
