package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/openai"
)

var withTools = openai.ChatRequest{Model: "m", Messages: question.Messages, Tools: []openai.Tool{
	{Type: "function", Function: openai.Function{Name: "add", Parameters: json.RawMessage(`{"type":"object"}`)}},
}}

// deltas makes a stream of chunks, each with these tool calls.
func deltas(calls ...string) string {
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[%s]}}]}\n\n", c)
	}
	return b.String() + `data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
}

func TestChat_PutsToolCallsTogether(t *testing.T) {
	for name, tt := range map[string]struct {
		contentType, body, want string
	}{
		"pieces by index": {sse, deltas(
			`{"index":0,"id":"a","type":"function","function":{"name":"add","arguments":""}}`,
			`{"index":0,"function":{"arguments":"{\"x\""}}`,
			`{"index":1,"id":"b","type":"function","function":{"name":"sub","arguments":"{"}}`,
			`{"index":0,"function":{"arguments":":1}"}}`,
			`{"index":1,"function":{"arguments":"}"}}`), `a add {"x":1}|b sub {}`},
		"whole at once": {sse, deltas(
			`{"index":0,"id":"a","function":{"name":"add","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"add","arguments":"{\"x\":2}"}}`), `a add {}|b add {"x":2}`},
		"every index 0": {sse, deltas(
			`{"index":0,"id":"a","function":{"name":"add","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"sub","arguments":"{}"}}`), `a add {}|b sub {}`},
		"no index": {sse, deltas(
			`{"id":"a","function":{"name":"add","arguments":"{"}}`, `{"function":{"arguments":"}"}}`, `{"id":"b","function":{"name":"sub"}}`), `a add {}|b sub `},
		"no ids": {sse, deltas(
			`{"index":0,"function":{"name":"add","arguments":"{}"}}`, `{"index":1,"function":{"name":"sub","arguments":"{}"}}`), `call_1 add {}|call_2 sub {}`},
		"neither": {sse, deltas(`{"function":{"name":"add","arguments":"{}"}},{"function":{"name":"add","arguments":"{}"}}`), `call_1 add {}|call_2 add {}`},
		"one index, no ids": {sse, deltas(
			`{"index":0,"function":{"name":"add","arguments":"{}"}}`, `{"index":0,"function":{"name":"sub","arguments":"{}"}}`), `call_1 add {}|call_2 sub {}`},
		"id and name repeated": {sse, deltas(
			`{"index":0,"id":"a","function":{"name":"add","arguments":"{"}}`, `{"index":0,"id":"a","function":{"name":"add","arguments":"}"}}`), `a add {}`},
		"ids mixed on one index": {sse, deltas(
			`{"index":0,"id":"a","function":{"name":"add","arguments":"{"}}`, `{"index":0,"id":"b","function":{"name":"sub","arguments":"{}"}}`, `{"index":0,"id":"a","function":{"arguments":"}"}}`), `a add {}|b sub {}`},
		"object":          {sse, deltas(`{"index":0,"id":"a","function":{"name":"add","arguments":{"x": [1, 2]}}}`), `a add {"x":[1,2]}`},
		"null":            {sse, deltas(`{"index":0,"id":"a","function":{"name":"add","arguments":null}}`), `a add `},
		"no name":         {sse, deltas(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), `a unnamed {}`},
		"long id":         {sse, deltas(`{"index":0,"id":"` + strings.Repeat("x", 300) + `","function":{"name":"add"}}`), `call_1 add `},
		"whole answer":    {"application/json", `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"add","arguments":{"x":1}}},{"id":"a","function":{"name":"sub","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, `a add {"x":1}|call_2 sub {}`},
		"text and a call": {sse, `data: {"choices":[{"delta":{"content":"hm"}}]}` + "\n\n" + deltas(`{"index":0,"id":"a","function":{"name":"add","arguments":"{}"}}`), `a add {}`},
	} {
		reply, err := server(t, "", says(200, tt.contentType, tt.body)).Chat(t.Context(), withTools, nil)
		var got []string
		for _, c := range reply.Calls {
			got = append(got, c.ID+" "+c.Function.Name+" "+string(c.Function.Arguments))
			if c.Type != "function" || c.Index != nil {
				t.Errorf("%s: %+v cannot be sent back", name, c)
			}
		}
		if err != nil || strings.Join(got, "|") != tt.want || reply.Finish != openai.FinishTools {
			t.Errorf("%s: %q %v", name, got, err)
		}
		// Who offered no tools is asked for none.
		if reply, err = server(t, "", says(200, tt.contentType, tt.body)).Chat(t.Context(), question, nil); err != nil || reply.Calls != nil {
			t.Errorf("%s, not offered: %+v %v", name, reply, err)
		}
	}
}

func TestChat_KeepsWhatTheServerWantsBack(t *testing.T) {
	call := `{"index":0,"id":"a","function":{"name":"add","arguments":"{}"},"extra_content":{"s":"x"}}`
	long := strings.Repeat("h", 20<<10)
	for name, tt := range map[string]struct{ contentType, body string }{
		"stream": {sse, `data: {"choices":[{"delta":{"reasoning_content":"` + long + `"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"reasoning_content":"` + long + `"}}]}` + "\n\n" + deltas(call)},
		"whole":  {"application/json", `{"choices":[{"message":{"reasoning_content":"` + long + long + `","tool_calls":[` + call + `]}}]}`},
	} {
		reply, err := server(t, "", says(200, tt.contentType, tt.body)).Chat(t.Context(), withTools, nil)
		if err != nil || len(reply.Calls) != 1 || string(reply.Calls[0].Extra) != `{"s":"x"}` || len(reply.Reasoning) != maxThought || reply.Text != "" {
			t.Errorf("%s: %+v %v", name, reply, err)
		}
	}
}

func TestChat_BoundsToolCalls(t *testing.T) {
	one := func(i int, args string) string {
		return fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":"add","arguments":%q}}`, i, i, args)
	}
	var many []string
	for i := range 17 {
		many = append(many, one(i, "{}"))
	}
	var large []string
	for range 70 {
		large = append(large, one(0, strings.Repeat("x", 1<<10)))
	}
	whole := `{"choices":[{"message":{"tool_calls":[` + strings.Join(many, ",") + `]}}]}`
	for name, tt := range map[string]struct{ contentType, body, want string }{
		"many":  {sse, deltas(many...), "more than 16 tools"},
		"whole": {"application/json", whole, "more than 16 tools"},
		"large": {sse, deltas(large...), "more than 64 KiB"},
	} {
		reply, err := server(t, "", says(200, tt.contentType, tt.body)).Chat(t.Context(), withTools, nil)
		if !errors.Is(err, ErrCalls) || !strings.Contains(fault.As(err).Safe, tt.want) || reply.Calls != nil {
			t.Errorf("%s: %d calls, %v", name, len(reply.Calls), err)
		}
	}
	if reply, err := server(t, "", says(200, sse, deltas(many[:16]...))).Chat(t.Context(), withTools, nil); err != nil || len(reply.Calls) != 16 {
		t.Errorf("16: %d calls, %v", len(reply.Calls), err)
	}
}

func TestChat_SaysThatToolsAreNotKnown(t *testing.T) {
	for _, tt := range []struct {
		status int
		said   string
		want   bool
	}{
		{400, "registry.ollama.ai/library/gemma:2b does not support tools", true},
		{400, `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`, true},
		{500, "tools param requires --jinja flag", true},
		{404, "No endpoints found that support tool use. Try another model.", true},
		{422, "Extra inputs are not permitted: tools", true},
		{400, "Invalid schema for function 'add': required is not supported", false},
		{400, "context too long", false},
		{429, "tool use is not supported so often", false},
		{401, "tools are not allowed", false},
	} {
		h := func(w http.ResponseWriter, r *http.Request) {
			b, _ := json.Marshal(map[string]any{"error": map[string]string{"message": tt.said}})
			w.Header().Set("Retry-After", "3600")
			says(tt.status, "application/json", string(b))(w, r)
		}
		_, err := server(t, "", h).Chat(t.Context(), withTools, nil)
		if err == nil || errors.Is(err, ErrNoTools) != tt.want || tt.want && !strings.Contains(fault.As(err).Safe, `"m" cannot use tools`) {
			t.Errorf("%d %s: %v", tt.status, tt.said, err)
		}
		if _, err = server(t, "", h).Chat(t.Context(), question, nil); errors.Is(err, ErrNoTools) {
			t.Errorf("%s: no tools were offered", tt.said)
		}
	}
}

func TestChat_LimitsTheAnswerInTheServersWord(t *testing.T) {
	var bodies []string
	c := server(t, "", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		switch {
		case strings.Contains(string(b), "stream_options"):
			says(400, "application/json", `{"error":{"message":"Unknown field stream_options"}}`)(w, r)
		case strings.Contains(string(b), `"max_tokens"`):
			says(400, "application/json", `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}`)(w, r)
		default:
			says(200, "application/json", `{"choices":[{"message":{"content":"ok"}}]}`)(w, r)
		}
	})
	req := question
	req.MaxTokens = 7
	reply, err := c.Chat(t.Context(), req, nil)
	if err != nil || reply.Text != "ok" || len(bodies) != 3 || !strings.Contains(bodies[2], `"max_completion_tokens":7`) {
		t.Errorf("%+v %v %q", reply, err, bodies)
	}
}

