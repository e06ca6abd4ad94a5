package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/internal/plaintext"
	"agentsite/internal/task"
)

// Input is the input of a program, as JSON. docs/host.md describes it for authors.
type Input struct {
	Version int    `json:"version"` // 1
	Task    string `json:"task"`
	Agent   string `json:"agent"`
	Caller  Person `json:"caller"`
	// Text is the message to answer, Data its JSON parts. History has earlier messages, oldest first.
	Text    string            `json:"text"`
	Data    []json.RawMessage `json:"data,omitempty"`
	History []Message         `json:"history,omitempty"`
	// Memories are those of the program about the caller that fit the message, the best first.
	Memories []Memory `json:"memories,omitempty"`
	// State is that of the program's last output, Answer the answer to the question that it asked then.
	State  json.RawMessage `json:"state,omitempty"`
	Answer string          `json:"answer,omitempty"`
}

// Person is the author of a message, as far as an agent may see it.
type Person struct {
	Kind   string `json:"kind"`
	Handle string `json:"handle"`
}

// Message is an earlier message. Mine is true for those of the agent.
type Message struct {
	Mine   bool   `json:"mine,omitempty"`
	Author string `json:"author"`
	Text   string `json:"text"`
}

// Memory is one thing that a program remembers. Day is the one on which it was noted.
type Memory struct {
	Text string `json:"text"`
	Day  string `json:"day"`
}

// Output is the output of a program, as JSON; an empty output is the zero Output. Text follows the streamed text.
// At most one of Question and Ask is set: a question to the person, or to another agent. The program is run again with
// the answer and the State.
type Output struct {
	Text     string          `json:"text"`
	Question string          `json:"question"`
	Ask      *Asking         `json:"ask"`
	State    json.RawMessage `json:"state"`
	// Failed is the reason for people if the program cannot do the task.
	Failed string `json:"failed"`
}

// Asking is a question to another agent.
type Asking struct {
	Agent string `json:"agent"`
	Text  string `json:"text"`
}

const (
	// maxHistory bounds the bytes of earlier messages in an input, maxText that of the message.
	maxHistory = 64 << 10
	maxText    = 256 << 10
	// maxState bounds a state, which is stored with the task.
	maxState  = 64 << 10
	maxReason = 300
)

// newInput returns the input for the message of a call.
func newInput(call task.Call) Input {
	asker := call.AskedBy()
	in := Input{Version: 1, Task: call.TaskID, Agent: call.Agent.Handle, Caller: Person{asker.Kind, asker.Handle},
		Text: clipText(task.PlainText(call.Parts), maxText)}
	for _, m := range call.Memories {
		in.Memories = append(in.Memories, Memory{m.Text, m.At.UTC().Format(time.DateOnly)})
	}
	room := maxText
	for _, p := range call.Parts {
		if len(p.Data) > 0 && len(p.Data) <= room && json.Valid(p.Data) {
			room -= len(p.Data)
			in.Data = append(in.Data, p.Data)
		}
	}
	room = maxHistory
	for i := len(call.History) - 1; i >= 0; i-- {
		turn := call.History[i]
		m := Message{turn.Mine, turn.Speaker, task.PlainText(turn.Parts)}
		if room -= len(m.Text) + len(m.Author); room < 0 {
			break
		}
		in.History = append([]Message{m}, in.History...)
	}
	return in
}

// readOutput reads the output of a program.
func readOutput(b []byte) (Output, error) {
	var o Output
	if len(bytes.TrimSpace(b)) == 0 {
		return o, nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return o, errors.New("it is no JSON object with text, question, ask, state and failed")
	}
	switch {
	case o.Ask != nil && o.Question != "":
		return o, errors.New("it has both a question and another agent to ask")
	case len(o.State) > maxState:
		return o, errors.New("its state is too long")
	}
	o.Text, o.Question, o.Failed = cleanText(o.Text), cleanText(o.Question), cleanText(o.Failed)
	return o, nil
}

// cleanText makes a text of a program valid. Spaces at its ends stay, because texts are streamed in pieces.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// oneLine returns a short text on one line.
func oneLine(s string, most int) string { return clipText(plaintext.OneLine(s), most) }

// clipText cuts a text to at most that many bytes, at a character.
func clipText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// The reasons to wait.
const (
	waitsForPermission = "permission" // the person must agree to a call
	waitsForAnswer     = "answer"     // the person is asked by the program
)

// checkpoint is the stored state of a task.
type checkpoint struct {
	// Message is the id of the message that was processed last. An answer to a question has another id.
	Message string          `json:"message"`
	Waiting string          `json:"waiting,omitempty"`
	Text    string          `json:"text,omitempty"`
	State   json.RawMessage `json:"state,omitempty"`
	Answer  string          `json:"answer,omitempty"`
	// Asking is the question to another agent that has no answer yet.
	Asking *Asking         `json:"asking,omitempty"`
	Tools  json.RawMessage `json:"tools,omitempty"`
}

// keeper stores the checkpoint of a run with the state of the tools. It is the sink of both. All its methods are called
// by the goroutine of the run.
type keeper struct {
	task.Sink
	pauser task.Pauser // nil if the place of the task cannot be given away
	at     checkpoint
}

var _ task.ToolSink = (*keeper)(nil)

func newKeeper(out task.Sink, call task.Call) (*keeper, error) {
	k := &keeper{Sink: out}
	k.pauser, _ = out.(task.Pauser)
	if len(call.Checkpoint) > 0 {
		if err := json.Unmarshal(call.Checkpoint, &k.at); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *keeper) saveState(ctx context.Context) error {
	b, err := json.Marshal(k.at)
	if err != nil {
		return err
	}
	return k.Checkpoint(ctx, b)
}

// SaveTools implements task.ToolSink.
func (k *keeper) SaveTools(ctx context.Context, state json.RawMessage) error {
	k.at.Tools = state
	return k.saveState(ctx)
}

// Status implements task.Sink and task.ToolSink.
func (k *keeper) Status(text string) { k.Sink.Status(strings.TrimSpace(oneLine(text, maxReason))) }

// Pause implements task.Pauser.
func (k *keeper) Pause() {
	if k.pauser != nil {
		k.pauser.Pause()
	}
}

// Resume implements task.Pauser.
func (k *keeper) Resume() {
	if k.pauser != nil {
		k.pauser.Resume()
	}
}
