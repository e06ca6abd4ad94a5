package acting

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"agentsite/agentruntime/prompt"
)

// sessionState is stored with the checkpoint of the task, so that a question that was interrupted goes on and the
// person's answer reaches the call.
type sessionState struct {
	// Message is the id of the message that was processed last. An answer to a question has another id.
	Message string `json:"message"`
	// Asked is the number of questions to agents so far, Open those that have no answer yet.
	Asked int            `json:"asked,omitempty"`
	Open  []openQuestion `json:"open,omitempty"`
	// Waiting is the call that the person is asked about. Granted is the key of the call that the person agreed to.
	Waiting *waitingCall `json:"waiting,omitempty"`
	Granted string       `json:"granted,omitempty"`
	// Back is the question of an asked agent for the person.
	Back *askedBack `json:"back,omitempty"`
}

// openQuestion is a question to an agent. Number is its place among the questions of the task, Key that of its call.
// Agreed is true if the person agreed to this very call.
type openQuestion struct {
	Number int    `json:"number"`
	Key    string `json:"key"`
	Agreed bool   `json:"agreed,omitempty"`
}

// waitingCall is a call of ask that the person is asked about.
type waitingCall struct {
	Target   string          `json:"target"`
	Args     json.RawMessage `json:"args"`
	Keeps    bool            `json:"keeps,omitempty"`
	KeepsAll bool            `json:"keeps_all,omitempty"`
	// Shown is true after the person was shown the question, so that the next message answers it.
	Shown bool `json:"shown,omitempty"`
}

func (w waitingCall) permission() prompt.Permission {
	return prompt.Permission{Keeps: w.Keeps, KeepsAll: w.KeepsAll}
}

// keyOf identifies a call by its target and arguments, of which an answer of the person is about both.
func keyOf(target string, args json.RawMessage) string {
	sum := sha256.Sum256([]byte(target + "\x00" + string(args)))
	return hex.EncodeToString(sum[:16])
}
