// Package openai holds the JSON of the OpenAI chat API as far as this portal uses it: in requests
// to the servers of agents and models, and at its own /v1. It opens no connections. Decoding
// accepts all forms that clients and servers are known to send; encoding writes the most common
// one.
package openai

import (
	"encoding/json"

	"agentsite/internal/lenientjson"
	"agentsite/internal/reason"
)

// Roles of messages; ToolRole is the fourth.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
)

// ChatRequest is the body of POST /chat/completions. Other parameters of the API are ignored.
type ChatRequest struct {
	Model         string         `json:"model"`
	Messages      []Message      `json:"messages"`
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *StreamOptions `json:"stream_options,omitempty"`
	MaxTokens     int            `json:"max_tokens,omitempty"`
	// MaxCompletionTokens has replaced MaxTokens: newer models of OpenAI refuse the older name.
	MaxCompletionTokens int      `json:"max_completion_tokens,omitempty"`
	Temperature         *float64 `json:"temperature,omitempty"`
	User                string   `json:"user,omitempty"`
	Tools               []Tool   `json:"tools,omitempty"`
	// ResponseFormat asks for an answer in JSON.
	ResponseFormat *ResponseFormat `json:"response_format,omitempty"`
}

// ResponseFormat is the form of an answer, type "json_schema".
type ResponseFormat struct {
	Type       string      `json:"type"`
	JSONSchema *JSONSchema `json:"json_schema,omitempty"`
}

// JSONSchema is the schema of an answer, with a name that servers require.
type JSONSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

// FormatOf returns the ResponseFormat of a JSON Schema.
func FormatOf(schema json.RawMessage) *ResponseFormat {
	return &ResponseFormat{Type: "json_schema", JSONSchema: &JSONSchema{Name: "answer", Schema: schema}}
}

// StreamOptions holds options of a streamed answer. IncludeUsage asks for a last chunk with the
// usage.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// Message is one message of a request or an answer. See MarshalJSON for its form in requests.
type Message struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
	Name    string  `json:"name,omitempty"`
	// ToolCalls are the calls that the assistant asks for. ToolCallID, in a message with ToolRole,
	// is the id of the call that it answers.
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	// Reasoning is text that some models send before their answer. Such models expect it back with
	// the results of their tool calls.
	Reasoning Content `json:"reasoning_content,omitempty"`
	// Pictures are data URLs that are sent as parts after the text. Decoding leaves them empty.
	Pictures []string `json:"-"`
}

// Content is text that may arrive as a string, as null, or as an array of parts; the text parts are
// joined. It is sent as a string.
type Content string

// UnmarshalJSON implements json.Unmarshaler. Parts that are not text are skipped; numbers
// become text as they are written.
func (c *Content) UnmarshalJSON(b []byte) error {
	*c = ""
	if len(b) == 0 {
		return nil
	}
	switch b[0] {
	case 'n':
	case '"':
		*c = Content(unquoteText(b))
	case '[':
		var parts []json.RawMessage
		if err := lenientjson.Decode(b, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			*c += partText(p)
		}
	default:
		*c = partText(b)
	}
	return nil
}

// partText returns the text of a part: the value itself, or that of an object's "text" or, for thoughts,
// "summary", which is a text or an object with a "value".
func partText(raw json.RawMessage) Content {
	switch raw[0] {
	case 'n', '[', 't', 'f':
		return ""
	case '"':
		return Content(unquoteText(raw))
	case '{':
	default:
		return Content(raw)
	}
	var one struct {
		Text    json.RawMessage `json:"text"`
		Summary json.RawMessage `json:"summary"`
	}
	if lenientjson.Decode(raw, &one) != nil {
		return ""
	}
	text := Content("")
	for _, t := range []json.RawMessage{one.Text, one.Summary} {
		var value struct {
			Value json.RawMessage `json:"value"`
		}
		if len(t) > 0 && t[0] == '{' && lenientjson.Decode(t, &value) == nil {
			t = value.Value
		}
		if len(t) > 0 && t[0] != '{' {
			text += partText(t)
		}
	}
	return text
}

// ChatResponse is an answer that is not streamed, object "chat.completion".
type ChatResponse struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage,omitempty"`
}

// Choice is one of the answers of a ChatResponse. This portal asks for one and gives one.
type Choice struct {
	Index        int     `json:"index"`
	Message      Message `json:"message"`
	FinishReason string  `json:"finish_reason"`
}

// Chunk is one event of a streamed answer, object "chat.completion.chunk". The last one may have
// usage and no choices.
type Chunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Choices []ChunkChoice `json:"choices"`
	Usage   *Usage        `json:"usage,omitempty"`
	// Error is sent in place of choices by servers that fail in the middle of a stream.
	Error *Error `json:"error,omitempty"`
}

// ChunkChoice is a piece of one answer. FinishReason is nil except in the last piece.
type ChunkChoice struct {
	Index        int     `json:"index"`
	Delta        Delta   `json:"delta"`
	FinishReason *string `json:"finish_reason"`
	// Whole is true if a server sent Delta as a whole message.
	Whole bool `json:"-"`
}

// Delta holds the text and tool calls that a chunk adds to the answer.
type Delta struct {
	Role      string     `json:"role,omitempty"`
	Content   Content    `json:"content,omitempty"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	Reasoning Content    `json:"reasoning_content,omitempty"`
}

// Usage counts the tokens of a request and its answer, as the model's tokenizer counts them.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// Values of finish_reason: the answer is complete, was cut at the token limit, or was withheld by a
// filter.
const (
	FinishStop   = "stop"
	FinishLength = "length"
	FinishFilter = "content_filter"
)

// ErrorBody is the body of an answer with a status of 400 or more.
type ErrorBody struct {
	Error Error `json:"error"`
}

// Error describes the problem of a request. Code and Param are often null.
type Error struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   any    `json:"param"`
	Code    any    `json:"code"`
}

// UnmarshalJSON implements json.Unmarshaler. The message is the reason in an error of any form.
func (e *Error) UnmarshalJSON(b []byte) error {
	var w struct {
		Type  string `json:"type"`
		Param any    `json:"param"`
		Code  any    `json:"code"`
	}
	if err := lenientjson.Decode(b, &w); err != nil {
		return err
	}
	*e = Error{Message: reason.Find(b), Type: w.Type, Param: w.Param, Code: w.Code}
	return nil
}

// addCode sets the type, parameter and code from the error of a server, if it is an object.
func (e *Error) addCode(raw json.RawMessage) {
	var from Error
	if len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &from) == nil {
		e.Type, e.Param, e.Code = from.Type, from.Param, from.Code
	}
}

// ModelList is the answer of GET /models, object "list".
type ModelList struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// Model is one model of a server. ID is the value for ChatRequest.Model.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	// Name and Description are not part of the OpenAI API; some chat programs show them.
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}
