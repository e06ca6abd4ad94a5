// Package linkwire is the link protocol of agents that connect to the portal, described in
// docs/link.md: its messages and bounds, the WebSocket, and the agent's side of it. The portal's
// driver, the link endpoint and the command line share it. It does not depend on accounts, the
// directory or storage.
package linkwire

import (
	"encoding/json"
	"time"
)

// Version is the number of the protocol's version, Subprotocol its name in the WebSocket handshake,
// and Path the route of the WebSocket on a portal.
const (
	Version     = 1
	Subprotocol = "agentsite.link.v1"
	Path        = "/link"
)

// Bounds that both sides check.
const (
	// MaxMessage bounds one message, in bytes. MaxHello bounds the first one, before its sender has
	// authenticated.
	MaxMessage = 1 << 20
	MaxHello   = 128 << 10
	// MaxText bounds the text of one answer in bytes, MaxParts the number of its parts.
	MaxText  = 256 << 10
	MaxParts = 32
	// MaxArtifacts and MaxArtifactBytes bound the artifacts of one task, by number and by total
	// size.
	MaxArtifacts     = 100
	MaxArtifactBytes = 2 << 20
	// MaxTasks is the maximum number of concurrent tasks of an agent. DefaultTasks is used for an
	// agent that gives no number in hello.
	MaxTasks     = 64
	DefaultTasks = 8
	MaxStatus    = 200
	MaxReason    = 300
	maxDepth     = 64
)

// Times that both sides keep.
const (
	// HelloWait is the time within which a new connection must send hello.
	HelloWait = 10 * time.Second
	// PingEvery is the interval of each side's pings. After Silence without a byte the other side
	// counts as disconnected.
	PingEvery = 5 * time.Second
	Silence   = 10 * time.Second
	// SendWait bounds the sending of one message. A slower receiver counts as disconnected.
	SendWait = 10 * time.Second
	// CloseWait bounds the closing handshake. After it the connection is cut.
	CloseWait = 2 * time.Second
)

// Close codes of the WebSocket in addition to those of RFC 6455.
const (
	CodeReplaced = 4001 // another connection of the same agent replaced this one
	CodeRevoked  = 4003 // the token or account ended, or the agent has another owner
)

// Reasons for Close. The first word of a reason determines the close code.
const (
	ReasonReplaced = "replaced: this agent has connected elsewhere"
	ReasonRevoked  = "revoked: the token, the account or the right to this agent has ended"
	ReasonProve    = "prove: come back and show that you still may"
	ReasonRestart  = "restart: the portal stops, come back and resume"
	ReasonSilent   = "silent: nothing was heard for too long"
)

// The methods. The agent sends hello and done as requests and delta, status and artifact as
// notifications. The portal sends task and resume as requests and cancel as a notification.
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

// Codes of errors: first those of JSON-RPC 2.0 that are used, then those of this protocol.
const (
	ErrParse     = -32700
	ErrRequest   = -32600
	ErrMethod    = -32601
	ErrParams    = -32602
	ErrRefused   = -32001 // answer to hello; data.kind has the reason
	ErrLease     = -32002 // the agent no longer has the lease: it must drop the task
	ErrNotNow    = -32003 // the task was not resumed on this connection yet: wait for resume
	ErrBusy      = -32004 // the agent takes no more tasks now
	ErrDeclined  = -32005 // the agent does not want this task
	ErrForgotten = -32006 // the agent does not have the task that it should resume
)

// Hello is the first message of the agent: the agent to connect as, its limits, and the tasks that
// it still works on.
type Hello struct {
	Protocol int    `json:"protocol"`
	Name     string `json:"name"`
	Client   string `json:"client,omitempty"`
	// Title, Description and Skills are used when the agent is created. They do not change a registered
	// agent.
	Title       string  `json:"title,omitempty"`
	Description string  `json:"description,omitempty"`
	Skills      []Skill `json:"skills,omitempty"`
	// Tools names the portal's tools that the agent uses. Like the fields above, it is used when the agent is created.
	Tools []string `json:"tools,omitempty"`
	// Team is true for a program that speaks for itself in teams. It is used when the agent is created.
	Team bool `json:"team,omitempty"`
	// Token authenticates programs that cannot set the Authorization header, such as those in
	// browsers.
	Token    string `json:"token,omitempty"`
	MaxTasks int    `json:"max_tasks,omitempty"`
	// Resume lists the tasks on which the agent still holds a lease after a reconnect.
	Resume []Held `json:"resume,omitempty"`
}

