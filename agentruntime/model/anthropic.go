package model

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentsite/internal/egress"
	"agentsite/internal/lenientjson"
	"agentsite/internal/openai"
	"agentsite/internal/reason"
)

// The Messages API of Anthropic: https://platform.claude.com/docs/en/api/messages. Its requests and events are
// converted from and to the types of package openai, which the rest of this package uses.

const (
	anthropicVersion = "2023-06-01"
	// anthropicTokens bounds an answer if the request does not, because this API requires a bound.
	anthropicTokens = 4096
)

type anthropicRequest struct {
	Model       string             `json:"model"`
	MaxTokens   int                `json:"max_tokens"`
	System      []anthropicBlock   `json:"system,omitempty"`
	Messages    []anthropicMessage `json:"messages"`
	Stream      bool               `json:"stream"`
	Temperature *float64           `json:"temperature,omitempty"`
	Tools       []anthropicTool    `json:"tools,omitempty"`
	Output      *anthropicOutput   `json:"output_config,omitempty"`
}

type anthropicOutput struct {
	Format anthropicFormat `json:"format"`
}

type anthropicFormat struct {
	Type   string          `json:"type"` // json_schema
	Schema json.RawMessage `json:"schema"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

// anthropicBlock is a part of a message; the fields in use depend on Type: text, image, tool_use, tool_result,
// thinking.
type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text,omitempty"`
	Source    *anthropicSource `json:"source,omitempty"`
	ID        string           `json:"id,omitempty"`
	Name      string           `json:"name,omitempty"`
	Input     json.RawMessage  `json:"input,omitempty"`
	ToolUseID string           `json:"tool_use_id,omitempty"`
	Content   string           `json:"content,omitempty"`
	Thinking  string           `json:"thinking,omitempty"`
	// CacheControl marks the end of a part of the request that the server keeps for later requests.
	CacheControl *anthropicCache `json:"cache_control,omitempty"`
}

