package task

import (
	"context"
	"encoding/json"
	"errors"
	"io"
)

// ErrShutdown is the cause of a call's context when the portal stops: the task
// goes on after the next start, so the far side is not told to stop.
var ErrShutdown = errors.New("the portal stops")

// Agent runs tasks: every kind of agent is reached or executed through this
// one interface, and every implementation passes the conformance kit in
// internal/testing/agenttest.
//
// Run does the work of one call and returns its outcome exactly once. While it
// runs it may use out; after it has returned it must not. When ctx ends Run
// must return within 500 ms, having told the far side to stop where the
// protocol can; the outcome is then ignored, the text streamed so far is kept.
// An error is a failed task: a *fault.Error's safe sentence is shown to the
// caller, any other error is logged and shown as a generic sentence. Run must
// not panic, and must bound what it reads; it is called concurrently.
type Agent interface {
	Run(ctx context.Context, call Call, out Sink) (Result, error)
}

// Stopper is an Agent whose far side keeps a task while nothing runs here: one
// that waits for input, or that was begun before the portal was started again.
type Stopper interface {
	// Stop tells the far side that the task has ended here. It does not wait
	// for the far side, and of the call only the agent, the caller and the
	// checkpoint are set.
	Stop(ctx context.Context, call Call)
}

// Sink takes what an agent produces before its outcome. Its methods may be
// called from one goroutine at a time.
type Sink interface {
	// Text appends to the answer that readers see growing. It is live, not
	// durable: the Result's parts are what stays.
	Text(delta string)
	// Replace discards the text so far and starts again with text.
	Replace(text string)
	// Status tells readers in a few words what the agent is doing.
	Status(text string)
	// Artifact adds an artifact, or replaces the one with the same id.
	Artifact(a Artifact)
	// Checkpoint stores state durably before it returns. After a restart the
	// next attempt finds it in Call.Checkpoint. A driver stores its
	// idempotency key, or the far side's task id, here before it relies on it.
	Checkpoint(ctx context.Context, state json.RawMessage) error
}

// Call is one task as its agent is asked to do it.
type Call struct {
	TaskID         string
	ConversationID string
	// MessageID is the id of the asking message: the idempotency key towards
	// agents that know such a thing.
	MessageID string
	// ClientID reads the id that the caller gave the asking message, "" for
	// none. It is nil where nobody kept it.
	ClientID func(ctx context.Context) (string, error)
	Agent    Target
	Caller   Caller
	// Caller is the person behind the call. Speaker is who said Parts: an
	// agent, where one calls another for that person; zero for the caller.
	Speaker Speaker
	// Parts is what is asked now; History what was said before, oldest first,
	// already cut to what may go along.
	Parts   []Part
	History []Turn
	// Via is the agents whose work led to this call, without the agent itself.
	Via Chain
	// Budget is what the call may lead to, itself left out.
	Budget Budget
	// Files opens the files of this portal that parts refer to; nil where
	// there can be none.
	Files Files
	// Attempt is 1 the first time. Checkpoint is nil unless stored earlier.
	Attempt    int
	Checkpoint json.RawMessage
	// Previous is the last checkpoint of this agent's earlier task in the same
	// conversation, nil when there is none: a driver finds the far side's
	// context there. Attempt 1 with a Checkpoint is a task that waited for
	// input and now got it: Parts is that input.
	Previous json.RawMessage
}

// Target is the agent as its driver needs it. Secret is opened only for the
// call and must go nowhere but to the agent's own origin.
type Target struct {
	ID string
	// Portal is the id of the agent's portal in the network; empty: this one.
	Portal   string
	Name     string
	Handle   string
	Kind     string
	Endpoint string
	Config   json.RawMessage
	Secret   string
}

// Caller is who asks, as far as an agent may know.
type Caller struct {
	Kind   string // guest, person, operator, portal (somebody of another one)
	Handle string
	ID     string
}

// Turn is one earlier message of the conversation. Mine is true for what this
// same agent said, Asker for what the caller did.
type Turn struct {
	Mine    bool
	Asker   bool
	Speaker string // handle
	Kind    string // person, guest, agent
	Parts   []Part
}

// Said is who said what is asked now.
func (c Call) Said() Speaker {
	if c.Speaker != (Speaker{}) {
		return c.Speaker
	}
	return Speaker{Kind: c.Caller.Kind, Handle: c.Caller.Handle}
}

// Result is how a call ended. State is one of Completed, Failed, Rejected,
// InputRequired, AuthRequired.
type Result struct {
	State  State
	Parts  []Part
	Reason string
	// Direct is of a Completed result that is a plain message and no work: a
	// protocol that tells the two apart (A2A §3.1.1) answers with the message.
	Direct bool
}

// Done returns a Completed result with one text part.
func Done(text string) Result {
	return Result{State: Completed, Parts: []Part{TextPart(text)}}
}

// Files opens the files of this portal that parts of a call refer to: those
// whose URL begins with FilePath.
type Files interface {
	// Open returns what a file holds; the caller closes it.
	Open(ctx context.Context, url string) (File, io.ReadCloser, error)
	// Address returns an absolute URL under which anybody who has it can fetch
	// the file for a while.
	Address(ctx context.Context, url string) (string, error)
}

// FilePath is how the URL of a part begins that refers to a file of this
// portal; a hash follows.
const FilePath = "/files/"

// File is what is known of a file without reading it.
type File struct {
	MediaType string
	Size      int64
}

// Speaker is who said a message, as far as an agent may know.
type Speaker struct {
	Kind   string // person, guest, agent
	Handle string
}
