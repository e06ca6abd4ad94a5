package a2a

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"agentsite/internal/lenientjson"
	"agentsite/internal/reason"
	"agentsite/internal/task"
)

// Agents in other languages write their answers otherwise than the schema has them: one value in place of a list, a
// text in place of a message, other words for states, names of protobuf. mendEvent writes an answer as the schema has
// it, before the decoder reads it. A value of a form that is unknown is left as it is, and costs only itself.
// Answers of other portals are not mended.

type members = map[string]json.RawMessage

// otherNames are names of members in protobuf and in older versions, with those of the schema.
var otherNames = map[string]string{"task_id": "taskId", "context_id": "contextId", "message_id": "messageId",
	"artifact_id": "artifactId", "last_chunk": "lastChunk", "status_update": "statusUpdate",
	"artifact_update": "artifactUpdate", "media_type": "mediaType", "mime_type": "mimeType",
	"file_with_bytes": "fileWithBytes", "file_with_uri": "fileWithUri", "file_name": "filename", "fileName": "filename"}

// membersOf returns the members of an object under the names of the schema; nil for another value. The object
// {"root": …}, in which Python wraps one of several types, is that in it.
func membersOf(raw json.RawMessage) members {
	var o members
	if !isObject(raw) || lenientjson.Decode(raw, &o) != nil {
		return nil
	}
	if inner, ok := o["root"]; ok && len(o) == 1 && isObject(inner) {
		o = nil
		if lenientjson.Decode(inner, &o) != nil {
			return nil
		}
	}
	for name, v := range o {
		if proper, ok := otherNames[name]; ok && o[proper] == nil {
			o[proper] = v
		}
		if isNothing(v) {
			delete(o, name)
		}
	}
	return o
}

func isNothing(raw json.RawMessage) bool {
	return len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null"
}

// isText reports whether a value is a text, a number or a boolean.
func isPlain(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && strings.IndexByte(`"-0123456789tf`, raw[0]) >= 0
}

// encodeOr encodes v without the escapes for HTML, because data is shown as it is encoded.
func encodeOr(v any, otherwise json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return otherwise
	}
	return bytes.TrimSpace(b.Bytes())
}

// mendMember replaces a member by mend of it, if it is there.
func mendMember(o members, name string, mend func(json.RawMessage) json.RawMessage) {
	if v, ok := o[name]; ok {
		o[name] = mend(v)
	}
}

// mendEvent mends an event of a stream, the result of a call, or a task. It may lie in one member of another object.
func mendEvent(raw json.RawMessage) json.RawMessage { return mendEventWithin(raw, true) }

// mendEventWithin is mendEvent. An event inside of an inner one is not looked at, because each level is a copy.
func mendEventWithin(raw json.RawMessage, outer bool) json.RawMessage {
	raw = lenientjson.TrimMark(raw)
	raw = unwrapOne(bytes.TrimSpace(raw))
	o := membersOf(raw)
	if o == nil {
		return raw
	}
	for _, name := range []string{"task", "statusUpdate", "artifactUpdate"} {
		if outer {
			mendMember(o, name, func(inner json.RawMessage) json.RawMessage { return mendEventWithin(inner, false) })
		}
	}
	if isObject(o["message"]) || o["status"] == nil && !saysError(raw) {
		mendMember(o, "message", mendSaid) // A text beside these is no answer.
	}
	mendMember(o, "artifact", mendArtifact)
	mendMember(o, "artifacts", listOf(mendArtifact))
	mendMember(o, "history", listOf(mendMessage))
	mendMember(o, "parts", mendParts)
	mendMember(o, "content", mendParts)
	mendMember(o, "status", mendStatus)
	addFailure(o)
	return encodeOr(o, raw)
}

// addFailure puts the reason beside the status of a failed task into it, if the status has none.
func addFailure(o members) {
	s := membersOf(o["status"])
	if s == nil || s["message"] != nil || lenientjson.TextOf(s["state"]) != string(task.Failed) {
		return
	}
	for _, name := range []string{"error", "errors", "reason", "detail"} {
		if why := reason.Find(o[name]); reason.IsSet(o[name]) && why != "" {
			s["message"] = textMessage(why)
			o["status"] = encodeOr(s, o["status"])
			return
		}
	}
}

func listOf(mend func(json.RawMessage) json.RawMessage) func(json.RawMessage) json.RawMessage {
	return func(raw json.RawMessage) json.RawMessage {
		var list []json.RawMessage
		if lenientjson.Decode(raw, &list) != nil {
			return raw
		}
		out := make([]json.RawMessage, 0, len(list))
		for _, v := range list {
			if !isNothing(v) {
				out = append(out, mend(v))
			}
		}
		return encodeOr(out, raw)
	}
}

func mendStatus(raw json.RawMessage) json.RawMessage {
	if isPlain(raw) {
		raw = encodeOr(members{"state": raw}, raw)
	}
	s := membersOf(raw)
	if s == nil {
		return raw
	}
	state := stateOf(lenientjson.TextOf(s["state"]))
	s["state"] = encodeOr(state, s["state"])
	if s["message"] == nil && (s["parts"] != nil || s["content"] != nil || s["text"] != nil) {
		s["message"] = encodeOr(s, nil)
	}
	mendMember(s, "message", mendSaid)
	if state == task.Failed && s["message"] == nil {
		delete(s, "state")
		if why := reason.Find(encodeOr(s, nil)); why != "" {
			s["message"] = textMessage(why)
		}
		s["state"] = encodeOr(state, nil)
	}
	return encodeOr(s, raw)
}

