// Package task is the durable core that every answer runs through: a task is
// one piece of work one agent was asked for, in the vocabulary of A2A 1.0. It
// is submitted durably, dispatched, and ends in exactly one terminal state. The
// package holds the types, the rules of who may see and stop a task, and the
// ports that storage and the runtime fill; it knows nothing of SQL, HTTP or
// how any kind of agent is reached.
package task

import (
	"encoding/json"
	"strings"
	"time"
)

// State is where a task is, as in A2A 1.0 (§4.1.3), in lower case.
type State string

// The states. Completed, Failed, Canceled and Rejected are terminal;
// InputRequired and AuthRequired interrupt the task until its caller acts.
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

// States lists the states, in the order of a task's life.
func States() []State {
	return []State{Submitted, Working, InputRequired, AuthRequired, Completed, Failed, Canceled, Rejected}
}

// Terminal reports whether nothing can follow s.
func (s State) Terminal() bool {
	return s == Completed || s == Failed || s == Canceled || s == Rejected
}

// Active reports whether the runtime still has something to do.
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

// TextPart returns a part that holds plain text or Markdown.
func TextPart(s string) Part { return Part{Text: s} }

// PlainText joins the text of parts, one paragraph each; other parts are
// named in brackets so that a reader of text knows of them.
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

// Artifact is something a task produced, as in A2A 1.0.
type Artifact struct {
	ID          string `json:"artifactId"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Parts       []Part `json:"parts"`
}

// Task is one piece of work. ConversationID is A2A's contextId.
type Task struct {
	ID             string
	ConversationID string
	AgentID        string
	AgentHandle    string
	// CallerKind and CallerID are who asked; only they, and members of the
	// conversation, see the task.
	CallerKind   string
	CallerID     string
	CallerHandle string
	// MessageSeq is the message in the conversation that asks for this work.
	MessageSeq int64
	State      State
	// Reason says in plain words why a task failed, was rejected or waits.
	Reason    string
	Artifacts []Artifact
	// Attempt counts how often the task was handed to its agent, from 1.
	Attempt int
	// Checkpoint is what the driver stored to go on after a restart.
	Checkpoint json.RawMessage
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// AnswerSeq is the message that holds the final answer, 0 while none.
	AnswerSeq int64
	// Face says through which door the work was asked for: page, api, a2a …
	Face string
	// RootSeq is the message of a person that the work goes back to, and Hop
	// how many agents called each other in between; both 0 when a person asked.
	RootSeq int64
	Hop     int
	// Via is the agents that the work has passed: those of other doors and
	// portals first, then those between here.
	Via Chain
	// Budget is what came along with what was asked from outside; it holds for
	// all that the work leads to.
	Budget Budget
	// Replaces is the answer that is given again, 0 for none.
	Replaces int64
	// Share says what of the conversation goes along beside the message; ""
	// is everything. See chat.Share.
	Share string
	// Direct is Result.Direct of a task that has ended.
	Direct bool
}
