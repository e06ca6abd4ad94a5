package a2a

import (
	"maps"
	"strings"
	"time"

	"agentsite/internal/task"
)

// Writer writes the answers of this portal's agents in the format of a version: 1.0, which is the same
// in both bindings, or 0.3 over JSON-RPC.
type Writer struct{ Version string }

// timeLayout is RFC 3339 in UTC with milliseconds (§5.6.1).
const timeLayout = "2006-01-02T15:04:05.000Z"

// Task returns a task for encoding as JSON.
func (w Writer) Task(t Task) any { return w.writeTask(t) }

func (w Writer) writeTask(t Task) object {
	o := object{"id": t.ID, "contextId": t.ContextID, "status": w.writeStatus(t.Status)}
	if len(t.Artifacts) > 0 {
		list := make([]object, len(t.Artifacts))
		for i, a := range t.Artifacts {
			list[i] = w.writeArtifact(a)
		}
		o["artifacts"] = list
	}
	if len(t.History) > 0 {
		list := make([]object, len(t.History))
		for i, m := range t.History {
			list[i] = w.writeMessage(m)
		}
		o["history"] = list
	}
	writeCost(o, t.Cost)
	return w.addKind(o, "task")
}

// Tasks returns the answer of ListTasks for encoding as JSON. Its four fields are always present. next
// is the token of the next page, "" at the end; total counts all pages.
func (w Writer) Tasks(list []Task, next string, size, total int) any {
	out := make([]object, len(list))
	for i, t := range list {
		out[i] = w.writeTask(t)
	}
	return object{"tasks": out, "nextPageToken": next, "pageSize": size, "totalSize": total}
}

// WriteEmpty returns the result of methods without one: {} in A2A 1.0, null in 0.3.
func (w Writer) WriteEmpty() any {
	if w.Version == Version03 {
		return Null{}
	}
	return object{}
}

// Null is encoded as null, also in places where a nil value would be omitted.
type Null struct{}

// MarshalJSON returns null.
func (Null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Event returns an event for encoding as JSON: a StreamResponse of 1.0, which is also the result of
// SendMessage, or the corresponding bare object of 0.3.
func (w Writer) Event(e Event) any {
	name, o := "", object(nil)
	switch {
	case e.Task != nil:
		name, o = "task", w.writeTask(*e.Task)
	case e.Message != nil:
		name, o = "message", w.writeMessage(*e.Message)
	case e.Status != nil:
		u := e.Status
		name, o = "statusUpdate", w.addKind(object{"taskId": u.TaskID, "contextId": u.ContextID,
			"status": w.writeStatus(u.Status)}, "status-update")
		writeCost(o, u.Cost)
		if w.Version == Version03 {
			o["final"] = !u.Status.State.Active()
		}
	case e.Artifact != nil:
		u := e.Artifact
		name, o = "artifactUpdate", w.addKind(object{"taskId": u.TaskID, "contextId": u.ContextID,
			"artifact": w.writeArtifact(u.Artifact), "append": u.Append, "lastChunk": u.Last}, "artifact-update")
	}
	if len(e.Metadata) > 0 {
		meta, _ := o["metadata"].(object)
		o["metadata"] = e.Metadata
		if meta != nil {
			maps.Copy(meta, e.Metadata)
			o["metadata"] = meta
		}
	}
	if w.Version == Version03 {
		return o
	}
	return object{name: o}
}

// writeCost adds a statement of ExtCost to an object without metadata.
func writeCost(o object, c *task.Claim) {
	if c != nil {
		o["metadata"] = object{ExtCost: c}
	}
}

// addKind adds the field "kind", by which clients of 0.3 distinguish objects. It does nothing for 1.0.
func (w Writer) addKind(o object, kind string) object {
	if w.Version == Version03 {
		o["kind"] = kind
	}
	return o
}

func (w Writer) writeStatus(s Status) object {
	o := object{"state": s.State.A2A()}
	if w.Version == Version03 {
		o["state"] = strings.ReplaceAll(string(s.State), "_", "-")
	}
	if s.Message != nil {
		o["message"] = w.writeMessage(*s.Message)
	}
	if !s.At.IsZero() {
		o["timestamp"] = s.At.UTC().Format(timeLayout)
	}
	return o
}

func (w Writer) writeMessage(m Message) object {
	o := object{"messageId": m.ID, "role": "ROLE_USER", "parts": w.writeParts(m.Parts)}
	switch {
	case w.Version == Version03 && m.FromAgent:
		o["role"] = "agent"
	case w.Version == Version03:
		o["role"] = "user"
	case m.FromAgent:
		o["role"] = "ROLE_AGENT"
	}
	if m.ContextID != "" {
		o["contextId"] = m.ContextID
	}
	if m.TaskID != "" {
		o["taskId"] = m.TaskID
	}
	if m.Speaker != nil {
		o["metadata"], o["extensions"] = object{ExtSpeaker: m.Speaker}, []string{ExtSpeaker}
	}
	return w.addKind(o, "message")
}

func (w Writer) writeArtifact(a task.Artifact) object {
	o := object{"artifactId": a.ID, "parts": w.writeParts(a.Parts)}
	if a.Name != "" {
		o["name"] = a.Name
	}
	if a.Description != "" {
		o["description"] = a.Description
	}
	return o
}

func (w Writer) writeParts(list []task.Part) []object {
	if w.Version == Version03 {
		return mapParts(list, writePartRPC03)
	}
	return mapParts(list, writePart10)
}

func writePart10(p task.Part) object {
	o := object{}
	switch {
	case p.URL != "":
		o["url"] = p.URL
	case len(p.Raw) > 0:
		o["raw"] = p.Raw
	case len(p.Data) > 0:
		o["data"] = p.Data
	default:
		o["text"] = p.Text // also if the text is empty, as at the end of a stream
	}
	if p.MediaType != "" {
		o["mediaType"] = p.MediaType
	}
	if p.Filename != "" {
		o["filename"] = p.Filename
	}
	return withMeta(o, p.SharedMetadata())
}

// ParseTime parses a time of a request (RFC 3339 with optional fractions); false if it is malformed.
func ParseTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}
