// Package task is the durable core of every answer. A task is one piece of work that one agent was
// asked for, in the vocabulary of A2A 1.0. It is submitted durably, dispatched, and ends in exactly one
// terminal state. The package holds the types, the access rules for reading and stopping a task, and
// the ports that storage and the runtime implement. It does not depend on SQL, HTTP or the way any kind
// of agent is reached.
package task

import (
	"encoding/json"
	"strings"
	"time"
)

// State is the state of a task, as in A2A 1.0 (§4.1.3), in lower case.
type State string

// The states. Completed, Failed, Canceled and Rejected are final. InputRequired and AuthRequired
// pause the task until its caller acts.
const (
	Submitted     State = "submitted"
	Working       State = "working"
	InputRequired State = "input_required"
	AuthRequired  State = "auth_required"
	Completed     State = "completed"
	Failed        State = "failed"
	Canceled      State = "canceled"
	Rejected      State = "rejected"
)

// States lists all states, in the order in which a task can reach them.
func States() []State {
	return []State{Submitted, Working, InputRequired, AuthRequired, Completed, Failed, Canceled, Rejected}
}

// Terminal reports whether s is final: a task in a final state never changes again.
func (s State) Terminal() bool {
	return s == Completed || s == Failed || s == Canceled || s == Rejected
}

// Active reports whether the runtime has to run the task, now or after a restart.
func (s State) Active() bool { return s == Submitted || s == Working }

// A2A returns the state's name in A2A 1.0 JSON, for example
// TASK_STATE_INPUT_REQUIRED.
func (s State) A2A() string {
	b := []byte("TASK_STATE_" + string(s))
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// Part is a piece of content, in the JSON of A2A 1.0 (§4.1.6): exactly one of
// Text, Raw, URL and Data is set.
type Part struct {
	Text      string          `json:"text,omitempty"`
	Raw       []byte          `json:"raw,omitempty"`
	URL       string          `json:"url,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// TextPart returns a part with the text s, plain or Markdown.
func TextPart(s string) Part { return Part{Text: s} }

// thoughtsKey is the name in the metadata of a part for the thoughts of the model that wrote it.
const thoughtsKey = "thoughts"

// MaxThoughts bounds the thoughts of a part in bytes.
const MaxThoughts = 32 << 10

// WithThoughts returns the part with the thoughts of the model that wrote it. They are for readers of the
// conversation on this portal only: they are no part of the text, and SharedMetadata leaves them out.
func (p Part) WithThoughts(thoughts string) Part {
	if thoughts == "" {
		return p
	}
	thoughts = strings.ToValidUTF8(thoughts[:min(len(thoughts), MaxThoughts)], "")
	p.Metadata, _ = json.Marshal(map[string]string{thoughtsKey: thoughts}) // cannot fail, because it is a string
	return p
}

// Thoughts returns the thoughts of the model that wrote the part, "" for none.
func (p Part) Thoughts() string {
	var meta map[string]json.RawMessage
	var s string
	if len(p.Metadata) == 0 || json.Unmarshal(p.Metadata, &meta) != nil || json.Unmarshal(meta[thoughtsKey], &s) != nil {
		return ""
	}
	return s[:min(len(s), MaxThoughts)]
}

// SharedMetadata returns the metadata of the part for other programs, without thoughts.
func (p Part) SharedMetadata() json.RawMessage {
	var meta map[string]json.RawMessage
	if p.Thoughts() == "" || json.Unmarshal(p.Metadata, &meta) != nil {
		return p.Metadata
	}
	delete(meta, thoughtsKey)
	if len(meta) == 0 {
		return nil
	}
	b, _ := json.Marshal(meta) // cannot fail, because it was read from JSON
	return b
}

// PlainText joins the text of parts, one paragraph each. Other parts are named in brackets, so that a
// reader of plain text sees that they exist.
func PlainText(parts []Part) string {
	var b []byte
	for _, p := range parts {
		s := p.Text
		switch {
		case s != "":
		case strings.HasPrefix(p.URL, FilePath) && p.Filename != "":
			s = "[file " + p.Filename + "]"
		case p.URL != "":
			s = "[file " + p.URL + "]"
		case len(p.Raw) > 0:
			s = "[file " + p.Filename + "]"
		case len(p.Data) > 0:
			s = string(p.Data)
		}
		if len(b) > 0 {
			b = append(b, "\n\n"...)
		}
		b = append(b, s...)
	}
	return string(b)
}

// Artifact is a result of a task besides the answer text, as in A2A 1.0.
type Artifact struct {
	ID          string `json:"artifactId"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Parts       []Part `json:"parts"`
}

// Task is one piece of work that one agent was asked for. ConversationID is the contextId of A2A.
type Task struct {
	ID             string
	ConversationID string
	AgentID        string
	AgentHandle    string
	// CallerKind and CallerID identify the caller. Only the caller and members of the conversation may
	// read the task.
	CallerKind   string
	CallerID     string
	CallerHandle string
	// CallerGroup is the address group of a guest, see ident.Actor.AddrGroup; "" for others. It is stored
	// until the task ends.
	CallerGroup string
	// MessageSeq is the seq of the message that asks for this task.
	MessageSeq int64
	State      State
	// Reason is a sentence for people on why the task failed, was rejected or waits; "" otherwise.
	Reason    string
	Artifacts []Artifact
	// Attempt is the number of times that the task was given to its agent; 0 before the first.
	Attempt int
	// Checkpoint is the state that the driver stored to continue after a restart; nil for none.
	Checkpoint json.RawMessage
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// AnswerSeq is the seq of the message that holds the final answer, 0 while there is none.
	AnswerSeq int64
	// Face names the interface through which the task was requested, such as page, api or a2a.
	Face string
	// RootSeq is the seq of the person's message that started the work, and Hop the number of
	// agent-to-agent calls since then. Both are 0 when a person asked directly.
	RootSeq int64
	Hop     int
	// Via is the chain of agents that led to the task: first those outside this conversation, then
	// those in it.
	Via Chain
	// Budget is the budget of the outside request that led to the task. It bounds all work that the
	// task causes.
	Budget Budget
	// Replaces is the seq of the answer that this task regenerates, 0 if it regenerates none.
	Replaces int64
	// Share selects the earlier messages that the agent gets with the message, "" for all. See
	// chat.Share.
	Share string
	// Direct is Result.Direct of the task's result.
	Direct bool
}
