package mcp

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/egress"
	"agentsite/internal/lenientjson"
	"agentsite/internal/reason"
)

// The SDK decodes messages strictly, so that one odd field makes a server unusable. mendMessage writes
// messages of servers in other languages as the schema has them, before the SDK reads them. Content that
// cannot be mended is left as it is, or left out if it is one element of a list.

type members = map[string]json.RawMessage

// mendMessage returns a message with its known fields in the forms of the schema. methodOf returns the
// method and the exact id of the request with that id as text; ok is false for an unknown one.
func mendMessage(raw []byte, methodOf func(id string) (method string, exact json.RawMessage, ok bool)) []byte {
	var msg members
	trimmed := unwrapMessage(raw)
	if len(trimmed) == 0 || trimmed[0] != '{' || lenientjson.Decode(trimmed, &msg) != nil {
		return raw
	}
	_, isResult := msg["result"]
	_, isError := msg["error"]
	if isResult || isError {
		msg["jsonrpc"] = json.RawMessage(`"2.0"`)
		if isNull(msg["error"]) {
			delete(msg, "error")
		} else if isNull(msg["result"]) {
			delete(msg, "result")
		}
		method, exact, ok := methodOf(idText(msg["id"]))
		if ok {
			msg["id"] = exact
		}
		if r, is := msg["result"]; is {
			if r = lenientjson.OrObject(r); method == "tools/call" && bytes.TrimSpace(r)[0] != '{' {
				r = encodeOr(members{"content": r}, r) // the content alone
			}
			msg["result"] = mendResult(method, r)
		}
		if e, is := msg["error"]; is {
			msg["error"] = mendError(e)
		}
	} else if _, is := msg["method"]; is {
		if p, has := msg["params"]; has {
			msg["params"] = mendParams(lenientjson.TextOf(msg["method"]), lenientjson.OrObject(p))
		}
	} else {
		return raw
	}
	return encodeOr(msg, raw)
}

// unwrapMessage returns the message in an answer that is one JSON text: without a mark and text after it, out of a
// list of one, and out of events.
func unwrapMessage(raw []byte) []byte {
	b := bytes.TrimSpace(lenientjson.TrimMark(raw))
	if len(b) == 0 {
		return b
	}
	if b[0] != '{' && b[0] != '[' {
		events := egress.NewLooseEventReader(bytes.NewReader(b))
		for {
			ev, err := events.NextEvent()
			if err != nil {
				break
			}
			var is struct{ Result, Error json.RawMessage }
			if json.Unmarshal(ev.Data, &is) == nil && (is.Result != nil || is.Error != nil) {
				return bytes.Clone(ev.Data)
			}
		}
		return b
	}
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(b)).Decode(&first) == nil {
		b = first
	}
	var list []json.RawMessage
	if b[0] == '[' && json.Unmarshal(b, &list) == nil && len(list) == 1 {
		return list[0]
	}
	return b
}

func encodeOr(v any, otherwise []byte) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return otherwise
	}
	return b
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null" || string(raw) == "false"
}

// idText returns an id as text: a number and a text with its digits are the same id.
func idText(raw json.RawMessage) string {
	return strings.TrimSuffix(lenientjson.TextOf(raw), ".0")
}

func mendError(raw json.RawMessage) json.RawMessage {
	var e struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	if raw[0] == '{' {
		_ = lenientjson.Decode(raw, &e) // of JSON: an odd field stays empty
	} else {
		e.Message = lenientjson.TextOf(raw)
	}
	if e.Code == 0 {
		e.Code = -32000
	}
	switch why := reason.Find(e.Data); {
	case reason.IsTitle(e.Message):
		e.Message = cmp.Or(reason.Find(encodeOr(members{"error": raw}, nil)), e.Message)
	case why != "" && !reason.IsTitle(why) && !strings.Contains(e.Message, why):
		e.Message += ": " + why
	}
	return encodeOr(e, raw)
}

