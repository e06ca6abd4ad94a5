package a2a

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/internal/lenientjson"
	"agentsite/internal/task"
)

// Requests to agents of this portal. They are read strictly, unlike answers: the error for a malformed
// request names the field. Unknown fields are ignored (§3.2.6), so that newer clients work.

// maxRequestParts is the maximum number of parts in a message of a request. maxListed is the maximum
// length of the other lists.
const (
	maxRequestParts = 32
	maxListed       = 50
)

// SendRequest is a SendMessageRequest (§3.2.1), checked by ReadSend.
type SendRequest struct {
	Message Message
	// HistoryLength is the number of messages to return; nil if the client gave none, 0 for no history.
	HistoryLength *int
	// Immediate asks for an answer before the task is in a final state.
	Immediate bool
	// Push is the config for push notifications of the task, nil for none.
	Push *PushConfig
}

// TaskRequest holds the parameters of GetTask, CancelTask and SubscribeToTask: the task and, for
// GetTask, the length of the history.
type TaskRequest struct {
	ID            string
	HistoryLength *int
}

// ListRequest is ListTasksRequest (§3.1.4). A zero field is no filter.
type ListRequest struct {
	ContextID     string
	State         task.State
	PageSize      int // from 1 to 100
	PageToken     string
	HistoryLength *int
	After         time.Time
	Artifacts     bool
}

// Call is the envelope of a JSON-RPC request. Params are not parsed yet.
type Call struct {
	ID     json.RawMessage // a string, a number or null, returned unchanged in the answer
	Method string
	Params json.RawMessage
}

// ReadCall reads the envelope of a JSON-RPC request. The call's ID is set if it could be read, because
// the error answer needs it.
func ReadCall(b []byte) (Call, *Failure) {
	null := json.RawMessage("null")
	if !json.Valid(b) || !utf8.Valid(b) {
		return Call{ID: null}, Fail(CodeParse, "The body is not JSON.")
	}
	if b = bytes.TrimSpace(b); b[0] == '[' {
		return Call{ID: null}, Fail(CodeInvalidRequest, "Batches are not served. Send one request at a time.")
	}
	var w struct {
		Version json.RawMessage `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  json.RawMessage `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if json.Unmarshal(b, &w) != nil {
		return Call{ID: null}, Fail(CodeInvalidRequest, "The body is not a JSON-RPC request object.")
	}
	if len(w.Params) > 0 {
		w.Params = lenientjson.OrObject(w.Params)
	}
	c := Call{ID: null, Params: w.Params}
	switch {
	case len(w.ID) == 0 || len(w.ID) > maxID || strings.IndexByte("\"-0123456789n", w.ID[0]) < 0:
		return c, Fail(CodeInvalidRequest, "Give the request an id: a string or a number.")
	default:
		c.ID = w.ID
	}
	if string(w.Version) != `"2.0"` {
		return c, Fail(CodeInvalidRequest, `The request needs "jsonrpc": "2.0".`)
	}
	if json.Unmarshal(w.Method, &c.Method) != nil || c.Method == "" {
		return c, Fail(CodeInvalidRequest, "The request names no method.")
	}
	if len(w.Params) > 0 && !isObject(w.Params) && string(w.Params) != "null" {
		return c, Fail(CodeInvalidParams, "params is not an object.")
	}
	return c, nil
}

// requestForms are members that languages without empty objects, or with numbers as ids, write otherwise.
var requestForms = lenientjson.Forms{
	Objects: []string{"params", "metadata", "configuration", "message", "pushNotificationConfig",
		"taskPushNotificationConfig", "authentication"},
	Texts: []string{"messageId", "contextId", "taskId"},
	Lists: []string{"parts", "extensions", "referenceTaskIds", "acceptedOutputModes", "reference_task_ids",
		"accepted_output_modes"},
	Opaque: []string{"data", "metadata"},
}

// decodeStrict decodes JSON into v. Its failure names the field that has the wrong type.
func decodeStrict(b []byte, v any) *Failure {
	f := decodeOnce(b, v)
	if f != nil && f.Code == CodeInvalidParams && decodeOnce(requestForms.Mend(b), v) == nil {
		return nil
	}
	return f
}

func decodeOnce(b []byte, v any) *Failure {
	if len(bytes.TrimSpace(b)) == 0 {
		b = []byte("{}")
	}
	if !utf8.Valid(b) {
		return Fail(CodeParse, "The body is not UTF-8.")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	err := dec.Decode(v)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return Fail(CodeParse, "The body holds more than one JSON value.")
		}
		return nil
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if t.Field == "" {
			return Fail(CodeInvalidParams, "The request is not an object but a "+t.Value+".")
		}
		return fieldFailure(t.Field, "is a "+t.Value+", which it cannot be")
	}
	if _, ok := errors.AsType[*time.ParseError](err); ok {
		return Fail(CodeInvalidParams, "A time is not written as in RFC 3339.")
	}
	return Fail(CodeParse, "The body is not JSON.")
}

