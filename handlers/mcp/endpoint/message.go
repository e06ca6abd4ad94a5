package endpoint

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"agentsite/internal/lenientjson"
	"agentsite/internal/strictjson"
)

// Bounds of one request. Accounts may send more than guests, because they can be held responsible.
const (
	maxBody      = 4 << 20
	maxGuestBody = 1 << 20
	maxBatch     = 20
	maxID        = 256 // bytes
	maxMethod    = 100 // bytes
)

// message is one JSON-RPC message: a request (with id and method), a notification (method only), or a
// client's answer to a request of this server (id, and result or error).
type message struct {
	id     json.RawMessage
	method string
	params strictjson.Object
	result json.RawMessage
	err    json.RawMessage
}

func (m *message) isRequest() bool { return m.id != nil && m.method != "" }

func (m *message) isAnswer() bool { return m.method == "" }

// readMeta returns the _meta of the message; ok is false if it is no object.
func (m *message) readMeta() (strictjson.Object, bool) { return m.params.Object("_meta") }

// readMessages decodes a body. batch is true for a list of messages. An invalid message of a batch gets
// an error in its place; p is the error for the whole body.
func readMessages(b []byte) (list []message, batch bool, p *Problem) {
	b = lenientjson.TrimMark(b)
	if err := strictjson.Check(b); err != nil {
		p := &Problem{Code: CodeParse, Status: http.StatusBadRequest,
			Message: "The body cannot be read as JSON: " + err.Error() + "."}
		if _, syntax := err.(*json.SyntaxError); !syntax {
			p.Code, p.Message = CodeInvalidRequest, "The JSON has "+err.Error()+"."
		}
		return nil, false, p
	}
	b = bytes.TrimSpace(b)
	if b[0] != '[' {
		m, p := readMessage(b)
		return []message{m}, false, p
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(b, &raws); err != nil {
		return nil, true, invalidRequest("The batch cannot be read.")
	}
	if len(raws) == 0 || len(raws) > maxBatch {
		return nil, true, invalidRequest("A batch has 1 to 20 messages.")
	}
	for _, raw := range raws {
		m, p := readMessage(raw)
		if p != nil {
			return nil, true, p
		}
		list = append(list, m)
	}
	return list, true, nil
}

func readMessage(raw json.RawMessage) (m message, p *Problem) {
	o, ok := strictjson.Split(raw)
	if !ok {
		return m, invalidRequest("A message is a JSON object.")
	}
	if id := o.Get("id"); id != nil {
		if !validID(id) {
			return m, invalidRequest("id: use a text of at most 254 bytes or a whole number.")
		}
		m.id = id
	}
	if v, ok := o.Text("jsonrpc"); !ok || v != "2.0" {
		return m, invalidRequest(`jsonrpc: must be "2.0".`)
	}
	if m.method, ok = o.Text("method"); !ok || len(m.method) > maxMethod || o.Get("method") != nil && m.method == "" {
		return m, invalidRequest("method: use a text.")
	}
	m.result, m.err = o.Get("result"), o.Get("error")
	if m.method == "" {
		if m.id == nil || (m.result == nil) == (m.err == nil) {
			return m, invalidRequest("A message has a method, or an id with a result or an error.")
		}
		return m, nil
	}
	if m.params, ok = strictjson.Split(lenientjson.OrObject(o.Get("params"))); !ok {
		return m, &Problem{Code: CodeInvalidParams, Status: http.StatusBadRequest, Message: "params: use an object."}
	}
	m.params = mendParams(m.params)
	return m, nil
}

// objectParams are the params that are objects; languages without empty objects write them as [].
var objectParams = []string{"arguments", "_meta", "capabilities", "clientInfo", "context", "notifications",
	"inputResponses"}

// mendParams returns params without those that are null, and with empty objects in place of empty lists.
func mendParams(params strictjson.Object) strictjson.Object {
	params = slices.DeleteFunc(params, func(m strictjson.Member) bool { return string(m.Value) == "null" })
	for i, m := range params {
		if slices.Contains(objectParams, m.Name) {
			params[i].Value = lenientjson.OrObject(m.Value)
		}
		if m.Name != "_meta" && m.Name != "capabilities" {
			continue
		}
		if inner, ok := strictjson.Split(params[i].Value); ok && hasEmptyList(inner) {
			params[i].Value = joinMembers(inner)
		}
	}
	return params
}

func hasEmptyList(o strictjson.Object) bool {
	return slices.ContainsFunc(o, func(m strictjson.Member) bool { return m.Value[0] == '[' })
}

// joinMembers returns an object in JSON, with empty objects in place of empty lists.
func joinMembers(o strictjson.Object) json.RawMessage {
	out := make(map[string]json.RawMessage, len(o))
	for _, m := range o {
		out[m.Name] = m.Value
		if m.Value[0] == '[' {
			out[m.Name] = lenientjson.OrObject(m.Value)
		}
	}
	b, err := json.Marshal(out)
	if err != nil { // of parts that were checked
		panic(err)
	}
	return b
}

// validID reports whether raw is a request id: a string or an integer, within maxID bytes.
func validID(raw json.RawMessage) bool {
	switch {
	case len(raw) == 0 || len(raw) > maxID:
		return false
	case raw[0] == '"':
		return true
	}
	return (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') && len(raw) <= 20 &&
		!bytes.ContainsAny(bytes.TrimSuffix(raw, []byte(".0")), ".eE")
}

// wrapAnswer encodes a JSON-RPC answer; key is "result" or "error".
func wrapAnswer(id json.RawMessage, key string, body []byte) []byte {
	out := make([]byte, 0, len(body)+len(id)+48)
	out = append(out, `{"jsonrpc":"2.0"`...)
	if id != nil {
		out = append(append(out, `,"id":`...), id...)
	}
	out = append(append(append(out, `,"`...), key...), `":`...)
	return append(append(out, body...), '}')
}

// encodeNotice encodes a notification, or with an id a request to the client.
func encodeNotice(id json.RawMessage, method string, params any) []byte {
	b, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  any             `json:"params,omitempty"`
	}{"2.0", id, method, params})
	if err != nil { // messages hold only types that encode
		panic(err)
	}
	return b
}
