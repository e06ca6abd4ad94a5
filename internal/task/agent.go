package task

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// ErrShutdown is the cause of the end of a call's context when the portal stops. The task continues
// after the next start, so a driver must not cancel it at the remote agent.
var ErrShutdown = errors.New("the portal stops")

// Agent runs tasks. Every kind of agent is reached or executed through this interface, and every
// implementation passes the conformance kit in internal/testing/agenttest.
//
// Run does the work of one call and returns its outcome exactly once. It may use out until it returns
// and not afterwards. When ctx ends, Run must return within 500 ms, after it canceled the work at the
// remote agent if the protocol has a way to do so. The outcome is then ignored; the text streamed so
// far is kept. An error is a failed task: the safe sentence of a *fault.Error is shown to the caller,
// any other error is logged and shown as a generic sentence. Run must not panic and must bound the data
// it reads. It is called concurrently.
type Agent interface {
	Run(ctx context.Context, call Call, out Sink) (Result, error)
}

// Stopper is an Agent with a remote side that keeps a task while nothing runs here: a task that waits
// for input, or one that began before the portal was restarted.
type Stopper interface {
	// Stop notifies the remote side that the task has ended here. It does not wait for the remote side.
	// Of the call only the agent, the caller and the checkpoint are set.
	Stop(ctx context.Context, call Call)
}

// Sink takes the output of an agent before the agent returns its Result. Its methods may be called
// from one goroutine at a time.
type Sink interface {
	// Text appends to the answer that readers see while it grows. The text is not durable: only the
	// parts of the Result are stored.
	Text(delta string)
	// Replace discards the text so far and starts again with text, for protocols that send whole
	// answers again.
	Replace(text string)
	// Status shows readers a few words about the agent's current step. It replaces the last status.
	Status(text string)
	// Artifact adds an artifact to the task, or replaces the one with the same id.
	Artifact(a Artifact)
	// Checkpoint stores state durably before it returns. After a restart the next attempt finds it
	// in Call.Checkpoint. A driver stores its idempotency key or the remote task id here before it
	// relies on either.
	Checkpoint(ctx context.Context, state json.RawMessage) error
}

// Pauser is a Sink whose task can give its running places to others while it waits for another task. Between Pause and
// Resume the driver must not work. Calls come in pairs.
type Pauser interface {
	Pause()
	Resume()
}

// ClientID is the id that the caller's program gave to a message. It is read from the database only
// when a driver needs it.
type ClientID interface {
	// ReadClientID returns the id, "" if the program gave none.
	ReadClientID(ctx context.Context) (string, error)
}

// Call is one task as the runtime gives it to a driver.
type Call struct {
	TaskID         string
	ConversationID string
	// MessageID is the id of the message that asks for the task. Drivers use it as idempotency key
	// where the protocol has one.
	MessageID string
	// MessageSeq is the position of that message in the conversation, 0 if it is in none.
	MessageSeq int64
	// ClientID is nil if the message cannot have an id from the caller's program.
	ClientID ClientID
	Agent    Target
	Caller   Caller
	// Caller is the account or guest behind the call. Speaker is the author of Parts: an agent, where
	// one agent calls another for that person; zero when the caller wrote them.
	Speaker Speaker
	// Relayed is true for an answer of the person, in their own words, to a question that an agent which was asked by
	// other agents put to them; the agents in between passed both on.
	Relayed bool
	// Parts is the content of the message to answer. History has the earlier messages, oldest
	// first, reduced to those that may be sent to the agent.
	Parts   []Part
	History []Turn
	// Memories are those of the agent that fit the message, the best first.
	Memories []Memory
	// Scope names the choice of messages that the caller lets the agent have; "" if nothing but History may be used.
	Scope string
	// Via is the chain of agents that led to this call, without the agent itself.
	Via Chain
	// Budget bounds the work that the call may cause, without the call itself.
	Budget Budget
	// Files opens the files of this portal that parts refer to; nil if parts cannot refer to any.
	Files Files
	// Attempt is 1 for the first run of the task. Checkpoint is the state that an earlier attempt
	// stored, nil for none.
	Attempt    int
	Checkpoint json.RawMessage
	// Previous is the last checkpoint of this agent's earlier task in the same conversation, nil when
	// there is none. A driver finds the remote side's context there. Attempt 1 with a Checkpoint is a
	// task that waited for input and now got it: Parts is that input.
	Previous json.RawMessage
}

