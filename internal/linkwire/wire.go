// Package linkwire is the protocol of agents that dial in, as docs/link.md
// describes it: its messages and bounds, the WebSocket they travel over, and
// the agent's side of it. The portal's driver, the door and the command line
// share it. It knows nothing of accounts, the directory or storage.
package linkwire

import (
	"encoding/json"
	"time"
)

// Version is the version of the protocol, Subprotocol its name in the
// WebSocket handshake, Path where a portal takes it.
const (
	Version     = 1
	Subprotocol = "agentsite.link.v1"
	Path        = "/link"
)

// Bounds of both sides.
const (
	// MaxMessage bounds one message, MaxHello the first one: it may come from
	// somebody who has not proved anything yet.
	MaxMessage = 1 << 20
	MaxHello   = 128 << 10
	// MaxText bounds the text of one answer, MaxParts its parts.
	MaxText  = 256 << 10
	MaxParts = 32
	// MaxArtifacts and MaxArtifactBytes bound what one task produces.
	MaxArtifacts     = 100
	MaxArtifactBytes = 2 << 20
	// MaxTasks is the most an agent may work on at once; DefaultTasks is what
	// it gets when it does not say.
	MaxTasks     = 64
	DefaultTasks = 8
	MaxStatus    = 200
	MaxReason    = 300
	maxDepth     = 64
)

// Times of both sides.
const (
	// HelloWait is how long a new connection may take to say hello.
	HelloWait = 10 * time.Second
	// PingEvery is how often each side pings; after Silence without a byte
	// the other side is gone.
	PingEvery = 5 * time.Second
	Silence   = 10 * time.Second
	// SendWait bounds the sending of one message.
	SendWait = 10 * time.Second
	// CloseWait bounds the closing handshake.
	CloseWait = 2 * time.Second
)

// Close codes of the WebSocket beside those of RFC 6455.
const (
	CodeReplaced = 4001 // another connection of the same agent took over
	CodeRevoked  = 4003 // the token or account ended, or the agent is not yours any more
)

// What Close gets as a reason; they choose the close code.
const (
	ReasonReplaced = "replaced: this agent has connected elsewhere"
	ReasonRevoked  = "revoked: the token, the account or the right to this agent has ended"
	ReasonProve    = "prove: come back and show that you still may"
	ReasonRestart  = "restart: the portal stops, come back and resume"
	ReasonSilent   = "silent: nothing was heard for too long"
)

// The methods. Hello and done are requests of the agent, delta, status and
// artifact its notifications; task and resume are requests of the portal,
// cancel its notification.
const (
	MethodHello    = "hello"
	MethodDelta    = "delta"
	MethodStatus   = "status"
	MethodArtifact = "artifact"
	MethodDone     = "done"
	MethodTask     = "task"
	MethodResume   = "resume"
	MethodCancel   = "cancel"
)

// Codes of errors, beside those of JSON-RPC 2.0.
const (
	ErrParse     = -32700
	ErrRequest   = -32600
	ErrMethod    = -32601
	ErrParams    = -32602
	ErrRefused   = -32001 // hello was refused; data.kind says why
	ErrLease     = -32002 // the lease is not held any more: forget the task
	ErrNotNow    = -32003 // not resumed on this connection: wait for resume
	ErrBusy      = -32004 // the agent takes no more tasks now
	ErrDeclined  = -32005 // the agent does not want this task
	ErrForgotten = -32006 // the agent does not know the task it should resume
)

// Hello is the first message of the agent.
type Hello struct {
	Protocol int    `json:"protocol"`
	Name     string `json:"name"`
	Client   string `json:"client,omitempty"`
	// Title, Description and Skills are used when the agent is created, and
	// leave a registered one as it is.
	Title       string  `json:"title,omitempty"`
	Description string  `json:"description,omitempty"`
	Skills      []Skill `json:"skills,omitempty"`
	// Token is for programs that cannot set the Authorization header.
	Token    string `json:"token,omitempty"`
	MaxTasks int    `json:"max_tasks,omitempty"`
	// Resume lists the tasks the agent holds a lease on.
	Resume []Held `json:"resume,omitempty"`
}

