package endpoint

import (
	"encoding/base64"
	"encoding/json"
	"time"
)

// Result is what a tool answers: content, or what it wants first, or a task.
type Result struct {
	Content []Content
	// Structured is the answer as data, nil for none.
	Structured any
	// Failed is set when the content says what went wrong.
	Failed bool
	// Wants is set when the call shall be made again with more input.
	Wants *Wants
	// Task is set when the answer comes later. Only clients that declare the
	// extension get one.
	Task *Task
}

// Text is a result of one text.
func Text(s string) Result { return Result{Content: []Content{TextContent(s)}} }

// Failure is a result that says what went wrong, in words for a model.
func Failure(s string) Result {
	r := Text(s)
	r.Failed = true
	return r
}

// Content is a piece of a result.
type Content struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// Data and MIMEType are of an image or audio.
	Data     []byte `json:"data,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	// URI, Name, Title and Description are of a link.
	URI         string `json:"uri,omitempty"`
	Name        string `json:"name,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Resource is one that is in the result as it is.
	Resource *ResourceContents `json:"resource,omitempty"`
}

// TextContent is a text.
func TextContent(s string) Content { return Content{Type: "text", Text: s} }

// LinkContent is a link to a resource or a file.
func LinkContent(uri, name, mimeType string) Content {
	return Content{Type: "resource_link", URI: uri, Name: name, MIMEType: mimeType}
}

// MarshalJSON implements json.Marshaler: a text is there even when empty.
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

// fit writes content that the version has not as text.
func fit(list []Content, version string) []Content {
	if version == Modern || hasLinks(version) && hasAudio(version) {
		return list
	}
	out := make([]Content, len(list))
	for i, c := range list {
		switch {
		case c.Type == "resource_link" && !hasLinks(version):
			c = TextContent("[" + c.Name + "](" + c.URI + ")")
		case c.Type == "audio" && !hasAudio(version):
			c = Content{Type: "resource", Resource: &ResourceContents{URI: "data:" + c.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(c.Data), MIMEType: c.MIMEType, Blob: c.Data}}
		}
		out[i] = c
	}
	return out
}

// Wants is input that is wanted from the client: requests by a key that is
// theirs alone.
type Wants struct {
	Requests map[string]Request
	// State comes back with the input. Seal it where it matters that it is
	// ours: clients may send anything.
	State string
}

// Request is something a client is asked for: elicitation/create,
// sampling/createMessage or roots/list.
type Request struct {
	Method string `json:"method"`
	Params any    `json:"params"`
}

// Task is work that goes on after the call.
type Task struct {
	ID string
	// Status is working, input_required, completed, failed or cancelled.
	Status string
	// Message says more of it for people.
	Message              string
	CreatedAt, UpdatedAt time.Time
	// TTL is how long it is kept from its creation, 0 for ever. Poll is how
	// long to wait before asking again, 0 says nothing.
	TTL, Poll time.Duration
	// Requests are what a task that is input_required wants.
	Requests map[string]Request
	// Result is of a task that is completed, Problem of one that failed.
	Result  *Result
	Problem *Problem
}

// The states of a task.
const (
	TaskWorking       = "working"
	TaskInputRequired = "input_required"
	TaskCompleted     = "completed"
	TaskFailed        = "failed"
	TaskCancelled     = "cancelled"
)

// taskJSON is a task on the wire. The fields after Poll are for tasks/get.
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

func (t *Task) json(version string, detail bool) taskJSON {
	out := taskJSON{ID: t.ID, Status: t.Status, Message: t.Message, CreatedAt: stamp(t.CreatedAt), UpdatedAt: stamp(t.UpdatedAt), Poll: t.Poll.Milliseconds()}
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
		out.Result = t.Result.body(version, nil)
	case t.Status == TaskFailed && t.Problem != nil:
		out.Error = t.Problem.wire()
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// body writes a result that is complete. meta is what stands in _meta, nil
// for nothing; the versions with a handshake have no resultType.
func (r *Result) body(version string, meta json.RawMessage) json.RawMessage {
	out := struct {
		ResultType string          `json:"resultType,omitempty"`
		Content    []Content       `json:"content"`
		Structured any             `json:"structuredContent,omitempty"`
		Failed     bool            `json:"isError,omitempty"`
		Meta       json.RawMessage `json:"_meta,omitempty"`
	}{Content: fit(r.Content, version), Structured: r.Structured, Failed: r.Failed, Meta: meta}
	if version == Modern {
		out.ResultType = "complete"
	}
	if out.Content == nil {
		out.Content = []Content{}
	}
	return encode(out)
}

// encode writes what can always be written.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
