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

// Bounds of the tool calls in one answer; beyond them it fails with ErrCalls.
const (
	MaxCalls     = 16
	MaxArguments = 64 << 10
	maxCallID    = 256
	maxExtra     = 16 << 10 // bytes of data that a server expects back with a call
	maxThought   = 32 << 10
)

// Errors about tools; a *fault.Error wraps them.
var (
	// ErrNoTools: the model or its server does not support tools.
	ErrNoTools = errors.New("tools are not supported")
	// ErrCalls: there were too many tool calls, or their arguments were too large.
	ErrCalls = errors.New("tool calls out of bounds")
)

// calls assembles tool calls from the formats of known servers: in pieces by index, whole, with one
// index for all of them, with none, without ids.
type calls struct {
	list    []*pending
	thought strings.Builder
}

type pending struct {
	openai.ToolCall
	index int // the server's number of the call in this answer; -1 if the server gave none
	args  strings.Builder
}

// addPiece adds a piece of a streamed call, or with whole set a complete call. It returns an ErrCalls
// fault beyond the bounds.
func (c *calls) addPiece(p openai.ToolCall, whole bool) error {
	at := c.findCall(p)
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

// findCall returns the call that piece p continues, nil when p begins another call.
func (c *calls) findCall(p openai.ToolCall) *pending {
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
			at = q // the newest call with this index, because some servers number every call 0
		}
	}
	switch {
	case at == nil, p.ID != "" && at.ID != "":
		return nil
	case p.Function.Name == "":
		return at
	case p.Index == nil, p.Function.Arguments != "" && json.Valid([]byte(at.args.String())):
		return nil // The open call came whole, so a piece with a name begins the next call.
	}
	return at
}

// addThought appends the model's reasoning. Text beyond maxThought bytes is dropped.
func (c *calls) addThought(s string) {
	c.thought.WriteString(s[:min(len(s), maxThought-c.thought.Len())])
}

// finishCalls returns the calls, each with an id of its own, and the reasoning that led to them.
func (c *calls) finishCalls() ([]openai.ToolCall, string) {
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
		call.Function.Arguments = openai.Arguments(openai.JoinHalves(p.args.String()))
		out[i] = call
	}
	return out, strings.ToValidUTF8(c.thought.String(), "")
}

// refusedTools reports whether a server refused a request because it offers tools, judged by the status
// and the error texts of known servers.
func refusedTools(status int, said string) bool {
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
