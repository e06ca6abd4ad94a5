package endpoint

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"
)

// Clients of languages without empty objects, or with a mark before their text, are understood.
func TestPost_TakesOtherForms(t *testing.T) {
	for name, body := range map[string]string{
		"plain":             `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		"byte order mark":   "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		"params null":       `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}`,
		"params list":       `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`,
		"cursor null":       `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":null}}`,
		"meta list":         `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":[]}}`,
		"meta null":         `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":null}}`,
		"id as text":        `{"jsonrpc":"2.0","id":"1","method":"tools/list"}`,
		"id as float":       `{"jsonrpc":"2.0","id":1.0,"method":"tools/list"}`,
		"arguments missing": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool"}}`,
		"arguments null":    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","arguments":null}}`,
		"arguments list":    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","arguments":[ ]}}`,
		"capabilities list": `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":[],"clientInfo":{"name":"x","version":"1"}}}`,
		"capability list":   `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":[]},"clientInfo":[]}}`,
		"capabilities null": `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":null,"clientInfo":null}}`,
		"ping with a list":  `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`,
	} {
		w := httptest.NewRecorder()
		called := false
		alone(t, func(context.Context, *Call) (Result, error) {
			called = true
			return Result{}, nil
		}).ServeHTTP(w, ask(body, "application/json, text/event-stream"))
		var got struct{ Result, Error json.RawMessage }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Result == nil || got.Error != nil {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if want := name[:4] == "argu"; called != want {
			t.Errorf("%s: called %v", name, called)
		}
	}
}