type anthropicSource struct {
	Type      string `json:"type"` // base64 or url
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

type anthropicCache struct {
	Type string `json:"type"` // ephemeral
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// newAnthropicRequest converts a request. Instructions and tools, and the conversation so far, are marked for the
// server's cache.
func newAnthropicRequest(req openai.ChatRequest) anthropicRequest {
	out := anthropicRequest{Model: req.Model, MaxTokens: req.MaxTokens, Stream: req.Stream}
	if out.MaxTokens <= 0 {
		out.MaxTokens = anthropicTokens
	}
	if f := req.ResponseFormat; f != nil {
		out.Output = &anthropicOutput{anthropicFormat{f.Type, f.JSONSchema.Schema}}
	}
	if req.Temperature != nil {
		t := min(*req.Temperature, 1) // OpenAI's goes to 2.
		out.Temperature = &t
	}
	for _, t := range req.Tools {
		schema := t.Function.Parameters
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		out.Tools = append(out.Tools, anthropicTool{t.Function.Name, t.Function.Description, schema})
	}
	for _, m := range req.Messages {
		blocks := anthropicBlocks(m)
		switch {
		case len(blocks) == 0:
		case m.Role == openai.System:
			out.System = append(out.System, blocks...)
		default:
			role := openai.User // Results of tools are the user's.
			if m.Role == openai.Assistant {
				role = openai.Assistant
			}
			if n := len(out.Messages); n > 0 && out.Messages[n-1].Role == role {
				out.Messages[n-1].Content = append(out.Messages[n-1].Content, blocks...)
				continue
			}
			out.Messages = append(out.Messages, anthropicMessage{role, blocks})
		}
	}
	if n := len(out.System); n > 0 {
		out.System[n-1].CacheControl = &anthropicCache{"ephemeral"}
	}
	if n := len(out.Messages); n > 0 {
		last := out.Messages[n-1].Content
		last[len(last)-1].CacheControl = &anthropicCache{"ephemeral"}
	}
	return out
}

// anthropicBlocks returns the parts of a message. Empty texts are left out, because the API refuses them.
func anthropicBlocks(m openai.Message) []anthropicBlock {
	if m.Role == openai.ToolRole {
		return []anthropicBlock{{Type: "tool_result", ToolUseID: m.ToolCallID, Content: string(m.Content)}}
	}
	var out []anthropicBlock
	for _, p := range m.Pictures {
		src := &anthropicSource{Type: "url", URL: p}
		if head, data, ok := strings.Cut(p, ";base64,"); ok && strings.HasPrefix(head, "data:") {
			src = &anthropicSource{Type: "base64", MediaType: strings.TrimPrefix(head, "data:"), Data: data}
		}
		out = append(out, anthropicBlock{Type: "image", Source: src})
	}
	if strings.TrimSpace(string(m.Content)) != "" {
		out = append(out, anthropicBlock{Type: "text", Text: string(m.Content)})
	}
	for _, c := range m.ToolCalls {
		input := json.RawMessage(c.Function.Arguments)
		if !json.Valid(input) || input[0] != '{' {
			input = json.RawMessage("{}")
		}
		out = append(out, anthropicBlock{Type: "tool_use", ID: c.ID, Name: c.Function.Name, Input: input})
	}
	return out
}

// anthropicAnswer is an answer in one piece, and the beginning of a streamed one.
type anthropicAnswer struct {
	Type       string           `json:"type"`
	Model      string           `json:"model"`
	Content    []anthropicBlock `json:"content"`
	StopReason string           `json:"stop_reason"`
	Usage      *anthropicUsage  `json:"usage"`
}

// anthropicUsage counts tokens. Those that the server had in its cache, or put there, are not in Input.
type anthropicUsage struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
}

func (u anthropicUsage) toOpenAI() openai.Usage {
	in := max(u.Input, 0) + max(u.CacheWrite, 0) + max(u.CacheRead, 0)
	return openai.Usage{PromptTokens: in, CompletionTokens: u.Output, TotalTokens: in + max(u.Output, 0)}
}

// finishOf returns a stop_reason in the words of OpenAI.
func finishOf(reason string) string {
	switch reason {
	case "end_turn", "stop_sequence", "pause_turn":
		return openai.FinishStop
	case "max_tokens", "model_context_window_exceeded":
		return openai.FinishLength
	case "tool_use":
		return openai.FinishTools
	case "refusal":
		return openai.FinishFilter
	}
	return reason
}

// toChunk converts an answer in one piece. An answer of another form has no choices.
func (a anthropicAnswer) toChunk(failed *openai.Error) openai.Chunk {
	if failed != nil {
		return openai.Chunk{Error: failed}
	}
	out := openai.Chunk{Model: a.Model}
	if a.Type != "message" {
		return out
	}
	finish := finishOf(a.StopReason)
	choice := openai.ChunkChoice{FinishReason: &finish, Whole: true}
	for _, b := range a.Content {
		switch b.Type {
		case "text":
			choice.Delta.Content += openai.Content(b.Text)
		case "thinking":
			choice.Delta.Reasoning += openai.Content(b.Thinking)
		case "tool_use":
			choice.Delta.ToolCalls = append(choice.Delta.ToolCalls, openai.ToolCall{ID: b.ID,
				Function: openai.FunctionCall{Name: b.Name, Arguments: openai.Arguments(b.Input)}})
		}
	}
	out.Choices = []openai.ChunkChoice{choice}
	if a.Usage != nil {
		u := a.Usage.toOpenAI()
		out.Usage = &u
	}
	return out
}

// anthropicReader reads an answer of the Messages API, streamed or in one piece, as chunks of OpenAI's.
type anthropicReader struct {
	in     *bufio.Reader
	head   bytes.Buffer
	events *egress.EventReader // nil before the first bytes and for an answer in one piece
	usage  anthropicUsage
	seen   bool
	ended  bool
}

func newAnthropicReader(in io.Reader) *anthropicReader {
	return &anthropicReader{in: bufio.NewReader(in)}
}

// Head implements chunkReader: the answer in one piece, which is kept for the message about another form.
func (r *anthropicReader) Head() []byte { return r.head.Bytes() }

// openAnswer decides the form of the answer, and reads one in one piece.
func (r *anthropicReader) openAnswer() (openai.Chunk, error) {
	whole, err := openai.SkipToJSON(r.in)
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return openai.Chunk{}, openai.ErrNoChat
	}
	if err != nil {
		return openai.Chunk{}, err
	}
	if b, _ := r.in.Peek(1); !whole && string(b) != "<" {
		r.events = egress.NewLooseEventReader(r.in)
		return openai.Chunk{}, nil
	}
	n, err := io.Copy(&r.head, io.LimitReader(r.in, openai.MaxWhole+1))
	if err == nil && n > openai.MaxWhole {
		err = openai.ErrWhole
	}
	if err != nil {
		return openai.Chunk{}, err
	}
	r.ended = true
	var a struct {
		anthropicAnswer
		Error json.RawMessage `json:"error"`
	}
	if lenientjson.Decode(r.head.Bytes(), &a) != nil {
		return openai.Chunk{}, openai.ErrNoChat
	}
	return a.toChunk(errorOf(a.Error, r.head.Bytes())), nil
}