func mendParams(method string, raw json.RawMessage) json.RawMessage {
	var p members
	if raw[0] != '{' || lenientjson.Decode(raw, &p) != nil {
		return raw
	}
	mendMeta(p)
	if method == "notifications/progress" {
		for _, name := range []string{"progress", "total"} {
			var f float64
			if v, ok := p[name]; ok && lenientjson.Decode(v, &f) == nil {
				p[name] = encodeOr(f, v)
			}
		}
		textMembers(p, "message")
	}
	return encodeOr(p, raw)
}

func mendResult(method string, raw json.RawMessage) json.RawMessage {
	var r members
	if raw[0] != '{' || lenientjson.Decode(raw, &r) != nil {
		return raw
	}
	mendMeta(r)
	textMembers(r, "nextCursor", "instructions", "protocolVersion")
	for _, name := range []string{"capabilities", "serverInfo"} {
		if v, ok := r[name]; ok {
			r[name] = mendObjects(v)
		}
	}
	if info := (members{}); r["serverInfo"] != nil && lenientjson.Decode(r["serverInfo"], &info) == nil {
		textMembers(info, "name", "title", "version")
		listMembers(info, "icons")
		r["serverInfo"] = encodeOr(info, r["serverInfo"])
	}
	switch method {
	case "initialize":
		if v, ok := r["protocolVersion"]; ok {
			r["protocolVersion"] = encodeOr(knownVersion(lenientjson.TextOf(v)), v)
		}
	case "tools/list":
		r["tools"] = mendList(r["tools"], mendTool)
	case "tools/call":
		findContent(r)
		if v, ok := r["content"]; ok || r["structuredContent"] != nil || len(r) == 0 {
			r["content"] = mendList(v, mendBlock)
			if odd := bytes.TrimSpace(v); string(r["content"]) == "[]" && len(odd) > 2 && odd[0] == '[' &&
				isNull(r["structuredContent"]) {
				r["content"] = encodeOr([]json.RawMessage{textBlock("[The answer has content of a kind that this " +
					"portal does not know.]")}, v)
			}
		}
		v := r["structuredContent"]
		if isNull(v) || string(lenientjson.OrObject(v)) == "{}" && len(r["content"]) > len("[]") {
			delete(r, "structuredContent")
		}
		boolMembers(r, "isError")
	}
	return encodeOr(r, raw)
}

// knownVersion returns the newest version of MCP that is not newer than v, or the oldest for one of 2024. A version
// that is older, or newer than all with sessions, is returned as it is.
func knownVersion(v string) string {
	all := sdk.SupportedProtocolVersions() // the newest first
	if v > legacy || v < "2024" || slices.Contains(all, v) {
		return v
	}
	for _, known := range all {
		if known <= v {
			return known
		}
	}
	return all[len(all)-1]
}

// findContent sets the content of a result that has it in another member. MCP before 2024-11-05 had toolResult.
func findContent(r members) {
	if r["content"] != nil || r["structuredContent"] != nil {
		return
	}
	for _, name := range []string{"toolResult", "text", "output", "result"} {
		v := r[name]
		if isNull(v) {
			continue
		}
		if r["content"] = mendList(v, mendBlock); string(r["content"]) == "[]" {
			r["content"] = encodeOr([]json.RawMessage{textBlock(string(v))}, v)
		}
		return
	}
}

// mendObjects returns an object with objects as members. A member that is nothing or no object becomes
// an empty one, except false, which is left out.
func mendObjects(raw json.RawMessage) json.RawMessage {
	var o members
	raw = lenientjson.OrObject(raw)
	if raw[0] != '{' || lenientjson.Decode(raw, &o) != nil {
		return json.RawMessage("{}")
	}
	for name, v := range o {
		switch {
		case string(v) == "false" || string(v) == "null":
			delete(o, name)
		case string(v) == "true" || string(lenientjson.OrObject(v)) == "{}":
			o[name] = json.RawMessage("{}")
		case v[0] == '{':
			inner := members{}
			if lenientjson.Decode(v, &inner) == nil {
				boolMembers(inner, "listChanged", "subscribe")
				o[name] = encodeOr(inner, v)
			}
		}
	}
	return encodeOr(o, raw)
}