// Skill is one thing the agent can do.
type Skill struct {
	ID          string   `json:"id,omitempty"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Examples    []string `json:"examples,omitempty"`
}

// Held is a task with its lease; Offset is how many bytes of its text there
// are, at the side that says it.
type Held struct {
	Task   string `json:"task"`
	Lease  int64  `json:"lease"`
	Offset int    `json:"offset"`
}

// Welcome answers hello.
type Welcome struct {
	Agent           string `json:"agent"` // its handle
	Portal          string `json:"portal"`
	Protocol        int    `json:"protocol"`
	PingSeconds     int    `json:"ping_seconds"`
	LeaseSeconds    int    `json:"lease_seconds"`
	MaxMessageBytes int    `json:"max_message_bytes"`
	MaxTextBytes    int    `json:"max_text_bytes"`
	MaxTasks        int    `json:"max_tasks"`
}

// Task hands a task to the agent.
type Task struct {
	Task  string `json:"task"`
	Lease int64  `json:"lease"`
	// Text is Parts as plain text.
	Text         string `json:"text"`
	Parts        []Part `json:"parts"`
	History      []Turn `json:"history"`
	Caller       Caller `json:"caller"`
	Conversation string `json:"conversation"`
	// Attempt counts how often this task was handed to an agent, from 1.
	Attempt int `json:"attempt"`
	// Continued is true when the agent asked for input and this is it.
	Continued bool `json:"continued,omitempty"`
}

// Turn is one earlier message of the conversation.
type Turn struct {
	Speaker string `json:"speaker"`
	Mine    bool   `json:"mine"`
	Parts   []Part `json:"parts"`
}

// Caller is who asks, as far as an agent may know.
type Caller struct {
	Kind   string `json:"kind"`
	Handle string `json:"handle"`
}

// Part is a piece of content, in the JSON of A2A 1.0: exactly one of Text,
// Raw, URL and Data is set.
type Part struct {
	Text      string          `json:"text,omitempty"`
	Raw       []byte          `json:"raw,omitempty"`
	URL       string          `json:"url,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// Delta is more of an answer: Text stands at byte Offset of it.
type Delta struct {
	Task   string `json:"task"`
	Lease  int64  `json:"lease"`
	Offset int    `json:"offset"`
	Text   string `json:"text"`
}

// Status says in a few words what the agent is doing.
type Status struct {
	Task  string `json:"task"`
	Lease int64  `json:"lease"`
	Text  string `json:"text"`
}

// Produced is an artifact of a task; the same id again replaces it.
type Produced struct {
	Task     string   `json:"task"`
	Lease    int64    `json:"lease"`
	Artifact Artifact `json:"artifact"`
}

// Artifact is something a task produced, in the JSON of A2A 1.0.
type Artifact struct {
	ID          string `json:"artifactId"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Parts       []Part `json:"parts"`
}

// Done ends a task. Without Text and Parts the text of the deltas is the
// answer.
type Done struct {
	Task   string `json:"task"`
	Lease  int64  `json:"lease"`
	State  string `json:"state"`
	Text   string `json:"text,omitempty"`
	Parts  []Part `json:"parts,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// The states of Done.
const (
	Completed     = "completed"
	Failed        = "failed"
	InputRequired = "input_required"
	Rejected      = "rejected"
)

// Cancel tells the agent to stop and forget a task.
type Cancel struct {
	Task   string `json:"task"`
	Lease  int64  `json:"lease"`
	Reason string `json:"reason,omitempty"`
}

// Accepted answers task, resume and done.
type Accepted struct {
	Accepted bool `json:"accepted"`
}
