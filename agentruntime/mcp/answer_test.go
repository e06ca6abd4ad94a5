package mcp

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/task"
)

// A result that servers send as texts and as data is in the answer once.
func TestAnswerOf_SaysAResultOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		texts []string
		data  string
		want  string
	}{
		"an object":              {[]string{`{"total": 3}`}, `{"total":3}`, `{"total":3}`},
		"a wrapped number":       {[]string{"5"}, `{"result":5}`, "5"},
		"a wrapped text":         {[]string{"Hello, Ada"}, `{"result":"Hello, Ada"}`, "Hello, Ada"},
		"a text like a number":   {[]string{"5"}, `{"result":"5"}`, "5"},
		"a wrapped truth":        {[]string{"true"}, `{"result":true}`, "true"},
		"a wrapped list":         {[]string{`["a", "b"]`}, `{"result":["a","b"]}`, `["a", "b"]`},
		"a list, a text an item": {[]string{"a", "b"}, `{"result":["a","b"]}`, "a\n\nb"},
		"objects in a list":      {[]string{"{\n \"x\": 1\n}", `{"x":2}`}, `{"result":[{"x":1},{"x":2}]}`, "{\n \"x\": 1\n}\n\n{\"x\":2}"},
		"another number":         {[]string{"6"}, `{"result":5}`, "6\n\n{\"result\":5}"},
		"a list that says more":  {[]string{"a"}, `{"result":["a","b"]}`, "a\n\n{\"result\":[\"a\",\"b\"]}"},
		"more than a result":     {[]string{"5"}, `{"result":5,"unit":"m"}`, "5\n\n{\"result\":5,\"unit\":\"m\"}"},
		"data alone":             {nil, `{"result":5}`, `{"result":5}`},
		"an empty list":          {nil, `{"result":[]}`, `{"result":[]}`},
		"words about it":         {[]string{"The sum is 5."}, `{"result":5}`, "The sum is 5.\n\n{\"result\":5}"},
	} {
		res := &sdk.CallToolResult{}
		for _, s := range tt.texts {
			res.Content = append(res.Content, &sdk.TextContent{Text: s})
		}
		if err := json.Unmarshal([]byte(tt.data), &res.StructuredContent); err != nil {
			t.Fatal(err)
		}
		if got := task.PlainText(answerOf(res).parts); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