// Target describes an agent for its driver. Secret is decrypted only for the call and must be sent
// nowhere but to the agent's own origin.
type Target struct {
	ID string
	// Portal is the id of the agent's portal in the network; empty for this portal.
	Portal   string
	OwnerID  string
	Name     string
	Handle   string
	Kind     string
	Endpoint string
	Config   json.RawMessage
	Secret   string
}

// Caller is the identity of the caller as it may be shown to an agent.
type Caller struct {
	Kind   string // guest, person, operator, portal (a person of another portal)
	Handle string
	ID     string
}

// Turn is one earlier message of the conversation. Mine is true for messages of the called agent,
// Asker for those of the caller.
type Turn struct {
	Seq     int64 // position in the conversation, 0 if it is in none
	Mine    bool
	Asker   bool
	Speaker string // handle of the author
	Kind    string // person, guest or agent
	Parts   []Part
}

// AskedBy returns the author of the message to answer: the Speaker, or the Caller if there is none.
func (c Call) AskedBy() Speaker {
	if c.Speaker != (Speaker{}) {
		return c.Speaker
	}
	return Speaker{Kind: c.Caller.Kind, Handle: c.Caller.Handle}
}

// ThroughAgents reports whether an agent, of this portal or another one, made the request in the name of the caller.
// Decisions that only the person may make do not count then. An answer of the person that agents only passed on is not
// theirs.
func (c Call) ThroughAgents() bool {
	return !c.Relayed && (len(c.Via) > 0 || c.AskedBy().Kind == "agent")
}

// SummaryKey names a summary. A summary of one Call.Scope is not used in another.
type SummaryKey struct{ ConversationID, AgentID, CallerID, Scope string }

// Summary is a summary of the messages of a conversation up to a position; zero for none.
type Summary struct {
	Text string
	UpTo int64
}

// Result is the outcome of a call. State is one of Completed, Failed, Rejected, InputRequired,
// AuthRequired.
type Result struct {
	State  State
	Parts  []Part
	Reason string
	// Summary is a summary of the earlier messages that was made for this answer, "" for none.
	Summary string
	// Direct is true if a Completed result is a plain message without any work. A protocol that
	// distinguishes the two (A2A §3.1.1) answers with the message instead of a task.
	Direct bool
	// RetryAfter is set if a Rejected result without parts means that the agent is busy: the time after
	// which it probably is not.
	RetryAfter time.Duration
}

// Done returns a Completed result that consists of one text.
func Done(text string) Result {
	return Result{State: Completed, Parts: []Part{TextPart(text)}}
}

// Files opens the files of this portal that parts of a call refer to: those with a URL that begins
// with FilePath.
type Files interface {
	// Open returns the content of a file; the caller closes it.
	Open(ctx context.Context, url string) (File, io.ReadCloser, error)
	// Address returns an absolute URL that grants access to the file for a limited time. It needs no
	// login, so that a remote agent can fetch it.
	Address(ctx context.Context, url string) (string, error)
}

// FilePath is the prefix of the URL of a part that refers to a file of this portal. The hash of the
// file follows.
const FilePath = "/files/"

// File is the stored metadata of a file. Size is in bytes.
type File struct {
	MediaType string
	Size      int64
}

// Speaker is the author of a message, as far as an agent may see it.
type Speaker struct {
	Kind   string // person, guest or agent
	Handle string
}