// mendList returns a list with the elements that mend accepts. A single value is a list of one.
func mendList(raw json.RawMessage, mend func(json.RawMessage) (json.RawMessage, bool)) json.RawMessage {
	var list []json.RawMessage
	if len(raw) > 0 {
		_ = lenientjson.Decode(raw, &list) // of JSON: each form has elements or none
	}
	out := make([]json.RawMessage, 0, len(list))
	for _, v := range list {
		if m, ok := mend(v); ok {
			out = append(out, m)
		}
	}
	return encodeOr(out, raw)
}

func mendTool(raw json.RawMessage) (json.RawMessage, bool) {
	var t members
	if raw[0] != '{' || lenientjson.Decode(raw, &t) != nil {
		return nil, false
	}
	mendMeta(t)
	textMembers(t, "name", "title", "description")
	if lenientjson.TextOf(t["name"]) == "" {
		return nil, false
	}
	listMembers(t, "icons")
	for name, other := range map[string][]string{"inputSchema": {"input_schema", "parameters", "schema"},
		"outputSchema": {"output_schema"}} {
		for _, o := range other {
			if v, ok := t[o]; ok && t[name] == nil {
				t[name] = v
			}
		}
	}
	t["inputSchema"] = mendSchema(t["inputSchema"])
	if v, ok := t["outputSchema"]; ok {
		if v = lenientjson.OrObject(v); v[0] != '{' || string(v) == "{}" {
			delete(t, "outputSchema")
		} else {
			t["outputSchema"] = mendSchema(v)
		}
	}
	if v, ok := t["annotations"]; ok {
		var a members
		if v = lenientjson.OrObject(v); v[0] != '{' || lenientjson.Decode(v, &a) != nil {
			delete(t, "annotations")
		} else {
			textMembers(a, "title")
			boolMembers(a, "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
			t["annotations"] = encodeOr(a, v)
		}
	}
	objectMembers(t, "execution")
	return encodeOr(t, raw), true
}

// mendSchema returns the schema of a tool as an object of type "object".
func mendSchema(raw json.RawMessage) json.RawMessage {
	var s members
	raw = lenientjson.OrObject(raw)
	if raw[0] != '{' || lenientjson.Decode(raw, &s) != nil {
		return json.RawMessage(anySchema)
	}
	if lenientjson.TextOf(s["type"]) != "object" {
		s["type"] = json.RawMessage(`"object"`)
		raw = encodeOr(s, raw)
	}
	properties, has := s["properties"]
	required, needs := s["required"]
	objects := has && string(lenientjson.OrObject(properties)) != string(properties)
	lists := needs && (len(required) == 0 || required[0] != '[')
	if !objects && !lists {
		return raw // in the order of its fields
	}
	if objects {
		s["properties"] = lenientjson.OrObject(properties)
	}
	if lists {
		delete(s, "required")
	}
	return encodeOr(s, raw)
}

func mendBlock(raw json.RawMessage) (json.RawMessage, bool) {
	var b members
	if raw[0] != '{' {
		if s := lenientjson.TextOf(raw); s != "" && raw[0] != '[' {
			return textBlock(s), true
		}
		return nil, false
	}
	if lenientjson.Decode(raw, &b) != nil {
		return nil, false
	}
	mendMeta(b)
	objectMembers(b, "annotations")
	mendAudience(b)
	textMembers(b, "type", "mimeType", "uri", "name", "title", "description")
	kind := lenientjson.TextOf(b["type"])
	switch kind {
	case "image", "audio":
		ok := mendData(b, "data")
		keepMembers(b, "type", "data", "mimeType", "annotations", "_meta")
		return encodeOr(b, raw), ok
	case "resource":
		var r members
		v := b["resource"]
		if len(v) == 0 || v[0] != '{' || lenientjson.Decode(v, &r) != nil {
			return nil, false
		}
		mendMeta(r)
		textMembers(r, "uri", "mimeType", "text")
		if _, has := r["blob"]; has && !mendData(r, "blob") {
			return nil, false
		}
		if _, has := r["uri"]; !has {
			r["uri"] = json.RawMessage(`"file"`)
		}
		b["resource"] = encodeOr(r, v)
		keepMembers(b, "type", "resource", "annotations", "_meta")
		return encodeOr(b, raw), true
	case "resource_link":
		_, ok := b["uri"]
		keepMembers(b, "type", "uri", "name", "title", "description", "mimeType", "annotations", "_meta")
		if _, has := b["name"]; !has && ok {
			b["name"] = b["uri"]
		}
		return encodeOr(b, raw), ok
	case "tool_use", "tool_result":
		return raw, false
	}
	if text := lenientjson.TextOf(b["text"]); text != "" || kind == "text" {
		return textBlock(text), true
	}
	return nil, false
}

func textBlock(s string) json.RawMessage {
	return encodeOr(map[string]string{"type": "text", "text": s}, nil)
}

// mendData writes a member as plain base64: of a data URL without its head, of the alphabet for URLs in
// the standard one. It reports false if the member is no base64, so that its block is left out.
func mendData(b members, name string) bool {
	s := lenientjson.TextOf(b[name])
	if head, rest, ok := strings.Cut(s, ","); ok && strings.HasPrefix(head, "data:") {
		s = rest
		media, _, _ := strings.Cut(strings.TrimPrefix(head, "data:"), ";")
		if lenientjson.TextOf(b["mimeType"]) == "" && media != "" {
			b["mimeType"] = encodeOr(media, nil)
		}
	}
	s = strings.Join(strings.Fields(strings.NewReplacer("-", "+", "_", "/").Replace(s)), "")
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return false
	}
	b[name] = encodeOr(data, nil)
	return true
}

