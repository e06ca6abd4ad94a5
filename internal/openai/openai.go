// Package openai holds the JSON of the OpenAI chat API in the extent that this portal uses: towards the
// servers of its agents and models, and at its own /v1. It opens no connections. Decoding accepts every
// form that clients and servers are known to send, encoding writes the plainest.
package openai

import (
	"encoding/json"
	"strings"
)

// Roles of messages.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
)

// ChatRequest is the body of POST /chat/completions. Parameters that are not
// listed are ignored.
type ChatRequest struct {
	Model         string         `json:"model"`
	Messages      []Message      `json:"messages"`
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *StreamOptions `json:"stream_options,omitempty"`
	MaxTokens     int            `json:"max_tokens,omitempty"`
	// MaxCompletionTokens replaces MaxTokens for some models.
	MaxCompletionTokens int      `json:"max_completion_tokens,omitempty"`
	Temperature         *float64 `json:"temperature,omitempty"`
	User                string   `json:"user,omitempty"`
	Tools               []Tool   `json:"tools,omitempty"`
}

// StreamOptions asks for a last chunk that holds the usage.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// Message is one message of a request or an answer.
type Message struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
	Name    string  `json:"name,omitempty"`
	// ToolCalls are the calls that an assistant asks for. ToolCallID names the call that a message of
	// ToolRole answers.
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	// Reasoning is the text that some models produce while they think. They expect it back with the
	// results of their tool calls.
	Reasoning Content `json:"reasoning_content,omitempty"`
	// Pictures are sent with the text, as data URLs. They are never received.
	Pictures []string `json:"-"`
}

// Content is text that arrives as a string, as null, or as an array of parts of which the text parts
// count. It is sent as a string.
type Content string

// UnmarshalJSON implements json.Unmarshaler. Parts that are not text are skipped; a value that is
// neither string, null nor array is an error.
func (c *Content) UnmarshalJSON(b []byte) error {
	*c = ""
	if string(b) == "null" {
		return nil
	}
	if len(b) == 0 || b[0] != '[' {
		return json.Unmarshal(b, (*string)(c))
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range parts {
		var one struct {
			Text json.RawMessage `json:"text"`
		}
		var s string
		if json.Unmarshal(p, &s) == nil {
			text.WriteString(s)
			continue
		}
		if json.Unmarshal(p, &one) != nil || len(one.Text) == 0 {
			continue
		}
		var value struct {
			Value string `json:"value"`
		}
		if json.Unmarshal(one.Text, &s) == nil {
			text.WriteString(s)
		} else if json.Unmarshal(one.Text, &value) == nil {
			text.WriteString(value.Value)
		}
	}
	*c = Content(text.String())
	return nil
}

// ChatResponse is a whole answer, object "chat.completion".
type ChatResponse struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage,omitempty"`
}

// Choice is one of the answers of a ChatResponse; we ask for and give one.
type Choice struct {
	Index        int     `json:"index"`
	Message      Message `json:"message"`
	FinishReason string  `json:"finish_reason"`
}

// Chunk is one event of a streamed answer, object "chat.completion.chunk".
// The last one may have no choices but usage.
type Chunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Choices []ChunkChoice `json:"choices"`
	Usage   *Usage        `json:"usage,omitempty"`
	// Error is set by servers that fail in the middle of a stream.
	Error *Error `json:"error,omitempty"`
}

// ChunkChoice is a piece of one answer. FinishReason is empty until the end.
type ChunkChoice struct {
	Index        int     `json:"index"`
	Delta        Delta   `json:"delta"`
	FinishReason *string `json:"finish_reason"`
}

// Delta holds the additions of a chunk.
type Delta struct {
	Role      string     `json:"role,omitempty"`
	Content   Content    `json:"content,omitempty"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	Reasoning Content    `json:"reasoning_content,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// Reasons why an answer ended.
const (
	FinishStop   = "stop"
	FinishLength = "length"
	FinishFilter = "content_filter"
)

// ErrorBody is the body of an answer with a status of 400 and above.
type ErrorBody struct {
	Error Error `json:"error"`
}

// Error describes the problem of a request. Code and Param are often absent.
type Error struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   any    `json:"param"`
	Code    any    `json:"code"`
}

// UnmarshalJSON implements json.Unmarshaler: some servers send the message
// alone, as a string.
func (e *Error) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		e.Message = s
		return nil
	}
	type plain Error
	return json.Unmarshal(b, (*plain)(e))
}

// ModelList is the answer of GET /models.
type ModelList struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// Model is one model that is offered.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	// Name and Description are not part of the API; some programs show them.
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}
