// Package a2a implements the A2A protocol, versions 1.0 and 0.3, over JSON-RPC and over HTTP+JSON. It
// reads agent cards, calls agents, and has the request, answer and card formats for agents of this
// portal. Data of remote agents is untrusted: every size and number is bounded, unknown or malformed
// optional parts are skipped, and the rest is checked before use. The package does not restrict
// addresses (the RoundTripper does), and it does not depend on storage.
//
// The wire types are our own and not those of a2a-go: its client reads bodies without a bound, takes 10
// MiB per event, fails a whole event for one malformed part or timestamp, and its 0.3 support brings
// gRPC into the binary. The tests run against a2a-go's servers.
package a2a

import (
	"time"

	"agentsite/internal/task"
)

// Versions and bindings of the protocol, spelled as on agent cards, where clients compare them.
const (
	Version10   = "1.0"
	Version03   = "0.3"
	BindingRPC  = "JSONRPC"
	BindingREST = "HTTP+JSON"
)

// Bounds of the data that one call of a remote agent may return, because the agent is not trusted.
const (
	maxEvents    = 10_000
	maxTotal     = 8 << 20 // bytes of an answer or of a whole stream
	maxArtifacts = 100     // artifacts of a task
	maxParts     = 1000    // parts of a message or artifact
	maxHistory   = 20      // newest messages of a task's history that are kept
	maxID        = 256     // bytes of an id that a remote agent chose
)

// MaxArtifacts is the maximum number of artifacts of one task; further ones are dropped.
const MaxArtifacts = maxArtifacts

// Message is one message of a conversation with an agent. ContextID and TaskID are "" for a message that
// starts a conversation or task.
type Message struct {
	ID        string
	ContextID string
	TaskID    string
	FromAgent bool
	Parts     []task.Part
	// Speaker is the author of the message, nil if unknown.
	Speaker *Speaker
	// Tools is the access to the portal's tools that the agent gets with the message, nil for none.
	Tools *Tools
	// Cost is the cost of the answer, as its agent states it; nil for no statement.
	Cost *task.Claim
}

// Status is the state of a task. State is empty if the agent gave none, or one that is unknown here.
type Status struct {
	State   task.State
	Message *Message
	// At is the time of the last change; set only for tasks of this portal.
	At time.Time
}

// Task is a task as its agent reports it.
type Task struct {
	ID        string
	ContextID string
	Status    Status
	Artifacts []task.Artifact
	// History holds at most the newest 20 messages, oldest first.
	History []Message
	// Cost is the cost of the task so far, as its agent states it; nil for no statement.
	Cost *task.Claim
}

// StatusUpdate reports a task's new status. TaskID and ContextID may be "" in events of remote agents.
type StatusUpdate struct {
	TaskID    string
	ContextID string
	Status    Status
	Cost      *task.Claim // of the task so far, as in Task
}

// ArtifactUpdate carries a new artifact or, if Append is true, further parts of an artifact that was
// sent before.
type ArtifactUpdate struct {
	TaskID    string
	ContextID string
	Artifact  task.Artifact
	Append    bool
	Last      bool
}

// Event is one event of an agent. Exactly one of the first four fields is set.
type Event struct {
	Task     *Task
	Message  *Message
	Status   *StatusUpdate
	Artifact *ArtifactUpdate
	// Metadata is the metadata of the event itself. It is written into answers of this portal, but not
	// read from remote agents.
	Metadata map[string]any
}

// Cost returns the cost of the task so far, as its agent states it in the event; nil for no statement.
func (e Event) Cost() *task.Claim {
	switch {
	case e.Task != nil:
		return e.Task.Cost
	case e.Status != nil:
		return e.Status.Cost
	case e.Message != nil:
		return e.Message.Cost
	}
	return nil
}

// IDs returns the ids of the task and context of the event; either may be "".
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