// stateWords are parts of the words that agents use for states, the more certain first. Tasks in a state that no word
// is for are asked for again.
var stateWords = []struct {
	state task.State
	words []string
}{
	{task.Working, []string{"incomplete", "unfinished", "not_", "in_progress", "inprogress", "running", "processing"}},
	{task.Failed, []string{"fail", "error", "exception", "crash", "timeout", "timed_out", "expired"}},
	{task.Rejected, []string{"reject", "refus", "denied", "declin"}},
	{task.Canceled, []string{"cancel", "abort", "stopped", "killed", "terminated"}},
	{task.AuthRequired, []string{"auth"}},
	{task.InputRequired, []string{"input", "waiting_for_user", "awaiting_user", "clarif"}},
	{task.Completed, []string{"complete", "done", "success", "succeed", "finish", "ended", "resolved"}},
	{task.Submitted, []string{"submit", "queue", "pending", "created", "accepted"}},
}

// protoStates are the states by their numbers in protobuf.
var protoStates = []task.State{"", task.Submitted, task.Working, task.Completed, task.Failed, task.Canceled,
	task.InputRequired, task.Rejected, task.AuthRequired}

// stateOf returns the state that a word of an agent means, "" for an unknown one.
func stateOf(s string) task.State {
	if st := parseState(s); st != "" {
		return st
	}
	if len(s) == 1 && s[0] > '0' && int(s[0]-'0') < len(protoStates) {
		return protoStates[s[0]-'0']
	}
	s = strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(s)))
	if s == "ok" || s == "end" {
		return task.Completed
	}
	for _, x := range stateWords {
		if slices.ContainsFunc(x.words, func(w string) bool { return strings.Contains(s, w) }) {
			return x.state
		}
	}
	return ""
}

func textMessage(s string) json.RawMessage {
	return encodeOr(object{"role": "agent", "parts": []object{{"text": s}}}, nil)
}

// mendSaid mends a message that the agent sends, also one without a role.
func mendSaid(raw json.RawMessage) json.RawMessage {
	o := membersOf(mendMessage(raw))
	if o == nil {
		return raw
	}
	if o["role"] == nil {
		o["role"] = json.RawMessage(`"agent"`)
	}
	return encodeOr(o, raw)
}

// mendMessage mends a message: an object, a list of parts, or a text.
func mendMessage(raw json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(raw); isPlain(trimmed) || len(trimmed) > 0 && trimmed[0] == '[' {
		return encodeOr(object{"parts": mendParts(raw)}, raw)
	}
	o := membersOf(raw)
	if o == nil {
		return raw
	}
	useParts(o)
	return encodeOr(o, raw)
}

// mendArtifact mends an artifact: an object, a list of parts, or a text.
func mendArtifact(raw json.RawMessage) json.RawMessage {
	o := membersOf(mendMessage(raw))
	if o == nil {
		return raw
	}
	if id, ok := o["id"]; ok && o["artifactId"] == nil {
		o["artifactId"] = id
	}
	return encodeOr(o, raw)
}

// useParts sets the parts of a message or an artifact, which some agents put in another member.
func useParts(o members) {
	for _, name := range []string{"parts", "part", "content", "text"} {
		if v, ok := o[name]; ok {
			o["parts"] = mendParts(v)
			return
		}
	}
}

// mendParts mends a list of parts, one part, or a text.
func mendParts(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if lenientjson.Decode(raw, &list) != nil {
		return raw
	}
	out := make([]json.RawMessage, 0, len(list))
	for _, v := range list {
		if p, ok := mendPart(v); ok {
			out = append(out, p)
		}
	}
	return encodeOr(out, raw)
}

func mendPart(raw json.RawMessage) (part json.RawMessage, ok bool) {
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) {
		return encodeOr(object{"text": lenientjson.TextOf(raw)}, raw), true
	}
	o := membersOf(raw)
	if o == nil {
		return nil, false
	}
	kind := strings.ToLower(lenientjson.TextOf(o["kind"]) + lenientjson.TextOf(o["type"]))
	text, isText := o["text"]
	if !isText && strings.Contains(kind, "text") {
		for _, name := range []string{"content", "value"} {
			if v, has := o[name]; has && !isText {
				text, isText = v, true
			}
		}
	}
	if isText {
		o["text"] = encodeOr(textOf(text), text)
	}
	if file := bytes.TrimSpace(o["file"]); isPlain(file) {
		at := object{"bytes": lenientjson.TextOf(file), "name": lenientjson.TextOf(o["filename"]),
			"mimeType": lenientjson.TextOf(o["mediaType"]) + lenientjson.TextOf(o["mimeType"])}
		if strings.Contains(lenientjson.TextOf(file), "://") {
			at["uri"] = at["bytes"]
			delete(at, "bytes")
		}
		o["file"] = encodeOr(at, file)
	} else if f := membersOf(file); f != nil {
		o["file"] = encodeOr(f, file)
	}
	return encodeOr(o, raw), true
}

// textOf returns a text that may be in an object or in several pieces.
func textOf(raw json.RawMessage) string {
	if o := membersOf(raw); o != nil {
		for _, name := range []string{"text", "value", "content"} {
			if isPlain(o[name]) {
				return lenientjson.TextOf(o[name])
			}
		}
	}
	return lenientjson.TextOf(raw)
}
