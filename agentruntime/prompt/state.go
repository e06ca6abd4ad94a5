package prompt

import (
	"context"
	"encoding/json"
	"slices"

	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// state is the checkpoint: all that is needed to go on without doing anything
// twice. It is stored before a tool with effects is called, after it was, and
// before a person is asked.
type state struct {
	// Message is the message of the caller that was last taken in. An answer
	// to a question comes with another.
	Message string `json:"message"`
	// Base is the conversation up to the question, Turns what followed: the
	// model's wishes and the tools' results.
	Base  []openai.Message `json:"base"`
	Turns []openai.Message `json:"turns,omitempty"`
	// Mark tells who said what in Base; empty where one person did.
	Mark string `json:"mark,omitempty"`
	// Said is the text shown since Message.
	Said string `json:"said,omitempty"`
	// Making is the id of a call with effects that was begun.
	Making string `json:"making,omitempty"`
	// Lost are calls with effects of which nobody knows whether they were made.
	Lost []string `json:"lost,omitempty"`
	// Waiting is the call that a person is asked about, nil for none. Granted
	// is the one that was said yes to; it is never stored.
	Waiting *waiting `json:"waiting,omitempty"`
	Granted *waiting `json:"-"`
}

// waiting is a call with the question about it.
type waiting struct {
	ID       string `json:"id"`
	Agent    string `json:"agent"`
	Tool     string `json:"tool"`
	Question string `json:"question"`
	Short    string `json:"short"`
}

func (s *state) store(ctx context.Context, out task.Sink) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return out.Checkpoint(ctx, b)
}

// open returns the first call of the model that has no result yet.
func (s *state) open() (openai.ToolCall, bool) {
	at := len(s.Turns) - 1
	done := make(map[string]bool)
	for at >= 0 && s.Turns[at].Role == openai.ToolRole {
		done[s.Turns[at].ToolCallID] = true
		at--
	}
	if at < 0 {
		return openai.ToolCall{}, false
	}
	for _, c := range s.Turns[at].ToolCalls {
		if !done[c.ID] {
			return c, true
		}
	}
	return openai.ToolCall{}, false
}

// lose gives up a call that was begun before the portal was interrupted.
func (s *state) lose() {
	if s.Making == "" {
		return
	}
	s.result(s.Making, "The portal was interrupted during this call. Whether it took effect is not known. It must not be repeated; tell the person.")
	s.Lost = append(s.Lost, s.Making)
	s.Making = ""
}

// repeats reports whether c is the same call as one that was lost.
func (s *state) repeats(c openai.ToolCall) bool {
	_, calls := s.rounds()
	return slices.ContainsFunc(calls, func(o openai.ToolCall) bool {
		return slices.Contains(s.Lost, o.ID) && o.Function == c.Function
	})
}

// result answers a call.
func (s *state) result(id, text string) {
	s.Turns = append(s.Turns, openai.Message{Role: openai.ToolRole, ToolCallID: id, Content: openai.Content(text)})
}

// rounds counts how often the model asked for tools, and calls them.
func (s *state) rounds() (rounds int, calls []openai.ToolCall) {
	for _, m := range s.Turns {
		if len(m.ToolCalls) > 0 {
			rounds++
			calls = append(calls, m.ToolCalls...)
		}
	}
	return rounds, calls
}

// results is how many bytes the tools returned so far.
func (s *state) results() int {
	n := 0
	for _, m := range s.Turns {
		if m.Role == openai.ToolRole {
			n += len(m.Content)
		}
	}
	return n
}
