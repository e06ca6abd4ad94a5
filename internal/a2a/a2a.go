// Package a2a speaks the A2A protocol, versions 1.0 and 0.3, over JSON-RPC and
// over HTTP+JSON: it reads agent cards and calls agents, and it has the forms
// in which agents of this portal are described, asked and answer. What the
// far side sends is untrusted: every size and number is bounded, unknown or
// malformed optional parts are skipped, and what is used is checked. It knows
// nothing of addresses that may be dialled (the RoundTripper's matter), of
// storage, or of what an answer is used for.
//
// The wire shapes are our own rather than a2a-go's: its client reads bodies
// without a bound, takes 10 MiB per event, fails a whole event for one
// malformed part or timestamp, and its 0.3 support brings gRPC into the
// binary. a2a-go's servers are the far side in the tests.
package a2a

import (
	"time"

	"agentsite/internal/task"
)

// Versions and bindings of the protocol as they stand on agent cards.
const (
	Version10   = "1.0"
	Version03   = "0.3"
	BindingRPC  = "JSONRPC"
	BindingREST = "HTTP+JSON"
)

// Bounds of what one call may bring.
const (
	maxEvents    = 10_000
	maxTotal     = 8 << 20 // bytes of one answer or stream
	maxArtifacts = 100     // of one task
	maxParts     = 1000    // of one message or artifact
	maxHistory   = 20      // messages of a task's history that are kept
	maxID        = 256     // bytes of a foreign id
)

// MaxArtifacts is how many artifacts one task may have.
const MaxArtifacts = maxArtifacts

// Message is one message of a conversation with an agent.
type Message struct {
	ID        string
	ContextID string
	TaskID    string
	FromAgent bool
	Parts     []task.Part
	// Speaker is who spoke, nil where that is not told.
	Speaker *Speaker
}

// Status is where a foreign task is. State is empty when the agent named none
// that we know.
type Status struct {
	State   task.State
	Message *Message
	// At is when it became so; only of tasks of this portal.
	At time.Time
}

// Task is a foreign task.
type Task struct {
	ID        string
	ContextID string
	Status    Status
	Artifacts []task.Artifact
	// History holds the last messages only.
	History []Message
}

// StatusUpdate tells of a task's new status.
type StatusUpdate struct {
	TaskID    string
	ContextID string
	Status    Status
}

// ArtifactUpdate brings an artifact, or with Append more parts of one.
type ArtifactUpdate struct {
	TaskID    string
	ContextID string
	Artifact  task.Artifact
	Append    bool
	Last      bool
}

// Event is one thing an agent says; exactly one field of the first four is
// set.
type Event struct {
	Task     *Task
	Message  *Message
	Status   *StatusUpdate
	Artifact *ArtifactUpdate
	// Metadata is the event's own; only of what is sent.
	Metadata map[string]any
}

// IDs returns the task and context the event belongs to, as far as it says.
func (e Event) IDs() (taskID, contextID string) {
	switch {
	case e.Task != nil:
		return e.Task.ID, e.Task.ContextID
	case e.Message != nil:
		return e.Message.TaskID, e.Message.ContextID
	case e.Status != nil:
		return e.Status.TaskID, e.Status.ContextID
	case e.Artifact != nil:
		return e.Artifact.TaskID, e.Artifact.ContextID
	}
	return "", ""
}