// Skill is one ability of an agent, in the form of the A2A card.
type Skill struct {
	ID          string   `json:"id,omitempty"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Examples    []string `json:"examples,omitempty"`
}

// Held is a task with its lease, the number that marks one run of the task at an agent. Offset is
// the length of the answer's text, in bytes, at the sender of this message.
type Held struct {
	Task   string `json:"task"`
	Lease  int64  `json:"lease"`
	Offset int    `json:"offset"`
}

// Welcome is the result of hello: the identity of the agent and the bounds of this connection.
type Welcome struct {
	Agent           string `json:"agent"` // handle of the agent
	Portal          string `json:"portal"`
	Protocol        int    `json:"protocol"`
	PingSeconds     int    `json:"ping_seconds"`
	LeaseSeconds    int    `json:"lease_seconds"`
	MaxMessageBytes int    `json:"max_message_bytes"`
	MaxTextBytes    int    `json:"max_text_bytes"`
	MaxTasks        int    `json:"max_tasks"`
}

// Task gives a task to the agent. The agent answers Accepted, or refuses with ErrBusy or
// ErrDeclined.
type Task struct {
	Task  string `json:"task"`
	Lease int64  `json:"lease"`
	// Text is the content of Parts as plain text, for programs that handle only text.
	Text         string `json:"text"`
	Parts        []Part `json:"parts"`
	History      []Turn `json:"history"`
	Caller       Caller `json:"caller"`
	Conversation string `json:"conversation"`
	// Attempt counts the runs of this task at an agent, from 1.
	Attempt int `json:"attempt"`
	// Continued is true when the agent asked for input in this task and the message is that input.
	Continued bool `json:"continued,omitempty"`
	// Tools is nil if the agent gets none of the portal's tools.
	Tools *Tools `json:"tools,omitempty"`
}

// Tools is an MCP server with the portal's tools for one task, and the token for it, which is secret.
type Tools struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// Turn is one earlier message of the conversation, sent as context for the task.
type Turn struct {
	Speaker string `json:"speaker"`
	Mine    bool   `json:"mine"`
	Parts   []Part `json:"parts"`
}

// Caller is the identity of the caller as it may be shown to an agent.
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

// Delta is a piece of an answer. Text starts at byte Offset of the whole answer, so that a repeated
// piece is detected.
type Delta struct {
	Task   string `json:"task"`
	Lease  int64  `json:"lease"`
	Offset int    `json:"offset"`
	Text   string `json:"text"`
}

// Status is a few words about the agent's current step, which replace the last ones.
type Status struct {
	Task  string `json:"task"`
	Lease int64  `json:"lease"`
	Text  string `json:"text"`
}

// Produced sends an artifact of a task. An artifact with the same id is replaced.
type Produced struct {
	Task     string   `json:"task"`
	Lease    int64    `json:"lease"`
	Artifact Artifact `json:"artifact"`
}

// Artifact is a result of a task besides its text, such as a file, in the JSON of A2A 1.0.
type Artifact struct {
	ID          string `json:"artifactId"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Parts       []Part `json:"parts"`
}

// Done ends a task. Without Text and Parts the text of the sent deltas is the answer.
type Done struct {
	Task   string `json:"task"`
	Lease  int64  `json:"lease"`
	State  string `json:"state"`
	Text   string `json:"text,omitempty"`
	Parts  []Part `json:"parts,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// The states that a Done may have.
const (
	Completed     = "completed"
	Failed        = "failed"
	InputRequired = "input_required"
	Rejected      = "rejected"
)

// Cancel asks the agent to stop a task and to send nothing more about it.
type Cancel struct {
	Task   string `json:"task"`
	Lease  int64  `json:"lease"`
	Reason string `json:"reason,omitempty"`
}

// Accepted is the result of the requests task, resume and done.
type Accepted struct {
	Accepted bool `json:"accepted"`
}
