package a2a

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"agentsite/internal/lenientjson"
	"agentsite/internal/task"
)

// decoder reads the formats of 1.0 and 0.3 in either binding, without knowing which one it gets: the
// formats differ in names, but never contradict each other. wrapped is true for the HTTP+JSON binding of
// 0.3, which wraps some values once more.
type decoder struct {
	wrapped bool
	strict  bool // answers have the forms of the schema, as those of other portals
}

type wireTask struct {
	ID        str               `json:"id"`
	ContextID str               `json:"contextId"`
	Status    wireStatus        `json:"status"`
	Artifacts []json.RawMessage `json:"artifacts"`
	History   []json.RawMessage `json:"history"`
	Metadata  json.RawMessage   `json:"metadata"`
}

type wireStatus struct {
	State   str             `json:"state"`
	Message json.RawMessage `json:"message"`
}

type wireMessage struct {
	MessageID str             `json:"messageId"`
	ContextID str             `json:"contextId"`
	TaskID    str             `json:"taskId"`
	Role      str             `json:"role"`
	Parts     json.RawMessage `json:"parts"`
	Content   json.RawMessage `json:"content"`
	Metadata  json.RawMessage `json:"metadata"`
}

type wireArtifact struct {
	ID          str             `json:"artifactId"`
	Name        str             `json:"name"`
	Description str             `json:"description"`
	Parts       json.RawMessage `json:"parts"`
}

type wireUpdate struct {
	TaskID    str             `json:"taskId"`
	ContextID str             `json:"contextId"`
	Status    wireStatus      `json:"status"`
	Artifact  json.RawMessage `json:"artifact"`
	Append    flag            `json:"append"`
	LastChunk flag            `json:"lastChunk"`
	Metadata  json.RawMessage `json:"metadata"`
}

// decodeCost reads the statement of ExtCost in metadata, nil for none that is valid.
func decodeCost(metadata json.RawMessage) *task.Claim {
	var m map[string]json.RawMessage
	var c task.Claim
	if json.Unmarshal(metadata, &m) != nil || json.Unmarshal(m[ExtCost], &c) != nil || !c.Valid() {
		return nil
	}
	return &c
}

// decodeEvent reads one StreamResponse or one result of SendMessage.
func (d decoder) decodeEvent(b []byte) (Event, error) {
	var u struct {
		Kind           str             `json:"kind"`
		Task           json.RawMessage `json:"task"`
		Message        json.RawMessage `json:"message"`
		StatusUpdate   json.RawMessage `json:"statusUpdate"`
		ArtifactUpdate json.RawMessage `json:"artifactUpdate"`
		// Fields by which an object is recognized if the agent left out "kind".
		ID     str             `json:"id"`
		Status json.RawMessage `json:"status"`
		Parts  json.RawMessage `json:"parts"`
	}
	b = d.mend(b)
	if err := json.Unmarshal(b, &u); err != nil {
		return Event{}, shapeError(0, "the agent sent an event that is not a JSON object")
	}
	switch {
	case u.Kind == "task":
		return d.taskEvent(b)
	case u.Kind == "message":
		return d.messageEvent(b)
	case u.Kind == "status-update":
		return d.statusEvent(b)
	case u.Kind == "artifact-update":
		return d.artifactEvent(b)
	case isObject(u.Task):
		return d.taskEvent(u.Task)
	case isObject(u.StatusUpdate):
		return d.statusEvent(u.StatusUpdate)
	case isObject(u.ArtifactUpdate):
		return d.artifactEvent(u.ArtifactUpdate)
	case isObject(u.Message):
		return d.messageEvent(u.Message)
	case u.ID != "" && isObject(u.Status):
		return d.taskEvent(b)
	case len(u.Parts) > 0:
		return d.messageEvent(b)
	}
	return Event{}, shapeError(0, "the agent sent an event that is neither a task, a message nor an update")
}

func (d decoder) mend(b []byte) []byte {
	if d.strict {
		return b
	}
	return mendEvent(b)
}

func (d decoder) taskEvent(b []byte) (Event, error) {
	t, err := d.decodeTask(b)
	return Event{Task: t}, err
}

