package openai

import (
	"encoding/json"
	"testing"
)

func TestArguments_TakesEveryForm(t *testing.T) {
	for in, want := range map[string]string{
		`"{\"a\":1}"`: `{"a":1}`, `{ "a" : 1 }`: `{"a":1}`, `null`: "", `""`: "", `"{\"a"`: `{"a`, `[1]`: `[1]`,
	} {
		var c ToolCall
		if err := json.Unmarshal([]byte(`{"function":{"name":"f","arguments":`+in+`}}`), &c); err != nil || string(c.Function.Arguments) != want {
			t.Errorf("%s: %q %v", in, c.Function.Arguments, err)
		}
	}
}

func TestMessage_AsksForToolsWithoutContent(t *testing.T) {
	call := ToolCall{ID: "1", Type: "function", Function: FunctionCall{Name: "f", Arguments: "{}"}}
	for _, tt := range []struct {
		m    Message
		want string
	}{
		{Message{Role: Assistant, ToolCalls: []ToolCall{call}},
			`{"content":null,"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{Message{Role: Assistant, Content: "x", ToolCalls: []ToolCall{call}},
			`{"role":"assistant","content":"x","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{Message{Role: ToolRole, ToolCallID: "1"}, `{"role":"tool","content":"","tool_call_id":"1"}`},
	} {
		b, err := json.Marshal(tt.m)
		if err != nil || string(b) != tt.want {
			t.Errorf("%s %v", b, err)
		}
		var back Message
		if err := json.Unmarshal(b, &back); err != nil || back.Role != tt.m.Role || len(back.ToolCalls) != len(tt.m.ToolCalls) {
			t.Errorf("back: %+v %v", back, err)
		}
	}
}
