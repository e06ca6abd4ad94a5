package model

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/openai"
)

// Bounds of the tool calls in one answer.
const (
	MaxCalls     = 16
	MaxArguments = 64 << 10
	maxCallID    = 256
	maxExtra     = 16 << 10 // of what a server wants back with a call
	maxThought   = 32 << 10
)

// Errors about tools; they are in the chain of a *fault.Error.
var (
	// ErrNoTools: the model, or its server, knows no tools.
	ErrNoTools = errors.New("tools are not supported")
	// ErrCalls: the model asked for more, or with more, than is taken.
	ErrCalls = errors.New("tool calls out of bounds")
)

// calls puts tool calls together from what servers send: in pieces by index,
// whole, with one index for all of them, with none, without ids.
type calls struct {
	list    []*pending
	thought strings.Builder
}

type pending struct {
	openai.ToolCall
	index int // -1: the server gave none
	args  strings.Builder
}

// add takes a piece; whole says that it is a call of its own.
func (c *calls) add(p openai.ToolCall, whole bool) error {
	at := c.find(p)
	if at == nil || whole {
		if len(c.list) >= MaxCalls {
			return fault.Wrap(fault.Unavailable, ErrCalls,
				"The model asked for more than %d tools at once and was stopped.", MaxCalls)
		}
		at = &pending{index: -1}
		if p.Index != nil {
			at.index = *p.Index
		}
		c.list = append(c.list, at)
	}
	if at.ID == "" {
		at.ID = p.ID
	}
	if len(at.Extra) == 0 && len(p.Extra) <= maxExtra {
		at.Extra = p.Extra
	}
	if name := p.Function.Name; name != at.Function.Name && at.args.Len() == 0 &&
		len(at.Function.Name)+len(name) <= maxName {
		at.Function.Name += name
	}
	at.args.WriteString(string(p.Function.Arguments))
	if at.args.Len() > MaxArguments {
		return fault.Wrap(fault.Unavailable, ErrCalls,
			"The model gave a tool arguments of more than %d KiB and was stopped.", MaxArguments>>10)
	}
	return nil
}

// find returns the call that p goes on with, nil when p begins another.
func (c *calls) find(p openai.ToolCall) *pending {
	var at *pending
	for i := len(c.list) - 1; i >= 0; i-- {
		q := c.list[i]
		if p.Index != nil && q.index != *p.Index {
			continue
		}
		if p.ID != "" && p.ID == q.ID {
			return q
		}
		if at == nil {
			at = q // the newest: some servers count every call as 0
		}
	}
	switch {
	case at == nil, p.ID != "" && at.ID != "":
		return nil
	case p.Function.Name == "":
		return at
	case p.Index == nil, p.Function.Arguments != "" && json.Valid([]byte(at.args.String())):
		return nil // a name after a whole call is the next call
	}
	return at
}

// think takes what the model says to itself, as far as it is kept.
func (c *calls) think(s string) {
	c.thought.WriteString(s[:min(len(s), maxThought-c.thought.Len())])
}

// done returns the calls, each with an id of its own, and the thoughts that
// led to them.
func (c *calls) done() ([]openai.ToolCall, string) {
	if len(c.list) == 0 {
		return nil, ""
	}
	taken := make(map[string]bool)
	out := make([]openai.ToolCall, len(c.list))
	for i, p := range c.list {
		call := p.ToolCall
		if call.ID == "" || len(call.ID) > maxCallID || taken[call.ID] {
			call.ID = ""
			for n := i + 1; call.ID == "" || taken[call.ID]; n += MaxCalls {
				call.ID = "call_" + strconv.Itoa(n)
			}
		}
		taken[call.ID] = true
		if call.Function.Name == "" {
			call.Function.Name = "unnamed"
		}
		call.Index, call.Type = nil, "function"
		call.Function.Arguments = openai.Arguments(strings.ToValidUTF8(p.args.String(), "\uFFFD"))
		out[i] = call
	}
	return out, strings.ToValidUTF8(c.thought.String(), "")
}

// toolless reports whether a refusal says that tools are the trouble, in the
// words of the servers there are.
func toolless(status int, said string) bool {
	if status < 400 || status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusTooManyRequests {
		return false
	}
	s := strings.ToLower(said)
	if !strings.Contains(s, "tool") && !strings.Contains(s, "function call") || strings.Contains(s, "schema") {
		return false
	}
	for _, w := range []string{"support", "requires", "not allowed", "unknown", "unrecognized", "unexpected", "extra",
		"not permitted", "not enabled"} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
