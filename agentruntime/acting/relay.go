package acting

import (
	"strings"

	"agentsite/agentruntime/prompt"
	"agentsite/internal/task"
)

// askedBack is a question for the person of an agent that was asked. Key is that of the call, Reply is nil until the
// question is answered.
type askedBack struct {
	Key   string           `json:"key"`
	Asked prompt.AskedBack `json:"asked"`
	Reply *prompt.Reply    `json:"reply,omitempty"`
	// Shown is that of waitingCall.
	Shown bool `json:"shown,omitempty"`
	// inUse is true while a call works with the reply.
	inUse bool
}

// relayedText is the result of a call for the agent while the person is asked.
const relayedText = "Not answered yet: the agent asks the person something. End your turn with input-required. After " +
	"the answer you are continued; then call again with the same arguments."

// beginRelay stores the question of an asked agent; the caller holds mu. It returns the result of the call for the
// agent.
func (x *session) beginRelay(key string, asked *prompt.AskedBack) string {
	if x.shown {
		return turnEndedText
	}
	b := x.st.Back
	if b != nil && b.inUse {
		return "Not answered yet: another agent gets an answer of the person first. Call again after that call has ended."
	}
	if x.st.Waiting != nil || b != nil && b.Reply == nil && b.Key != key {
		return "Not answered yet: the person is asked something else first. End your turn with input-required."
	}
	x.st.Back = &askedBack{Key: key, Asked: *asked}
	return relayedText
}

// takeRelayed takes the message of the call as the answer to the question of an asked agent, if one waits for it.
func (x *session) takeRelayed() bool {
	b := x.st.Back
	if b == nil || b.Reply != nil {
		return false
	}
	reply := prompt.NewReply(x.call, b.Asked, strings.TrimSpace(task.PlainText(x.call.Parts)))
	b.Reply = &reply
	x.reply = "The person answered " + b.Asked.Agent + ". Call ask again with the same arguments."
	return true
}

// findAnswered returns the question that a call led to, with the person's answer; nil for none. The caller holds mu.
func (x *session) findAnswered(key string) *askedBack {
	if b := x.st.Back; b != nil && b.Key == key && b.Reply != nil {
		return b
	}
	return nil
}

// turnEndedText is the result of a call that needs the person while the person is shown another question.
const turnEndedText = "Not called: your turn has ended, because the person is asked something."

// dropUnshown removes the questions that the person was not shown, because the message of the call does not answer
// them.
func (x *session) dropUnshown() {
	if b := x.st.Back; b != nil && b.Reply == nil && !b.Shown {
		x.st.Back = nil
	}
	if w := x.st.Waiting; w != nil && !w.Shown {
		x.st.Waiting = nil
	}
}

// unmarkShown makes the questions of an interrupted run count as not shown, because its result may be lost.
func (x *session) unmarkShown() {
	if x.st.Back != nil {
		x.st.Back.Shown = false
	}
	if x.st.Waiting != nil {
		x.st.Waiting.Shown = false
	}
}