func FuzzCalls(f *testing.F) {
	f.Add(`[{"index":0,"id":"a","function":{"name":"add","arguments":"{"}},{"index":0,"function":{"arguments":"}"}}]`)
	f.Add(`[{"id":"call_2","function":{}},{"index":-1,"id":"","function":{"name":"x","arguments":{"y":[]}}},{"function":{"name":"\u0000"}}]`)
	f.Fuzz(func(t *testing.T, s string) {
		var pieces []openai.ToolCall
		if json.Unmarshal([]byte(s), &pieces) != nil {
			return
		}
		for _, whole := range []bool{false, true} {
			var c calls
			for _, p := range pieces {
				if err := c.addPiece(p, whole); err != nil {
					if !errors.Is(err, ErrCalls) {
						t.Error(err)
					}
					return
				}
			}
			list, _ := c.finishCalls()
			ids := make(map[string]bool)
			for _, call := range list {
				ids[call.ID] = true
				if call.ID == "" || len(call.ID) > maxCallID || call.Function.Name == "" || len(call.Function.Arguments) > 3*MaxArguments {
					t.Errorf("%+v", call)
				}
			}
			if len(list) > MaxCalls || len(ids) != len(list) || whole && len(list) != len(pieces) {
				t.Errorf("%d calls with %d ids of %d pieces", len(list), len(ids), len(pieces))
			}
		}
	})
}
