package openai

import (
	"bytes"
	"encoding/json"
)

// ToolRole is the role of a message that holds the result of a tool call.
const ToolRole = "tool"

// FinishTools is the finish_reason of an answer that asks for tool calls.
const FinishTools = "tool_calls"

// Tool offers a function to the model, which may ask for calls of it.
type Tool struct {
	Type     string   `json:"type"` // always "function"
	Function Function `json:"function"`
}

// Function describes a tool to the model. Parameters is the JSON Schema of its arguments.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// ToolCall is the model's request to call a function. A streamed call comes in pieces; pieces with
// the same Index are one call.
type ToolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function FunctionCall `json:"function"`
	// Extra is data that some servers add to a call and expect back unchanged.
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

// FunctionCall is the function's name and its arguments.
type FunctionCall struct {
	Name      string    `json:"name"`
	Arguments Arguments `json:"arguments"`
}

// Arguments is the JSON text of a call's arguments, or a piece of it. It is
// sent as a string; some servers send the object itself, or null.
type Arguments string

// UnmarshalJSON implements json.Unmarshaler. It accepts a string, an object, which becomes its own
// text, and null.
func (a *Arguments) UnmarshalJSON(b []byte) error {
	*a = ""
	switch {
	case string(b) == "null":
		return nil
	case len(b) > 0 && b[0] == '"':
		*a = Arguments(unquoteText(b))
		return nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		return err
	}
	*a = Arguments(out.String())
	return nil
}

// MarshalJSON implements json.Marshaler. A message that only asks for tools has the content null,
// because some servers refuse an empty text; one with pictures has a list of parts.
func (m Message) MarshalJSON() ([]byte, error) {
	type plain Message
	if len(m.Pictures) > 0 {
		return json.Marshal(struct {
			Content []contentPart `json:"content"`
			plain
		}{m.contentParts(), plain(m)})
	}
	if m.Content != "" || len(m.ToolCalls) == 0 {
		return json.Marshal(plain(m))
	}
	return json.Marshal(struct {
		Content *string `json:"content"`
		plain
	}{nil, plain(m)})
}

// contentPart is one element of a content array: a text, or a picture by its URL.
type contentPart struct {
	Type  string    `json:"type"`
	Text  string    `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

// contentParts returns the content array of a message with pictures: its text first, then the
// pictures.
func (m Message) contentParts() []contentPart {
	out := []contentPart{{Type: "text", Text: string(m.Content)}}
	for _, p := range m.Pictures {
		out = append(out, contentPart{Type: "image_url", Image: &imageURL{p}})
	}
	return out
}