// mendMeta leaves out metadata that is no object.
func mendMeta(o members) { objectMembers(o, "_meta") }

// objectMembers leaves out members that are no objects or empty.
func objectMembers(o members, names ...string) {
	for _, name := range names {
		if v, ok := o[name]; ok && (len(v) == 0 || v[0] != '{') {
			delete(o, name)
		}
	}
}

// mendAudience leaves out the fields of a block's annotations that have another form than the schema's.
func mendAudience(b members) {
	var a struct {
		Audience     []string `json:"audience,omitempty"`
		Priority     float64  `json:"priority,omitempty"`
		LastModified string   `json:"lastModified,omitempty"`
	}
	if v, ok := b["annotations"]; ok && lenientjson.Decode(v, &a) == nil {
		b["annotations"] = encodeOr(a, v)
	}
}

// keepMembers leaves out all other members.
func keepMembers(o members, names ...string) {
	for name := range o {
		if !slices.Contains(names, name) {
			delete(o, name)
		}
	}
}

// listMembers leaves out members that are no lists of objects.
func listMembers(o members, names ...string) {
	for _, name := range names {
		v, ok := o[name]
		if !ok {
			continue
		}
		if v[0] != '[' {
			delete(o, name)
			continue
		}
		o[name] = mendList(v, func(e json.RawMessage) (json.RawMessage, bool) { return e, e[0] == '{' })
	}
}

// textMembers writes members as text, and leaves out those that are null or have no text.
func textMembers(o members, names ...string) {
	for _, name := range names {
		v, ok := o[name]
		if !ok || v[0] == '"' {
			continue
		}
		if s := lenientjson.TextOf(v); s != "" {
			o[name] = encodeOr(s, v)
		} else {
			delete(o, name)
		}
	}
}

// boolMembers writes members as booleans.
func boolMembers(o members, names ...string) {
	for _, name := range names {
		v, ok := o[name]
		var b bool
		if ok && lenientjson.Decode(v, &b) == nil {
			o[name] = encodeOr(b, v)
		}
	}
}