func (d decoder) decodeTask(b []byte) (*Task, error) {
	var w wireTask
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, shapeError(0, "the agent sent a malformed task")
	}
	if w.ID == "" || len(w.ID) > maxID || len(w.ContextID) > maxID || w.ID == "." || w.ID == ".." {
		return nil, shapeError(0, "the agent sent a task without a usable id")
	}
	if len(w.Artifacts) > maxArtifacts {
		return nil, limitError("the agent sent more than %d artifacts", maxArtifacts)
	}
	t := &Task{ID: string(w.ID), ContextID: string(w.ContextID), Status: d.decodeStatus(w.Status),
		Cost: decodeCost(w.Metadata)}
	for _, a := range w.Artifacts {
		if art, ok := d.decodeArtifact(a); ok {
			t.Artifacts = append(t.Artifacts, art)
		}
	}
	for _, m := range w.History[max(0, len(w.History)-maxHistory):] {
		if msg, ok := d.decodeMessage(m); ok {
			t.History = append(t.History, *msg)
		}
	}
	return t, nil
}

func (d decoder) messageEvent(b []byte) (Event, error) {
	m, ok := d.decodeMessage(b)
	if !ok {
		return Event{}, shapeError(0, "the agent sent a malformed message")
	}
	return Event{Message: m}, nil
}

func (d decoder) statusEvent(b []byte) (Event, error) {
	w, err := decodeUpdate(b)
	if err != nil {
		return Event{}, err
	}
	return Event{Status: &StatusUpdate{Cost: decodeCost(w.Metadata), TaskID: string(w.TaskID), ContextID: string(w.ContextID),
		Status: d.decodeStatus(w.Status)}}, nil
}

func (d decoder) artifactEvent(b []byte) (Event, error) {
	w, err := decodeUpdate(b)
	if err != nil {
		return Event{}, err
	}
	a, ok := d.decodeArtifact(w.Artifact)
	if !ok {
		return Event{}, shapeError(0, "the agent sent a malformed artifact")
	}
	return Event{Artifact: &ArtifactUpdate{
		TaskID: string(w.TaskID), ContextID: string(w.ContextID),
		Artifact: a, Append: bool(w.Append), Last: bool(w.LastChunk),
	}}, nil
}

func decodeUpdate(b []byte) (wireUpdate, error) {
	var w wireUpdate
	if json.Unmarshal(b, &w) != nil || len(w.TaskID) > maxID || len(w.ContextID) > maxID {
		return w, shapeError(0, "the agent sent a malformed update")
	}
	return w, nil
}

func (d decoder) decodeStatus(w wireStatus) Status {
	s := Status{State: parseState(string(w.State))}
	if m, ok := d.decodeMessage(w.Message); ok {
		s.Message = m
	}
	return s
}

// parseState maps every spelling of a state in 1.0 and 0.3 to a task.State; an unknown state is "".
func parseState(s string) task.State {
	s = strings.TrimPrefix(strings.ToLower(s), "task_state_")
	s = strings.ReplaceAll(s, "-", "_")
	if s == "cancelled" {
		s = "canceled"
	}
	switch st := task.State(s); st {
	case task.Submitted, task.Working, task.InputRequired, task.AuthRequired,
		task.Completed, task.Failed, task.Canceled, task.Rejected:
		return st
	}
	return ""
}

func (d decoder) decodeMessage(b []byte) (*Message, bool) {
	var w wireMessage
	if !isObject(b) || json.Unmarshal(b, &w) != nil || len(w.TaskID) > maxID || len(w.ContextID) > maxID {
		return nil, false
	}
	parts := w.Parts
	if len(parts) == 0 {
		parts = w.Content
	}
	role := strings.ToLower(string(w.Role))
	return &Message{
		ID: cutBytes(string(w.MessageID), maxID), ContextID: string(w.ContextID), TaskID: string(w.TaskID),
		FromAgent: role == "agent" || role == "role_agent",
		Parts:     d.decodeParts(parts), Cost: decodeCost(w.Metadata),
	}, true
}