// fieldFailure returns an InvalidParams failure about one field, for users and, in Metadata, for
// programs.
func fieldFailure(field, what string) *Failure {
	return &Failure{Code: CodeInvalidParams, Text: field + ": " + what + ".",
		Metadata: map[string]string{"field": field}}
}

type wireSent struct {
	Message *struct {
		MessageID  string            `json:"messageId"`
		ContextID  string            `json:"contextId"`
		TaskID     string            `json:"taskId"`
		Role       string            `json:"role"`
		Parts      []json.RawMessage `json:"parts"`
		Extensions []string          `json:"extensions"`
		References []string          `json:"referenceTaskIds"`
		// The same fields with their protobuf names, which clients may also send.
		MessageIDP string `json:"message_id"`
		ContextIDP string `json:"context_id"`
		TaskIDP    string `json:"task_id"`
	} `json:"message"`
	Configuration struct {
		HistoryLength *int            `json:"historyLength"`
		Immediately   bool            `json:"returnImmediately"`
		Blocking      *bool           `json:"blocking"` // A2A 0.3
		Modes         []string        `json:"acceptedOutputModes"`
		Push          json.RawMessage `json:"taskPushNotificationConfig"`
		Push03        json.RawMessage `json:"pushNotificationConfig"`
		// The same fields with their protobuf names.
		HistoryLengthP *int            `json:"history_length"`
		ImmediatelyP   bool            `json:"return_immediately"`
		PushP          json.RawMessage `json:"task_push_notification_config"`
	} `json:"configuration"`
}

