// Package notify sends events to outside addresses: webhooks of accounts, signed as in Standard
// Webhooks, and the push notifications of A2A that the caller of a task asked for. Services do not
// depend on it: the store writes events as rows in the transaction of the change itself and Run reads
// these rows. A crash therefore loses nothing, and a lost wake-up only delays. One process owns the
// database, so a row needs no lease: a send that the process did not finish is repeated.
//
// Rows hold ids and states. Texts are read when they are sent, with the rights that the owner of the
// hook has at that time. The package depends neither on SQL nor on the way a protocol writes a task.
package notify

import (
	"strings"
	"time"

	"agentsite/internal/task"
)

// Kind is the kind of a hook.
type Kind string

// A Webhook belongs to an account, a Push to the caller of one task.
const (
	Webhook Kind = "webhook"
	Push    Kind = "push"
)

// State is the state of a hook.
type State string

// Events are sent to an Active hook. A Paused one was stopped by its owner, a Failed one by the portal,
// because its address did not answer for long.
const (
	Active State = "active"
	Paused State = "paused"
	Failed State = "failed"
)

// Type is the type of an event. The values are part of the API.
type Type string

// The events of webhooks, and TaskState, which only push hooks get.
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

// Types are the events that a webhook may choose, in the order of forms.
var Types = []Type{TaskEnded, TaskAsks, MessageSaid, AgentRegistered, AgentChanged, AgentRemoved, AgentLiveness, AgentReported}

// Hook is an address to which events are sent.
type Hook struct {
	ID   string
	Kind Kind
	// OwnerKind and OwnerID identify the owner: an account or, for a push hook, the caller of the task.
	OwnerKind, OwnerID string
	// TaskID is the task of a push hook, Name the client's name for the hook and Version the version of
	// A2A for its bodies.
	TaskID, Name, Version string
	Label                 string
	URL                   string
	Host                  string // the site, without a port; limits count by it
	Events                []Type // of a webhook
	Scheme                string // of the Authorization header of a push hook
	Sealed                []byte
	State                 State
	Reason                string // why it failed, or fails now
	// Waiting is the number of events to be sent, Missed the number of events dropped because
	// MaxWaiting were waiting.
	Waiting, Missed      int
	Failures             int // failed attempts in a row
	FailingSince         time.Time
	NextAt               time.Time
	CreatedAt, UpdatedAt time.Time
}

// Bounds of the stored data.
const (
	MaxWebhooks = 20   // per account
	MaxPushes   = 10   // per task
	MaxWaiting  = 1000 // events per hook
	MaxAttempts = 50   // shown per webhook
	maxLabel    = 60   // characters
	maxReason   = 300  // bytes
)

// Event is one event for one hook.
type Event struct {
	Seq   int64  // its position among the hook's events
	ID    string // the same in each attempt
	Type  Type
	At    time.Time
	Facts Facts
}

// Facts are the data that the store has when an event happens. They are stored as JSON.
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

// Attempt is one try to send an event.
type Attempt struct {
	EventID string
	Type    Type
	At      time.Time
	Status  int // HTTP status, 0 without an answer
	Took    time.Duration
	Error   string // "" if the receiver accepted it
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
