package prompt

import (
	"context"
	"encoding/json"
	"slices"

	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// state is the checkpoint: the data needed to continue without repeating a step. It is stored before
// and after a call of a tool with effects, and before a person is asked.
type state struct {
	// Message is the caller's message that was processed last. An answer to a question has another id.
	Message string `json:"message"`
	// Base is the conversation up to the question, Turns the messages after it: the model's calls and
	// the tools' results.
	Base  []openai.Message `json:"base"`
	Turns []openai.Message `json:"turns,omitempty"`
	// Summary is the summary of the conversation before Base, "" for none.
	Summary string `json:"summary,omitempty"`
	// Mark marks the speakers in Base; empty if there was only one.
	Mark string `json:"mark,omitempty"`
	// Said is the text shown since Message.
	Said string `json:"said,omitempty"`
	// Thoughts are the thoughts of the model since Message, for readers; they are not sent to the model.
	Thoughts string `json:"thoughts,omitempty"`
	// Making is the id of a call with effects that was started.
	Making string `json:"making,omitempty"`
	// Repeating is the id of a call of a repeatable tool that was started. After an interruption it is made again.
	// Agreed is true if the person agreed to this very call.
	Repeating string `json:"repeating,omitempty"`
	Agreed    bool   `json:"agreed,omitempty"`
	// Lost are calls with effects of unknown result.
	Lost []string `json:"lost,omitempty"`
	// Waiting is the call that a person is asked about, nil for none. Granted is the call that the
	// person consented to; it is never stored.
	Waiting *waiting `json:"waiting,omitempty"`
	// Relayed is the question that an asked agent has for the person, nil for none.
	Relayed *relayed `json:"relayed,omitempty"`
	Granted *waiting `json:"-"`
}

// waiting is a call of a tool with the question to the person about it.
type waiting struct {
	ID       string `json:"id"`
	Agent    string `json:"agent"`
	Tool     string `json:"tool"`
	Question string `json:"question"`
	Short    string `json:"short"`
	// Keeps and KeepsAll are those of the Permission.
	Keeps    bool `json:"keeps,omitempty"`
	KeepsAll bool `json:"keeps_all,omitempty"`
}

// addThoughts appends the thoughts of one answer of the model.
func (s *state) addThoughts(text string) {
	if text != "" && s.Thoughts != "" {
		text = "\n\n" + text
	}
	s.Thoughts += text[:min(len(text), max(0, task.MaxThoughts-len(s.Thoughts)))]
}

func (s *state) saveState(ctx context.Context, out task.Sink) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return out.Checkpoint(ctx, b)
}

// openCall returns the first call in the model's newest message that has no result yet; false if there
// is none, so that the model can be asked again.
func (s *state) openCall() (openai.ToolCall, bool) {
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

// loseCall ends a call that was started before a restart with an unknown result. The call is not
// repeated, because it may have had its effect.
func (s *state) loseCall() {
	if s.Making == "" {
		return
	}
	s.addResult(s.Making, "The portal was interrupted during this call. Whether it took effect is not known. It "+
		"must not be repeated; tell the person.")
	s.Lost = append(s.Lost, s.Making)
	s.Making = ""
}

// repeatsLost reports whether c has the same tool and arguments as a call of unknown result. Such
// a call needs new consent.
func (s *state) repeatsLost(c openai.ToolCall) bool {
	_, calls := s.countRounds()
	return slices.ContainsFunc(calls, func(o openai.ToolCall) bool {
		return slices.Contains(s.Lost, o.ID) && o.Function == c.Function
	})
}

// addResult adds the result of the call with that id to the messages for the model.
func (s *state) addResult(id, text string) {
	s.Turns = append(s.Turns, openai.Message{Role: openai.ToolRole, ToolCallID: id, Content: openai.Content(text)})
}

// countRounds returns how often the model asked for tools in this task, and all its calls, for the
// limits of the loop.
func (s *state) countRounds() (rounds int, calls []openai.ToolCall) {
	for _, m := range s.Turns {
		if len(m.ToolCalls) > 0 {
			rounds++
			calls = append(calls, m.ToolCalls...)
		}
	}
	return rounds, calls
}

// resultBytes returns the bytes of the tools' results so far, which maxResults bounds.
func (s *state) resultBytes() int {
	n := 0
	for _, m := range s.Turns {
		if m.Role == openai.ToolRole {
			n += len(m.Content)
		}
	}
	return n
}
