package model

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/models"
	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
)

// anthropic answers with h and returns a client of it.
func anthropic(t *testing.T, key string, h http.HandlerFunc) *Client {
	t.Helper()
	network := agenttest.NewNetwork()
	s := network.Serve(h)
	t.Cleanup(s.Close)
	c, err := New(network.Transport(t), models.Server{Provider: models.Anthropic, URL: s.URL + "/v1", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// events writes a stream as Anthropic's server does: each event with its type as name.
func events(list ...string) string {
	var b strings.Builder
	for _, e := range list {
		var named struct{ Type string }
		if err := json.Unmarshal([]byte(e), &named); err != nil {
			panic(err)
		}
		b.WriteString("event: " + named.Type + "\ndata: " + e + "\n\n")
	}
	return b.String()
}

const (
	began = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}}}`
	ended = `{"type":"message_stop"}`
)

func TestChat_ReadsAnthropicsAnswers(t *testing.T) {
	whole := openai.Usage{PromptTokens: 22, CompletionTokens: 15, TotalTokens: 37}
	tools := question
	tools.Tools = []openai.Tool{{Type: "function", Function: openai.Function{Name: "read"}}}
	for name, tt := range map[string]struct {
		contentType, body string
		req               openai.ChatRequest
		want              Reply
	}{
		"stream": {sse, events(began, `{"type":"ping"}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`, ended),
			question, Reply{Text: "Hello", Finish: "stop", Model: "claude-x", Usage: whole}},
		"tools": {sse, events(began,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hmm"}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look."}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a"}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"}"}}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"list","input":{}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":15}}`, ended),
			tools, Reply{Text: "I look.", Finish: openai.FinishTools, Model: "claude-x", Usage: whole, Reasoning: "hmm", Thoughts: "hmm",
				Calls: []openai.ToolCall{{ID: "toolu_1", Type: "function", Function: openai.FunctionCall{Name: "read", Arguments: `{"path": "a"}`}},
					{ID: "toolu_2", Type: "function", Function: openai.FunctionCall{Name: "list"}}}}},
		"one piece": {"application/json", `{"type":"message","model":"claude-x","content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"},{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a"}}],"stop_reason":"max_tokens","usage":{"input_tokens":22,"output_tokens":15}}`,
			tools, Reply{Text: "Hello", Finish: "length", Model: "claude-x", Usage: whole,
				Calls: []openai.ToolCall{{ID: "toolu_1", Type: "function", Function: openai.FunctionCall{Name: "read", Arguments: `{"path":"a"}`}}}}},
		"refusal": {sse, events(began, `{"type":"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":15}}`, ended),
			question, Reply{Finish: openai.FinishFilter, Model: "claude-x", Usage: whole}},
	} {
		var streamed string
		got, err := anthropic(t, "", says(200, tt.contentType, tt.body)).Chat(t.Context(), tt.req, func(s string) { streamed += s })
		if err != nil || !reflect.DeepEqual(got, tt.want) || streamed != tt.want.Text {
			t.Errorf("%s: %+v %v, streamed %q", name, got, err, streamed)
		}
	}
}

func TestChat_SaysWhatWentWrongAtAnthropic(t *testing.T) {
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		is   error
		says string
	}{
		"overloaded in the stream": {says(200, sse, events(began, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)), ErrInterrupted, `"Overloaded"`},
		"cut":                      {says(200, sse, events(began, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`)), ErrInterrupted, "interrupted"},
		"garbage":                  {says(200, sse, "data: nonsense\n\n"), ErrInterrupted, "cannot be read"},
		"key":                      {says(401, "application/json", `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`), ErrKey, "refused the key"},
		"a page":                   {says(200, "text/html", "<html>"), ErrProtocol, "Anthropic API: it answered with a web page"},
		"OpenAI's answer":          {says(200, "application/json", `{"choices":[{"message":{"content":"x"}}]}`), ErrProtocol, "other JSON"},
		"no such path":             {says(404, "text/plain", "not here"), ErrProtocol, "no Anthropic-compatible API"},
		"error in one piece":       {says(200, "application/json", `{"type":"error","error":{"type":"api_error","message":"broken"}}`), nil, `"broken"`},
		"refused":                  {says(400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`), nil, "prompt is too long"},
	} {
		_, err := anthropic(t, "sk-1", tt.h).Chat(t.Context(), question, nil)
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(fault.As(err).Safe, tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChat_WritesAnthropicsRequest(t *testing.T) {
	var got struct {
		header http.Header
		path   string
		body   map[string]any
	}
	c := anthropic(t, "sk-1", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got.header, got.path, got.body = r.Header, r.URL.RequestURI(), nil
		if len(b) > 0 {
			if err := json.Unmarshal(b, &got.body); err != nil {
				t.Error(err)
			}
		}
		says(200, "application/json", `{"type":"message","content":[{"type":"text","text":"ok"}],"data":[{"id":"claude-x","type":"model"}]}`)(w, r)
	})
	hot := 1.5
	req := openai.ChatRequest{Model: "claude-x", Temperature: &hot, ResponseFormat: openai.FormatOf(json.RawMessage(`{"type":"object"}`)), Tools: []openai.Tool{
		{Type: "function", Function: openai.Function{Name: "read", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object"}`)}}},
		Messages: []openai.Message{{Role: openai.System, Content: "Be kind."}, {Role: openai.User, Content: "one"}, {Role: openai.User, Content: "two", Pictures: []string{"data:image/png;base64,AAAA"}},
			{Role: openai.Assistant, ToolCalls: []openai.ToolCall{{ID: "a", Function: openai.FunctionCall{Name: "read", Arguments: `{"path":"x"}`}}, {ID: "b", Function: openai.FunctionCall{Name: "read", Arguments: "broken"}}}},
			{Role: openai.ToolRole, ToolCallID: "a", Content: "text"}, {Role: openai.ToolRole, ToolCallID: "b", Content: ""}, {Role: openai.Assistant, Content: " "}}}
	if _, err := c.Chat(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	if got.path != "/v1/messages" || got.header.Get("X-Api-Key") != "sk-1" || got.header.Get("Anthropic-Version") != anthropicVersion || got.header.Get("Authorization") != "" {
		t.Errorf("%s %v", got.path, got.header)
	}
	want := `{"max_tokens":4096,"messages":[` +
		`{"content":[{"text":"one","type":"text"},{"source":{"data":"AAAA","media_type":"image/png","type":"base64"},"type":"image"},{"text":"two","type":"text"}],"role":"user"},` +
		`{"content":[{"id":"a","input":{"path":"x"},"name":"read","type":"tool_use"},{"id":"b","input":{},"name":"read","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"content":"text","tool_use_id":"a","type":"tool_result"},{"cache_control":{"type":"ephemeral"},"tool_use_id":"b","type":"tool_result"}],"role":"user"}],` +
		`"model":"claude-x","output_config":{"format":{"schema":{"type":"object"},"type":"json_schema"}},"stream":true,"system":[{"cache_control":{"type":"ephemeral"},"text":"Be kind.","type":"text"}],"temperature":1,` +
		`"tools":[{"description":"Reads.","input_schema":{"type":"object"},"name":"read"}]}`
	if b, _ := json.Marshal(got.body); string(b) != want {
		t.Errorf("%s", b)
	}
	ids, err := c.Models(t.Context())
	if err != nil || strings.Join(ids, " ") != "claude-x" || got.path != "/v1/models?limit=1000" {
		t.Errorf("%q %v, asked %s", ids, err, got.path)
	}
}