// firstOf returns a unless it is nil, else b: the value of a field that has two names.
func firstOf[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// ReadSend reads and checks the parameters of SendMessage and SendStreamingMessage in the format of a
// version.
func ReadSend(b []byte, version string) (SendRequest, *Failure) {
	var w wireSent
	if f := decodeStrict(b, &w); f != nil {
		return SendRequest{}, f
	}
	m, role := w.Message, "ROLE_USER"
	if m != nil {
		m.MessageID, m.ContextID, m.TaskID = cmp.Or(m.MessageID, m.MessageIDP), cmp.Or(m.ContextID, m.ContextIDP),
			cmp.Or(m.TaskID, m.TaskIDP)
	}
	c := &w.Configuration
	c.HistoryLength, c.Immediately = firstOf(c.HistoryLength, c.HistoryLengthP), c.Immediately || c.ImmediatelyP
	if version == Version03 {
		role = "user"
	}
	switch {
	case m == nil:
		return SendRequest{}, fieldFailure("message", "is missing")
	case m.MessageID == "":
		return SendRequest{}, fieldFailure("message.messageId",
			"is missing; give every message an id of your own, so that sending it again is harmless")
	case len(m.MessageID) > maxID || len(m.ContextID) > maxID || len(m.TaskID) > maxID:
		return SendRequest{}, fieldFailure("message", fmt.Sprintf("has an id of more than %d bytes", maxID))
	case strings.ContainsRune(m.MessageID, 0):
		return SendRequest{}, fieldFailure("message.messageId", "holds a NUL")
	case m.Role != role:
		return SendRequest{}, fieldFailure("message.role", "is not "+role)
	case len(m.Parts) == 0:
		return SendRequest{}, fieldFailure("message.parts", "is empty; say something")
	case len(m.Parts) > maxRequestParts:
		return SendRequest{}, fieldFailure("message.parts", fmt.Sprintf("has more than %d parts", maxRequestParts))
	case len(m.Extensions) > maxListed || len(m.References) > maxListed || len(w.Configuration.Modes) > maxListed:
		return SendRequest{}, fieldFailure("message", fmt.Sprintf("has a list of more than %d entries", maxListed))
	case w.Configuration.HistoryLength != nil && *w.Configuration.HistoryLength < 0:
		return SendRequest{}, fieldFailure("configuration.historyLength", "is negative")
	}
	out := SendRequest{HistoryLength: w.Configuration.HistoryLength, Immediate: w.Configuration.Immediately,
		Message: Message{ID: m.MessageID, ContextID: m.ContextID, TaskID: m.TaskID}}
	push, field := w.Configuration.Push, "configuration.taskPushNotificationConfig."
	if version == Version03 {
		push, field = w.Configuration.Push03, "configuration.pushNotificationConfig."
	}
	if isObject(push) {
		c, f := readPush(push, field)
		if f != nil {
			return SendRequest{}, f
		}
		out.Push = &c
	}
	if version == Version03 {
		out.Immediate = w.Configuration.Blocking != nil && !*w.Configuration.Blocking
	}
	for i, raw := range m.Parts {
		p, problem := readPart(raw, version)
		if problem != "" {
			return SendRequest{}, fieldFailure(fmt.Sprintf("message.parts[%d]", i), problem)
		}
		out.Message.Parts = append(out.Message.Parts, p)
	}
	return out, nil
}

// readPart reads one part in the format of a version; problem is "" or the reason why the part is
// invalid.
func readPart(b []byte, version string) (p task.Part, problem string) {
	var w struct {
		Text      *string         `json:"text"`
		Raw       *string         `json:"raw"`
		URL       *string         `json:"url"`
		Data      json.RawMessage `json:"data"`
		MediaType string          `json:"mediaType"`
		// MediaTypeP is the same field with its protobuf name.
		MediaTypeP string `json:"media_type"`
		Filename   string `json:"filename"`
		File       *struct {
			Bytes    *string `json:"bytes"`
			URI      *string `json:"uri"`
			MimeType string  `json:"mimeType"`
			Name     string  `json:"name"`
		} `json:"file"`
	}
	if !isObject(b) {
		return p, "is not an object"
	}
	if f := decodeStrict(b, &w); f != nil {
		return p, f.Text
	}
	if version == Version03 && w.File != nil {
		w.Raw, w.URL, w.MediaType, w.Filename = w.File.Bytes, w.File.URI, w.File.MimeType, w.File.Name
	}
	set := 0
	for _, there := range []bool{w.Text != nil, w.Raw != nil, w.URL != nil, len(w.Data) > 0 &&
		string(w.Data) != "null"} {
		if there {
			set++
		}
	}
	if set != 1 {
		return p, "must hold exactly one of text, raw, url and data"
	}
	p.MediaType, p.Filename = Line(cmp.Or(w.MediaType, w.MediaTypeP), 100), Line(w.Filename, 200)
	switch {
	case w.Text != nil:
		if p.Text = *w.Text; strings.TrimSpace(p.Text) == "" || strings.ContainsRune(p.Text, 0) {
			return p, "has a text that is empty or holds a NUL"
		}
	case w.Raw != nil:
		if p.Raw = decodeBase64(*w.Raw); len(p.Raw) == 0 {
			return p, "has a file that is empty or not base64"
		}
	case w.URL != nil:
		if p.URL = *w.URL; !strings.HasPrefix(p.URL, "https://") && !strings.HasPrefix(p.URL, "http://") ||
			len(p.URL) > 2000 {
			return p, "has a url that does not begin with https:// or http://, or is too long"
		}
	default:
		p.Data = w.Data
	}
	return p, ""
}

// ReadTask reads and checks the parameters of methods that name a task.
func ReadTask(b []byte) (TaskRequest, *Failure) {
	var w struct {
		ID             string `json:"id"`
		HistoryLength  *int   `json:"historyLength"`
		HistoryLengthP *int   `json:"history_length"`
	}
	if f := decodeStrict(b, &w); f != nil {
		return TaskRequest{}, f
	}
	w.HistoryLength = firstOf(w.HistoryLength, w.HistoryLengthP)
	switch {
	case w.ID == "":
		return TaskRequest{}, fieldFailure("id", "is missing; it is the task's")
	case len(w.ID) > maxID:
		return TaskRequest{}, fieldFailure("id", fmt.Sprintf("has more than %d bytes", maxID))
	case w.HistoryLength != nil && *w.HistoryLength < 0:
		return TaskRequest{}, fieldFailure("historyLength", "is negative")
	}
	return TaskRequest{w.ID, w.HistoryLength}, nil
}

// ReadTenant returns the tenant in the parameters of a JSON-RPC request, "" if there is none. The tenant
// selects the agent.
func ReadTenant(b []byte) (string, *Failure) {
	var w struct {
		Tenant string `json:"tenant"`
	}
	if len(b) == 0 {
		return "", nil
	}
	if f := decodeStrict(b, &w); f != nil {
		return "", f
	}
	if len(w.Tenant) > maxID {
		return "", fieldFailure("tenant", fmt.Sprintf("has more than %d bytes", maxID))
	}
	return w.Tenant, nil
}

// Default and maximum number of tasks on a page of ListTasks (§3.1.4).
const (
	defaultPage = 50
	maxPage     = 100
)

// ReadList reads and checks the parameters of ListTasks.
func ReadList(b []byte) (ListRequest, *Failure) {
	var w struct {
		ContextID     string     `json:"contextId"`
		Status        string     `json:"status"`
		PageSize      *int       `json:"pageSize"`
		PageToken     string     `json:"pageToken"`
		HistoryLength *int       `json:"historyLength"`
		After         *time.Time `json:"statusTimestampAfter"`
		Artifacts     bool       `json:"includeArtifacts"`
		// The same fields with their protobuf names.
		ContextIDP     string     `json:"context_id"`
		PageSizeP      *int       `json:"page_size"`
		PageTokenP     string     `json:"page_token"`
		HistoryLengthP *int       `json:"history_length"`
		AfterP         *time.Time `json:"status_timestamp_after"`
		ArtifactsP     bool       `json:"include_artifacts"`
	}
	if f := decodeStrict(b, &w); f != nil {
		return ListRequest{}, f
	}
	w.ContextID, w.PageToken, w.Artifacts = cmp.Or(w.ContextID, w.ContextIDP), cmp.Or(w.PageToken, w.PageTokenP),
		w.Artifacts || w.ArtifactsP
	w.PageSize, w.HistoryLength, w.After = firstOf(w.PageSize, w.PageSizeP), firstOf(w.HistoryLength, w.HistoryLengthP),
		firstOf(w.After, w.AfterP)
	out := ListRequest{ContextID: w.ContextID, PageSize: defaultPage, PageToken: w.PageToken,
		HistoryLength: w.HistoryLength, Artifacts: w.Artifacts}
	if w.PageSize != nil {
		out.PageSize = *w.PageSize
	}
	if w.After != nil {
		out.After = *w.After
	}
	switch {
	case len(w.ContextID) > maxID || len(w.PageToken) > maxID:
		return ListRequest{}, fieldFailure("contextId", fmt.Sprintf("has more than %d bytes, or another id has", maxID))
	case out.PageSize < 1 || out.PageSize > maxPage:
		return ListRequest{}, fieldFailure("pageSize", fmt.Sprintf("is not between 1 and %d", maxPage))
	case w.HistoryLength != nil && *w.HistoryLength < 0:
		return ListRequest{}, fieldFailure("historyLength", "is negative")
	}
	if w.Status != "" && w.Status != "TASK_STATE_UNSPECIFIED" {
		out.State = parseState(w.Status)
		if out.State == "" || out.State.A2A() != w.Status {
			return ListRequest{}, fieldFailure("status", "is no state of a task, like TASK_STATE_WORKING")
		}
	}
	return out, nil
}