// errorOf returns the error in the member "error" of an answer, nil for none. The reason may be in the rest of the
// answer.
func errorOf(raw json.RawMessage, whole []byte) *openai.Error {
	if !reason.IsSet(raw) {
		return nil
	}
	var e openai.Error
	if raw[0] != '{' || json.Unmarshal(raw, &e) != nil || e.Message == "" {
		e.Message = cmp.Or(reason.Find(fmt.Appendf(nil, `{"error":%s}`, raw)), reason.Find(whole), "an error without a reason")
	}
	return &e
}

type anthropicEvent struct {
	Type         string           `json:"type"`
	Index        int              `json:"index"`
	Message      *anthropicAnswer `json:"message"`
	ContentBlock *anthropicBlock  `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		Thinking    string `json:"thinking"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage *anthropicUsage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// Next returns the next chunk. io.EOF follows message_stop; io.ErrUnexpectedEOF means that the stream ended without it.
func (r *anthropicReader) Next() (openai.Chunk, error) {
	for !r.ended {
		if r.events == nil {
			return r.openAnswer()
		}
		ev, err := r.events.NextEvent()
		if errors.Is(err, io.EOF) && !r.seen {
			return openai.Chunk{}, openai.ErrNoChat
		}
		if errors.Is(err, io.EOF) {
			return openai.Chunk{}, io.ErrUnexpectedEOF
		}
		if err != nil {
			return openai.Chunk{}, err
		}
		text := bytes.TrimSpace(ev.Data)
		if len(ev.Problem) > 0 || ev.IsError() && len(text) > 0 {
			r.seen = true
			why := reason.Find([]byte(cmp.Or(string(ev.Problem), string(text))))
			return openai.Chunk{Error: &openai.Error{Message: cmp.Or(why, "an error without a reason")}}, nil
		}
		if len(text) == 0 || ev.Name == "ping" {
			continue
		}
		var e anthropicEvent
		r.seen = true
		if err := lenientjson.Decode(text, &e); err != nil {
			return openai.Chunk{}, fmt.Errorf("%w: %w", openai.ErrGarbage, err)
		}
		if e.Type == "message_stop" {
			r.ended = true
			continue
		}
		return r.toChunk(e), nil
	}
	return openai.Chunk{}, io.EOF
}

// toChunk converts an event. Events of unknown types, and pings, become an empty chunk.
func (r *anthropicReader) toChunk(e anthropicEvent) openai.Chunk {
	if failed := errorOf(e.Error, nil); failed != nil {
		return openai.Chunk{Error: failed}
	}
	var c openai.Chunk
	var d openai.Delta
	var finish *string
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			c.Model = e.Message.Model
			r.addUsage(e.Message.Usage)
		}
	case "content_block_start":
		if b := e.ContentBlock; b != nil {
			d.Content, d.Reasoning = openai.Content(b.Text), openai.Content(b.Thinking)
			if b.Type == "tool_use" {
				// The input is an empty object here; it follows in pieces.
				d.ToolCalls = []openai.ToolCall{{Index: &e.Index, ID: b.ID,
					Function: openai.FunctionCall{Name: b.Name}}}
				if s := strings.TrimSpace(string(b.Input)); len(s) > 2 {
					d.ToolCalls[0].Function.Arguments = openai.Arguments(s)
				}
			}
		}
	case "content_block_delta":
		d.Content, d.Reasoning = openai.Content(e.Delta.Text), openai.Content(e.Delta.Thinking)
		if e.Delta.Type == "input_json_delta" {
			d.ToolCalls = []openai.ToolCall{{Index: &e.Index,
				Function: openai.FunctionCall{Arguments: openai.Arguments(e.Delta.PartialJSON)}}}
		}
	case "message_delta":
		if e.Delta.StopReason != "" {
			f := finishOf(e.Delta.StopReason)
			finish = &f
		}
		r.addUsage(e.Usage)
	}
	if u := r.usage.toOpenAI(); u.TotalTokens > 0 {
		c.Usage = &u
	}
	c.Choices = []openai.ChunkChoice{{Delta: d, FinishReason: finish}}
	return c
}

// addUsage takes the counts of an event. They are totals, and a later event may leave some out.
func (r *anthropicReader) addUsage(u *anthropicUsage) {
	if u == nil {
		return
	}
	r.usage.Input = max(r.usage.Input, u.Input)
	r.usage.CacheWrite = max(r.usage.CacheWrite, u.CacheWrite)
	r.usage.CacheRead = max(r.usage.CacheRead, u.CacheRead)
	r.usage.Output = max(r.usage.Output, u.Output)
}
