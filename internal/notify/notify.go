// Package notify tells addresses outside of what happens here: webhooks of
// accounts, signed as Standard Webhooks has it, and the push notifications of
// A2A that the caller of a task asked for. Services do not know it. What is to
// be told is written by the store as rows in the transaction of the change
// itself; Run reads these rows, so a crash loses nothing, and a wake-up that
// is lost costs nothing but a moment. One process owns the database, so a row
// needs no lease: what was being sent when it died is sent again.
//
// Rows hold ids and states. Texts are read when they are sent, with the rights
// that whoever is told has by then. The package knows neither SQL nor how a
// protocol writes a task.
package notify

import (
	"strings"
	"time"

	"agentsite/internal/task"
)

// Kind says what a hook is.
type Kind string

// A Webhook belongs to an account, a Push to the caller of one task.
const (
	Webhook Kind = "webhook"
	Push    Kind = "push"
)

// State says whether a hook is told of events.
type State string

// An Active hook is told; a Paused one was stopped by its owner, a Failed one
// by the portal, because its address did not answer for long.
const (
	Active State = "active"
	Paused State = "paused"
	Failed State = "failed"
)

// Type is what happened. They are part of the API.
type Type string

// The events of webhooks, and TaskState, which only push hooks are told.
const (
	TaskEnded       Type = "task.ended"
	TaskAsks        Type = "task.input_required"
	MessageSaid     Type = "message.said"
	AgentRegistered Type = "agent.registered"
	AgentChanged    Type = "agent.changed"
	AgentRemoved    Type = "agent.removed"
	AgentLiveness   Type = "agent.liveness"
	AgentReported   Type = "agent.reported"
	Tested          Type = "webhook.test"
	TaskState       Type = "task.state"
)

// Types are those that a webhook may choose, in the order forms show them.
var Types = []Type{TaskEnded, TaskAsks, MessageSaid, AgentRegistered, AgentChanged, AgentRemoved, AgentLiveness,
	AgentReported}

// Hook is an address that is told of events.
type Hook struct {
	ID   string
	Kind Kind
	// OwnerKind and OwnerID are who is told: an account or, of a push hook,
	// the caller of the task.
	OwnerKind, OwnerID string
	// TaskID is the task of a push hook, Name what its client calls it and
	// Version the form of A2A that it is told in.
	TaskID, Name, Version string
	Label                 string
	URL                   string
	Host                  string // the site, without a port: what bounds are counted by
	Events                []Type // of a webhook
	Scheme                string // of the Authorization that a push hook wants
	Sealed                []byte
	State                 State
	Reason                string // why it failed, or fails now
	// Waiting events are to be sent; Missed ones were not kept, because
	// MaxWaiting did already.
	Waiting, Missed      int
	Failures             int // attempts in a row
	FailingSince         time.Time
	NextAt               time.Time
	CreatedAt, UpdatedAt time.Time
}

// Bounds of what is kept.
const (
	MaxWebhooks = 20   // of an account
	MaxPushes   = 10   // of a task
	MaxWaiting  = 1000 // events of one hook
	MaxAttempts = 50   // that are shown of a webhook
	maxLabel    = 60   // characters
	maxReason   = 300  // bytes
)

// Event is something that a hook is to be told.
type Event struct {
	Seq   int64  // its place among the hook's
	ID    string // the same each time it is sent
	Type  Type
	At    time.Time
	Facts Facts
}

// Facts are what the store knows of an event when it happens. They are kept as
// JSON.
type Facts struct {
	TaskID         string     `json:"task_id,omitempty"`
	State          task.State `json:"state,omitempty"`
	Reason         string     `json:"reason,omitempty"`
	ConversationID string     `json:"conversation_id,omitempty"`
	Seq            int64      `json:"seq,omitempty"`
	Agent          string     `json:"agent,omitempty"` // its handle
	Version        int        `json:"version,omitempty"`
	Live           string     `json:"live,omitempty"`
	Was            string     `json:"was,omitempty"`
	ReportID       string     `json:"report_id,omitempty"`
}

// Attempt is one try to tell a hook something.
type Attempt struct {
	EventID string
	Type    Type
	At      time.Time
	Status  int // of HTTP, 0 without an answer
	Took    time.Duration
	Error   string // "" if it was taken
}

// JoinTypes writes types as they are stored, with a space around each.
func JoinTypes(list []Type) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(" " + string(t))
	}
	return b.String() + " "
}

// SplitTypes is the inverse of JoinTypes.
func SplitTypes(s string) []Type {
	var out []Type
	for f := range strings.FieldsSeq(s) {
		out = append(out, Type(f))
	}
	return out
}
