package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"agentsite/internal/lenientjson"
	"agentsite/internal/reason"
)

// wireAnswer is a chunk or a whole answer as servers write it, read by lenientjson.
type wireAnswer struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Type    string          `json:"type"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []wireChoice    `json:"choices"`
	Usage   *Usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Errors  json.RawMessage `json:"errors"`
	Detail  json.RawMessage `json:"detail"`
	Message json.RawMessage `json:"message"`
	Code    json.RawMessage `json:"code"`
	Status  json.RawMessage `json:"status"`
	// Base is the status of servers that report an error beside empty choices.
	Base struct {
		Code json.RawMessage `json:"status_code"`
	} `json:"base_resp"`
}

type wireChoice struct {
	Index        int             `json:"index"`
	Delta        *wireMessage    `json:"delta"`
	Message      *wireMessage    `json:"message"`
	Text         string          `json:"text"` // of the older completions
	FinishReason *string         `json:"finish_reason"`
	Error        json.RawMessage `json:"error"`
}

// wireMessage is the message of a whole answer, or a piece of it; some servers write its text alone. Thoughts are in
// one of several fields, of some servers in two of them.
type wireMessage struct {
	Role         string        `json:"role"`
	Content      wireContent   `json:"content"`
	Refusal      Content       `json:"refusal"`
	ToolCalls    []ToolCall    `json:"tool_calls"`
	FunctionCall *FunctionCall `json:"function_call"` // of the API before tools
	Reasoning1   Content       `json:"reasoning_content"`
	Reasoning2   Content       `json:"reasoning"`
	Reasoning3   Content       `json:"thinking"`
	Reasoning4   Content       `json:"reasoning_details"`
	Reasoning5   Content       `json:"reasoning_text"`
	Reasoning6   Content       `json:"reasoning_summary"`
	Reasoning7   Content       `json:"thought"`
	Reasoning8   Content       `json:"thoughts"`
	Reasoning9   Content       `json:"thinking_content"`
}

// IsOllama reports whether an answer begins with a line of Ollama's own API, which has the text of a model in message
// or response, and tells by done whether more follows.
func IsOllama(answer []byte) bool {
	var line struct {
		CreatedAt string          `json:"created_at"`
		Done      *bool           `json:"done"`
		Message   json.RawMessage `json:"message"`
		Response  json.RawMessage `json:"response"`
	}
	err := json.NewDecoder(bytes.NewReader(lenientjson.TrimMark(answer))).Decode(&line)
	return err == nil && line.CreatedAt != "" && line.Done != nil && (line.Message != nil || line.Response != nil)
}

// SetText implements lenientjson.TextSetter.
func (m *wireMessage) SetText(s string) { m.Content.text = Content(s) }

// wireContent is a content with parts that may also be thoughts.
type wireContent struct{ text, thought Content }

// UnmarshalJSON implements json.Unmarshaler.
func (c *wireContent) UnmarshalJSON(b []byte) error {
	*c = wireContent{}
	if len(b) == 0 || b[0] != '[' {
		return c.text.UnmarshalJSON(b)
	}
	var parts []json.RawMessage
	if err := lenientjson.Decode(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		var t struct {
			Type     string  `json:"type"`
			Thinking Content `json:"thinking"`
			Text     Content `json:"text"`
		}
		if p[0] == '{' && lenientjson.Decode(p, &t) == nil &&
			(t.Type == "thinking" || strings.HasPrefix(t.Type, "reasoning")) {
			c.thought += t.Thinking + t.Text
			continue
		}
		var text Content
		if p[0] != '[' && text.UnmarshalJSON(p) == nil {
			c.text += text
		}
	}
	return nil
}

func (m *wireMessage) toDelta() Delta {
	d := Delta{Role: m.Role, Content: m.Content.text, ToolCalls: m.ToolCalls, Reasoning: m.Content.thought}
	for _, r := range []Content{m.Reasoning1, m.Reasoning2, m.Reasoning3, m.Reasoning4, m.Reasoning5, m.Reasoning6,
		m.Reasoning7, m.Reasoning8, m.Reasoning9} {
		if d.Reasoning == "" {
			d.Reasoning = r
		}
	}
	if d.Content == "" {
		d.Content = m.Refusal
	}
	if m.FunctionCall != nil && len(d.ToolCalls) == 0 &&
		(m.FunctionCall.Name != "" || m.FunctionCall.Arguments != "") {
		d.ToolCalls = []ToolCall{{Function: *m.FunctionCall}}
	}
	return d
}

// toChunk converts the answer; whole is true if a choice is complete.
func (w wireAnswer) toChunk() (c Chunk, whole bool) {
	c = Chunk{ID: w.ID, Object: w.Object, Created: w.Created, Model: w.Model, Usage: w.Usage}
	for _, choice := range w.Choices {
		out := ChunkChoice{Index: choice.Index}
		if choice.Delta != nil {
			out.Delta = choice.Delta.toDelta()
		}
		if m := choice.Message; m != nil && out.Delta.Content == "" && len(out.Delta.ToolCalls) == 0 {
			out.Delta = m.toDelta()
			out.Whole, whole = true, true
		}
		if out.Delta.Content == "" {
			out.Delta.Content = Content(choice.Text)
			whole = whole || choice.Text != "" && choice.Delta == nil
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			f := finishOf(*choice.FinishReason)
			out.FinishReason = &f
		}
		c.Choices = append(c.Choices, out)
	}
	return c, whole
}

// finishOf returns a finish_reason in the words of OpenAI; others are kept.
func finishOf(s string) string {
	switch word := strings.ToLower(s); strings.TrimPrefix(word, "finish_reason_") {
	case "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed", "end":
		return FinishStop
	case "length", "max_tokens", "max_token", "model_length", "max_length", "max_output_tokens":
		return FinishLength
	case "content_filter", "safety", "content-filter", "recitation", "prohibited_content", "blocklist", "refusal":
		return FinishFilter
	case "tool_calls", "tool_call", "tool_use", "function_call":
		return FinishTools
	case "error":
		return finishError
	}
	return s
}

// finishError is the finish_reason of an answer that the server could not complete.
const finishError = "error"

// problem returns the server's reason if the answer is an error.
func (w wireAnswer) problem(raw []byte) (why string, failed bool) {
	for _, e := range []json.RawMessage{w.Error, w.Errors} {
		if reason.IsSet(e) {
			return reason.Find(raw), true
		}
	}
	for _, c := range w.Choices {
		if reason.IsSet(c.Error) {
			return reason.Find([]byte(`{"error":` + string(c.Error) + `}`)), true
		}
		if c.FinishReason != nil && finishOf(*c.FinishReason) == finishError {
			return "", true
		}
	}
	if w.Choices != nil {
		return "", false
	}
	if reason.IsSet(w.Base.Code) {
		return reason.Find(raw), true
	}
	if strings.Contains(strings.ToLower(w.Object+" "+w.Type), "error") || reason.IsSet(w.Detail) ||
		reason.IsSet(w.Message) && (reason.IsSet(w.Code) || reason.IsSet(w.Status)) && w.Message[0] == '"' {
		return reason.Find(raw), true
	}
	return "", false
}