func (d decoder) decodeArtifact(b []byte) (task.Artifact, bool) {
	var w wireArtifact
	if !isObject(b) || json.Unmarshal(b, &w) != nil || len(w.ID) > maxID {
		return task.Artifact{}, false
	}
	return task.Artifact{
		ID: string(w.ID), Name: Line(string(w.Name), 200), Description: Text(string(w.Description), 2000),
		Parts: d.decodeParts(w.Parts),
	}, true
}

// decodeParts skips malformed parts and parts of unknown kinds, because one of them must not lose the
// whole answer.
func (d decoder) decodeParts(b json.RawMessage) []task.Part {
	var raw []json.RawMessage
	if json.Unmarshal(b, &raw) != nil {
		return nil
	}
	var out []task.Part
	for _, r := range raw[:min(len(raw), maxParts)] {
		if p, ok := d.decodePart(r); ok {
			out = append(out, p)
		}
	}
	return out
}

func (d decoder) decodePart(b []byte) (task.Part, bool) {
	var w struct {
		Text      *string         `json:"text"`
		Raw       str             `json:"raw"`
		URL       str             `json:"url"`
		Data      json.RawMessage `json:"data"`
		MediaType str             `json:"mediaType"`
		Filename  str             `json:"filename"`
		File      *struct {
			Bytes     str `json:"bytes"`
			URI       str `json:"uri"`
			WithBytes str `json:"fileWithBytes"`
			WithURI   str `json:"fileWithUri"`
			MimeType  str `json:"mimeType"`
			Name      str `json:"name"`
		} `json:"file"`
	}
	if !isObject(b) || json.Unmarshal(b, &w) != nil {
		return task.Part{}, false
	}
	p := task.Part{MediaType: Line(string(w.MediaType), 100), Filename: Line(string(w.Filename), 200)}
	if f := w.File; f != nil {
		p.MediaType, p.Filename = Line(string(f.MimeType), 100), Line(string(f.Name), 200)
		w.URL = f.URI + f.WithURI
		w.Raw = f.Bytes
		if f.WithBytes != "" {
			// Some agents encode these bytes twice in the HTTP+JSON binding of 0.3.
			p.Raw = decodeBase64(string(f.WithBytes))
			if twice := decodeBase64(string(p.Raw)); twice != nil && d.wrapped {
				p.Raw = twice
			}
			return p, len(p.Raw) > 0
		}
	}
	switch {
	case w.Text != nil:
		p.Text = strings.ReplaceAll(*w.Text, "\x00", "")
		return p, p.Text != ""
	case w.Raw != "":
		p.Raw = decodeBase64(string(w.Raw))
		return p, len(p.Raw) > 0
	case w.URL != "":
		p.URL = Line(string(w.URL), 2048)
		return p, p.URL != ""
	case len(w.Data) > 0:
		p.Data = w.Data
		var inner struct {
			Data json.RawMessage `json:"data"`
		}
		if d.wrapped && json.Unmarshal(w.Data, &inner) == nil && len(inner.Data) > 0 {
			p.Data = inner.Data
		}
		// As it is stored, so that the streamed text is that of the final answer.
		if b := (bytes.Buffer{}); json.Compact(&b, p.Data) == nil {
			p.Data = b.Bytes()
		}
		return p, true
	}
	return task.Part{}, false
}

// decodeBase64 decodes the standard or the URL alphabet, with or without padding. It returns nil if s is
// neither.
func decodeBase64(s string) []byte {
	s = strings.TrimRight(s, "=")
	enc := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		enc = base64.RawURLEncoding
	}
	b, err := enc.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}

func isObject(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '{'
}

func cutBytes(s string, max int) string {
	if len(s) > max {
		return ""
	}
	return s
}

// str decodes a JSON string; any other value counts as absent.
type str string

// UnmarshalJSON never fails, so that one malformed field does not lose a whole answer.
func (s *str) UnmarshalJSON(b []byte) error {
	*s = str(lenientjson.TextOf(b))
	return nil
}

// flag decodes a boolean, also one that is written as text or number; any other value counts as false.
type flag bool

// UnmarshalJSON never fails, so that one malformed field does not lose a whole answer.
func (f *flag) UnmarshalJSON(b []byte) error { return lenientjson.Decode(b, (*bool)(f)) }
