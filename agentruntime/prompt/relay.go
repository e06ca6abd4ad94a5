package prompt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"agentsite/agentruntime/model"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// AskedBack is the error of a ToolCaller that cannot go on without an answer of the person. The same call is made again
// with the answer, see Invocation.Reply.
type AskedBack struct {
	Agent    string `json:"agent"` // handle of the agent that asks
	TaskID   string `json:"task"`  // its task, which waits for the answer
	Seq      int64  `json:"seq"`   // position of the question in the conversation of the two agents
	Question string `json:"question"`
}

// MaxRelayed bounds, in bytes, a question of an asked agent for the person. It is long enough for the questions of this
// package.
const MaxRelayed = 2 * MaxShown

// Error implements error.
func (a *AskedBack) Error() string { return a.Agent + " needs an answer of the person" }

// Shown returns the question as the person sees it, with the name of the agent that gets the answer, and its short
// form. The question is whole, because its end has the call that the person may agree to.
func (a *AskedBack) Shown() (text, short string) {
	agent := cleanName(a.Agent)
	return fmt.Sprintf("`%s` asks you, and gets your answer:\n\n%s", agent, a.Question),
		fmt.Sprintf("%s asks you something.", agent)
}

// Reply is the answer to the question of a tool that returned AskedBack.
type Reply struct {
	TaskID string `json:"task"`
	Seq    int64  `json:"seq"` // that of the question
	// ID is the id of the message with the answer, so that the answer is passed on once.
	ID   string `json:"id"`
	Text string `json:"text"`
	// Own is true if the person wrote the answer, false if an agent did.
	Own bool `json:"own,omitempty"`
}

// NewReply returns the message of a call as the answer to a question, with text in place of its own.
func NewReply(call task.Call, asked AskedBack, text string) Reply {
	return Reply{TaskID: asked.TaskID, Seq: asked.Seq, ID: call.MessageID, Text: text,
		Own: mayConsent(call.Caller) && !call.ThroughAgents()}
}

// relayed is a question that an asked agent has for the person. Reply is nil until it is answered.
type relayed struct {
	ID    string    `json:"id"` // of the call
	Asked AskedBack `json:"asked"`
	Reply *Reply    `json:"reply,omitempty"`
}

// replyTo returns the answer to the question of a call, nil for none.
func (s *state) replyTo(id string) *Reply {
	if s.Relayed == nil || s.Relayed.ID != id {
		return nil
	}
	return s.Relayed.Reply
}

// waits reports whether the person was asked and has not answered.
func (s *state) waits() bool { return s.Waiting != nil || s.Relayed != nil && s.Relayed.Reply == nil }

// askBack shows the person the question of an agent that the call asked, which ends the run.
func (r *run) askBack(ctx context.Context, c openai.ToolCall, asked *AskedBack) error {
	r.st.Relayed = &relayed{ID: c.ID, Asked: *asked}
	before := r.st.Said
	r.gap = before != ""
	text, _ := asked.Shown()
	r.showText(text)
	if r.over {
		r.st.Said = before
		r.failTask("The answer is longer than %d KiB and was cut.", model.MaxText>>10)
		return nil
	}
	if err := r.st.saveState(ctx, r.out); err != nil {
		return err
	}
	res := r.waitingResult()
	r.result = &res
	return nil
}

// takeRelayed takes the message of the call as the answer to the question of an asked agent.
func (r *run) takeRelayed(st *state, text string) {
	st.Message, st.Said, st.Thoughts = r.call.MessageID, "", ""
	reply := NewReply(r.call, st.Relayed.Asked, strings.TrimSpace(text))
	st.Relayed.Reply = &reply
}

// askedBack returns err as an *AskedBack, nil if it is none.
func askedBack(err error) *AskedBack {
	asked, _ := errors.AsType[*AskedBack](err)
	return asked
}
