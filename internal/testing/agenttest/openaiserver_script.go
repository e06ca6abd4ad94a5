package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"agentsite/internal/openai"
)

// Scripted is the mode in which an OpenAIServer gives the answers that were set by Script.
const Scripted Mode = "scripted"

// Turn is one answer of a scripted model. The zero Turn is an empty answer.
type Turn struct {
	Text  string
	Calls []openai.ToolCall
	// Whole means one JSON answer instead of a stream.
	Whole bool
	// Reasoning is the reasoning text before the answer.
	Reasoning string
	// Usage is the reported token usage; nil reports none.
	Usage *openai.Usage
	// Status refuses the request with that HTTP status, unless it is 0, and with the message Refusal.
	Status  int
	Refusal string
	// Raw is sent as the whole body of the stream, unless it is "".
	Raw string
	// Hang means no answer until the client closes the request. It wins over all other fields.
	Hang bool
}

// Want returns a tool call as a model requests it. arguments is JSON.
func Want(id, name, arguments string) openai.ToolCall {
	return openai.ToolCall{ID: id, Type: "function", Function: openai.FunctionCall{Name: name, Arguments: openai.Arguments(arguments)}}
}

// Turns returns a script that gives the answers of list in order and then repeats the last one.
func Turns(list ...Turn) func(int, openai.ChatRequest) Turn {
	return func(n int, _ openai.ChatRequest) Turn { return list[min(n, len(list)-1)] }
}

// Script sets the function that answers the nth chat request in mode Scripted, from 0. The server calls
// it for one request at a time, with its mutex held, so it must not call the server's methods.
func (s *OpenAIServer) Script(next func(n int, req openai.ChatRequest) Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.played = next, 0
}

func (s *OpenAIServer) play(w http.ResponseWriter, r *http.Request, req openai.ChatRequest) {
	s.mu.Lock()
	if s.script == nil {
		s.mu.Unlock()
		http.Error(w, "no script", http.StatusInternalServerError)
		return
	}
	turn := s.script(s.played, req)
	s.played++
	s.mu.Unlock()
	finish := openai.FinishStop
	if len(turn.Calls) > 0 {
		finish = openai.FinishTools
	}
	switch {
	case turn.Hang:
		select {
		case s.Started <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	case turn.Status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(turn.Status)
		json.NewEncoder(w).Encode(openai.ErrorBody{Error: openai.Error{Message: turn.Refusal}})
	case turn.Raw != "":
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, turn.Raw)
	case turn.Whole:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(openai.ChatResponse{Object: "chat.completion", Model: req.Model, Usage: turn.Usage, Choices: []openai.Choice{{
			Message:      openai.Message{Role: openai.Assistant, Content: openai.Content(turn.Text), ToolCalls: turn.Calls, Reasoning: openai.Content(turn.Reasoning)},
			FinishReason: finish,
		}}})
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		streamTurn(w, req, turn, finish)
	}
}

// streamTurn streams a turn: the text word by word, and the arguments of each tool call in two pieces.
func streamTurn(w http.ResponseWriter, req openai.ChatRequest, turn Turn, finish string) {
	send := func(c openai.Chunk) {
		c.Object, c.Model = "chat.completion.chunk", req.Model
		b, _ := json.Marshal(c)
		fmt.Fprintf(w, "data: %s\n\n", b)
		http.NewResponseController(w).Flush()
	}
	delta := func(d openai.Delta) { send(openai.Chunk{Choices: []openai.ChunkChoice{{Delta: d}}}) }
	if turn.Reasoning != "" {
		delta(openai.Delta{Reasoning: openai.Content(turn.Reasoning)})
	}
	for _, word := range strings.SplitAfter(turn.Text, " ") {
		delta(openai.Delta{Content: openai.Content(word)})
	}
	for i, c := range turn.Calls {
		half := len(c.Function.Arguments) / 2
		first, rest := c, openai.ToolCall{Index: &i}
		first.Index = &i
		first.Function.Arguments, rest.Function.Arguments = c.Function.Arguments[:half], c.Function.Arguments[half:]
		delta(openai.Delta{ToolCalls: []openai.ToolCall{first}})
		delta(openai.Delta{ToolCalls: []openai.ToolCall{rest}})
	}
	send(openai.Chunk{Choices: []openai.ChunkChoice{{FinishReason: &finish}}})
	if turn.Usage != nil {
		send(openai.Chunk{Usage: turn.Usage, Choices: []openai.ChunkChoice{}})
	}
	io.WriteString(w, "data: [DONE]\n\n")
}
