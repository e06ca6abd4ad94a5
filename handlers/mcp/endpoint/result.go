package endpoint

import (
	"encoding/base64"
	"encoding/json"
	"time"
)

// Result is the answer of a tool: content, or the input that it needs first (Wants), or a task.
type Result struct {
	Content []Content
	// Structured is the answer as data that the tool's output schema describes, nil for none.
	Structured any
	// Failed is true if the content describes an error, which the model can read.
	Failed bool
	// Wants is set if the tool needs input; the client repeats the call with it.
	Wants *Wants
	// Task is set if the answer comes later. Only clients that declare the tasks extension get one.
	Task *Task
}

// Text returns a result that consists of one text.
func Text(s string) Result { return Result{Content: []Content{TextContent(s)}} }

// Failure returns a result that describes an error. s is written for a model, so it should say how to
// go on.
func Failure(s string) Result {
	r := Text(s)
	r.Failed = true
	return r
}

// Content is one piece of a result. Type decides which fields are set.
type Content struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// Data and MIMEType are set for an image or audio.
	Data     []byte `json:"data,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	// URI, Name, Title and Description are set for a link to a resource.
	URI         string `json:"uri,omitempty"`
	Name        string `json:"name,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Resource is set for a resource that is contained in the result.
	Resource *ResourceContents `json:"resource,omitempty"`
}

// TextContent returns content of type text, the only type that every client shows.
func TextContent(s string) Content { return Content{Type: "text", Text: s} }

// LinkContent returns a link to a resource or a file, which the client can fetch.
func LinkContent(uri, name, mimeType string) Content {
	return Content{Type: "resource_link", URI: uri, Name: name, MIMEType: mimeType}
}

// MarshalJSON implements json.Marshaler. It writes the text of text content even if it is empty, because
// clients require it.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Type == "text" {
		return json.Marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"text", c.Text})
	}
	type plain Content
	return json.Marshal(plain(c))
}

// fitContent replaces types of content that the protocol version does not have: links become text, audio
// becomes a resource.
func fitContent(list []Content, version string) []Content {
	if version == Modern || hasLinks(version) && hasAudio(version) {
		return list
	}
	out := make([]Content, len(list))
	for i, c := range list {
		switch {
		case c.Type == "resource_link" && !hasLinks(version):
			c = TextContent("[" + c.Name + "](" + c.URI + ")")
		case c.Type == "audio" && !hasAudio(version):
			c = Content{Type: "resource", Resource: &ResourceContents{URI: "data:" + c.MIMEType + ";base64," +
				base64.StdEncoding.EncodeToString(c.Data), MIMEType: c.MIMEType, Blob: c.Data}}
		}
		out[i] = c
	}
	return out
}

// Wants is the input that the client has to provide before the call can continue: requests by unique
// keys.
type Wants struct {
	Requests map[string]Request
	// State is sent to the client and comes back with the input. The client can send any value, so seal
	// the state (Call.Seal) if it must be trusted.
	State string
}

// Request is a request to the client. Method is elicitation/create, sampling/createMessage or roots/list.
type Request struct {
	Method string `json:"method"`
	Params any    `json:"params"`
}

// Task is work that continues after the call that started it.
type Task struct {
	ID string
	// Status is working, input_required, completed, failed or cancelled.
	Status string
	// Message describes the status for people, "" for none.
	Message              string
	CreatedAt, UpdatedAt time.Time
	// TTL is how long the task is kept after its creation, 0 for ever. Poll is the interval at which
	// clients should ask, 0 for their choice.
	TTL, Poll time.Duration
	// Requests holds the input that the task needs, by key, in the state input_required.
	Requests map[string]Request
	// Result is set if the task is completed, Problem if it failed.
	Result  *Result
	Problem *Problem
}

// States of a task.
const (
	TaskWorking       = "working"
	TaskInputRequired = "input_required"
	TaskCompleted     = "completed"
	TaskFailed        = "failed"
	TaskCancelled     = "cancelled"
)

// taskJSON is a task in the protocol's form. The fields after Poll are set for tasks/get only.
type taskJSON struct {
	ResultType string             `json:"resultType,omitempty"`
	ID         string             `json:"taskId"`
	Status     string             `json:"status"`
	Message    string             `json:"statusMessage,omitempty"`
	CreatedAt  string             `json:"createdAt"`
	UpdatedAt  string             `json:"lastUpdatedAt"`
	TTL        *int64             `json:"ttlMs"`
	Poll       int64              `json:"pollIntervalMs,omitempty"`
	Requests   map[string]Request `json:"inputRequests,omitzero"`
	Result     json.RawMessage    `json:"result,omitempty"`
	Error      json.RawMessage    `json:"error,omitempty"`
	Meta       json.RawMessage    `json:"_meta,omitempty"`
}

func (t *Task) asJSON(version string, detail bool) taskJSON {
	out := taskJSON{ID: t.ID, Status: t.Status, Message: t.Message, CreatedAt: formatTime(t.CreatedAt),
		UpdatedAt: formatTime(t.UpdatedAt), Poll: t.Poll.Milliseconds()}
	if t.TTL > 0 {
		ms := t.TTL.Milliseconds()
		out.TTL = &ms
	}
	if !detail {
		return out
	}
	switch {
	case t.Status == TaskInputRequired:
		out.Requests = t.Requests
		if out.Requests == nil {
			out.Requests = map[string]Request{}
		}
	case t.Status == TaskCompleted && t.Result != nil:
		out.Result = t.Result.encodeBody(version, nil)
	case t.Status == TaskFailed && t.Problem != nil:
		out.Error = t.Problem.encodeError()
	}
	return out
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// encodeBody encodes a complete result. meta is the value of _meta, nil for none. Versions with a
// handshake get no resultType.
func (r *Result) encodeBody(version string, meta json.RawMessage) json.RawMessage {
	out := struct {
		ResultType string          `json:"resultType,omitempty"`
		Content    []Content       `json:"content"`
		Structured any             `json:"structuredContent,omitempty"`
		Failed     bool            `json:"isError,omitempty"`
		Meta       json.RawMessage `json:"_meta,omitempty"`
	}{Content: fitContent(r.Content, version), Structured: r.Structured, Failed: r.Failed, Meta: meta}
	if version == Modern {
		out.ResultType = "complete"
	}
	if out.Content == nil {
		out.Content = []Content{}
	}
	return encodeJSON(out)
}

// encodeJSON encodes a value that is known to encode, and panics otherwise.
func encodeJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
