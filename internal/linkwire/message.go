package linkwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Message is one JSON-RPC 2.0 message. A request has Method and ID, a notification only Method, a
// response no Method.
type Message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Error is the error object of JSON-RPC 2.0. Code is one of JSON-RPC or of this package.
type Error struct {
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Data    *ErrorData `json:"data,omitempty"`
}

// ErrorData is the data of an error. Kind is the kind of the error, the same word as in the HTTP
// API.
type ErrorData struct {
	Kind   string            `json:"kind"`
	Fields map[string]string `json:"fields,omitempty"`
}

// Error implements error with the message that the other side sent.
func (e *Error) Error() string { return e.Message }

// maxID bounds the id of a request, in bytes.
const maxID = 64

// DecodeMessage reads one message and refuses malformed ones. Unknown fields are ignored, because later
// versions may add some.
func DecodeMessage(b []byte) (Message, error) {
	var m Message
	switch {
	case len(b) > MaxMessage:
		return m, fmt.Errorf("a message of more than %d bytes", MaxMessage)
	case !utf8.Valid(b):
		return m, errors.New("a message that is not UTF-8")
	case depth(b) > maxDepth:
		return m, fmt.Errorf("a message nested deeper than %d", maxDepth)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, errors.New("a message that is not a JSON object")
	}
	id := string(m.ID)
	if id == "null" {
		id, m.ID = "", nil
	}
	switch {
	case m.JSONRPC != "2.0":
		return m, errors.New(`a message without "jsonrpc":"2.0"`)
	case len(id) > maxID || id != "" && strings.ContainsRune("{[tf", rune(id[0])):
		return m, errors.New("an id that is no short number or text")
	case m.Method != "" && (m.Result != nil || m.Error != nil):
		return m, errors.New("a message that is both request and response")
	case m.Method == "" && (id == "" && m.Error == nil || (m.Result == nil) == (m.Error == nil)):
		return m, errors.New("a message that is neither request nor response")
	}
	return m, nil
}

// depth returns how deep arrays and objects are nested in the valid JSON b.
func depth(b []byte) int {
	deepest, level, text := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// EncodeRequest encodes a request. params must be a type that encoding/json can encode.
func EncodeRequest(id int64, method string, params any) []byte {
	return encodeJSON(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

// EncodeNotification encodes a notification, a request without id that gets no response.
func EncodeNotification(method string, params any) []byte {
	return encodeJSON(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// EncodeResponse encodes the successful answer to the request with an id.
func EncodeResponse(id json.RawMessage, result any) []byte {
	return encodeJSON(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

// EncodeFailure encodes the error answer to the request with an id. A nil id becomes null: the id
// could not be read.
func EncodeFailure(id json.RawMessage, e *Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	return encodeJSON(map[string]any{"jsonrpc": "2.0", "id": id, "error": e})
}

// encodeJSON encodes v without HTML escaping: <, > and & would each take six bytes.
func encodeJSON(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Encoding fails only for a RawMessage with invalid JSON, and DecodeMessage, the source of
		// all of them, refuses such messages.
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the message could not be encoded"}}`)
	}
	return bytes.TrimRight(buf.Bytes(), "\n")
}

// Line returns s on one line, without control and invisible characters, cut to at most max bytes.
func Line(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == utf8.RuneError || r == '\u2028' || r == '\u2029':
			return ' '
		case r == '\u200c' || r == '\u200d':
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Other_Default_Ignorable_Code_Point):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > max {
		s = strings.TrimRight(strings.ToValidUTF8(s[:max-len("…")], ""), " ") + "…"
	}
	return s
}

// Sentence is Line with a full stop at the end. An empty s stays empty.
func Sentence(s string, max int) string {
	s = Line(s, max-1)
	if s != "" && !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "!") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}
