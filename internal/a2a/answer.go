package a2a

import (
	"strings"
	"time"

	"agentsite/internal/task"
)

// Writer writes what an agent of this portal answers, in the form of a version:
// 1.0, which is the same in both bindings, or 0.3 over JSON-RPC.
type Writer struct{ Version string }

// timeLayout is RFC 3339 in UTC with milliseconds (§5.6.1).
const timeLayout = "2006-01-02T15:04:05.000Z"

// Task writes a task.
func (w Writer) Task(t Task) any { return w.task(t) }

func (w Writer) task(t Task) object {
	o := object{"id": t.ID, "contextId": t.ContextID, "status": w.status(t.Status)}
	if len(t.Artifacts) > 0 {
		list := make([]object, len(t.Artifacts))
		for i, a := range t.Artifacts {
			list[i] = w.artifact(a)
		}
		o["artifacts"] = list
	}
	if len(t.History) > 0 {
		list := make([]object, len(t.History))
		for i, m := range t.History {
			list[i] = w.message(m)
		}
		o["history"] = list
	}
	return w.kind(o, "task")
}

// Tasks writes the answer of ListTasks, whose four fields are always there.
func (w Writer) Tasks(list []Task, next string, size, total int) any {
	out := make([]object, len(list))
	for i, t := range list {
		out[i] = w.task(t)
	}
	return object{"tasks": out, "nextPageToken": next, "pageSize": size, "totalSize": total}
}

// Nothing writes the answer of what has nothing to say: an empty object, which
// 0.3 has null for.
func (w Writer) Nothing() any {
	if w.Version == Version03 {
		return Null{}
	}
	return object{}
}

// Null is written as null, also where nothing at all would be left out.
type Null struct{}

// MarshalJSON implements json.Marshaler.
func (Null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Event writes a StreamResponse of 1.0, which is also what SendMessage
// answers, or the bare object that 0.3 has in its place.
func (w Writer) Event(e Event) any {
	name, o := "", object(nil)
	switch {
	case e.Task != nil:
		name, o = "task", w.task(*e.Task)
	case e.Message != nil:
		name, o = "message", w.message(*e.Message)
	case e.Status != nil:
		u := e.Status
		name, o = "statusUpdate", w.kind(object{"taskId": u.TaskID, "contextId": u.ContextID,
			"status": w.status(u.Status)}, "status-update")
		if w.Version == Version03 {
			o["final"] = !u.Status.State.Active()
		}
	case e.Artifact != nil:
		u := e.Artifact
		name, o = "artifactUpdate", w.kind(object{"taskId": u.TaskID, "contextId": u.ContextID,
			"artifact": w.artifact(u.Artifact), "append": u.Append, "lastChunk": u.Last}, "artifact-update")
	}
	if len(e.Metadata) > 0 {
		o["metadata"] = e.Metadata
	}
	if w.Version == Version03 {
		return o
	}
	return object{name: o}
}

// kind adds the word that 0.3 tells objects apart by.
func (w Writer) kind(o object, kind string) object {
	if w.Version == Version03 {
		o["kind"] = kind
	}
	return o
}

func (w Writer) status(s Status) object {
	o := object{"state": s.State.A2A()}
	if w.Version == Version03 {
		o["state"] = strings.ReplaceAll(string(s.State), "_", "-")
	}
	if s.Message != nil {
		o["message"] = w.message(*s.Message)
	}
	if !s.At.IsZero() {
		o["timestamp"] = s.At.UTC().Format(timeLayout)
	}
	return o
}

func (w Writer) message(m Message) object {
	o := object{"messageId": m.ID, "role": "ROLE_USER", "parts": w.parts(m.Parts)}
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
	return w.kind(o, "message")
}

func (w Writer) artifact(a task.Artifact) object {
	o := object{"artifactId": a.ID, "parts": w.parts(a.Parts)}
	if a.Name != "" {
		o["name"] = a.Name
	}
	if a.Description != "" {
		o["description"] = a.Description
	}
	return o
}

func (w Writer) parts(list []task.Part) []object {
	if w.Version == Version03 {
		return parts03(list, partRPC03)
	}
	return parts03(list, part10)
}

func part10(p task.Part) object {
	o := object{}
	switch {
	case p.URL != "":
		o["url"] = p.URL
	case len(p.Raw) > 0:
		o["raw"] = p.Raw
	case len(p.Data) > 0:
		o["data"] = p.Data
	default:
		o["text"] = p.Text // also the empty one that ends a stream
	}
	if p.MediaType != "" {
		o["mediaType"] = p.MediaType
	}
	if p.Filename != "" {
		o["filename"] = p.Filename
	}
	return withMeta(o, p.Metadata)
}

// ParseTime reads a time as clients write it.
func ParseTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}
