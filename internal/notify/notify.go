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

// Kind distinguishes the two uses of a hook.
type Kind string

// The kinds of hooks: a Webhook belongs to an account, a Push to the caller of one task.
const (
	Webhook Kind = "webhook"
	Push    Kind = "push"
)

// State says whether events are sent to a hook.
type State string

// The states of a hook. Events are sent only to an Active one. Its owner stopped a Paused one; the
// portal stopped a Failed one, because its address accepted nothing for too long.
const (
	Active State = "active"
	Paused State = "paused"
	Failed State = "failed"
)

// Type is the type of an event. Receivers see the values, so they must not change.
type Type string

// The events. TaskState goes to push hooks only, all others to webhooks only.
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

// Types are the events that an owner may choose for a webhook, in the order that forms show them.
var Types = []Type{TaskEnded, TaskAsks, MessageSaid, AgentRegistered, AgentChanged, AgentRemoved, AgentLiveness, AgentReported}

// Hook is an outside address to which events are sent, with its settings and the state of its
// deliveries.
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
	Host                  string // registrable domain or IP address without a port, the key of limits per host
	Events                []Type // chosen events of a webhook
	Scheme                string // scheme of the Authorization header of a push hook
	Sealed                []byte
	State                 State
	Reason                string // why sending failed, "" after a success
	// Waiting is the number of events to be sent, Missed the number of events dropped because
	// MaxWaiting were waiting.
	Waiting, Missed      int
	Failures             int // failed attempts in a row, 0 after a success
	FailingSince         time.Time
	NextAt               time.Time
	CreatedAt, UpdatedAt time.Time
}

// Bounds of the data that is stored.
const (
	MaxWebhooks = 20   // webhooks per account
	MaxPushes   = 10   // push hooks per task
	MaxWaiting  = 1000 // waiting events per hook; further ones are dropped
	MaxAttempts = 50   // last attempts that are stored per webhook
	maxLabel    = 60   // characters of a webhook's label
	maxReason   = 300  // bytes of a stored reason
)

// Event is one event that waits to be sent to one hook.
type Event struct {
	Seq   int64  // position among the hook's events; they are sent in this order
	ID    string // the same in each attempt, so that receivers can detect repeats
	Type  Type
	At    time.Time
	Facts Facts
}

// Facts are the ids and states of an event at the time when it happened, stored as JSON. Which
// fields are set depends on the type of the event.
type Facts struct {
	TaskID         string     `json:"task_id,omitempty"`
	State          task.State `json:"state,omitempty"`
	Reason         string     `json:"reason,omitempty"`
	ConversationID string     `json:"conversation_id,omitempty"`
	Seq            int64      `json:"seq,omitempty"`
	Agent          string     `json:"agent,omitempty"` // handle of the agent
	Version        int        `json:"version,omitempty"`
	Live           string     `json:"live,omitempty"`
	Was            string     `json:"was,omitempty"`
	ReportID       string     `json:"report_id,omitempty"`
}

// Attempt is one try to send an event, as the owner of a webhook sees it.
type Attempt struct {
	EventID string
	Type    Type
	At      time.Time
	Status  int // HTTP status of the answer, 0 without an answer
	Took    time.Duration
	Error   string // "" if the receiver accepted it
}

// JoinTypes writes types as they are stored, with a space around each, so that a LIKE query finds a
// whole word.
func JoinTypes(list []Type) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(" " + string(t))
	}
	return b.String() + " "
}

// SplitTypes is the inverse of JoinTypes. An empty text gives no types.
func SplitTypes(s string) []Type {
	var out []Type
	for f := range strings.FieldsSeq(s) {
		out = append(out, Type(f))
	}
	return out
}
