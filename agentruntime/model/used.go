package model

import (
	"context"
	"errors"

	"agentsite/internal/task"
	"agentsite/internal/usage"
)

// Used are the tokens of one question to a model and its answer.
type Used struct {
	Input, Output int
	// Estimated is true if the server reported none, so that they are computed from the size of the texts.
	Estimated bool
}

// Total returns the number of all tokens.
func (u Used) Total() int { return u.Input + u.Output }

// Used returns the tokens of a reply as the server reported them, or else an estimate with in for those of the
// question. A question that was refused or did not arrive costs nothing; one that was stopped does.
func (r Reply) Used(ctx context.Context, err error, in int) Used {
	u := r.Usage
	if n := max(u.TotalTokens, u.PromptTokens+u.CompletionTokens); n > 0 {
		input := min(max(u.PromptTokens, 0), n)
		return Used{Input: input, Output: n - input}
	}
	worked := err == nil || ctx.Err() != nil || r.Text != "" || errors.Is(err, ErrInterrupted) ||
		errors.Is(err, ErrTooLong) || errors.Is(err, ErrCalls)
	if !worked {
		return Used{}
	}
	out := len(r.Text)
	for _, c := range r.Calls {
		out += len(c.Function.Name) + len(c.Function.Arguments)
	}
	return Used{Input: in, Output: (out + 2) / 3, Estimated: true}
}

// EstimateInput returns the number of tokens of a question of that size in bytes with pictures.
func EstimateInput(bytes, pictures int) int { return bytes/3 + pictures*pictureTokens }

// pictureTokens is the estimated cost of a picture, similar to that of providers.
const pictureTokens = 1500

// Terms are the price of a model and its payer.
type Terms struct {
	Name   string      // on its server
	Price  usage.Price // zero for that in the operator's file
	Portal bool        // true for the portal's own model
}

// Count counts the tokens of an answer to a call. It does nothing without a meter or tokens.
func Count(ctx context.Context, m usage.Meter, call task.Call, t Terms, u Used) {
	if m == nil || u.Total() == 0 {
		return
	}
	m.Count(ctx, t.usageOf(call, u))
}

func (t Terms) usageOf(call task.Call, u Used) usage.Call {
	c := usage.Call{TaskID: call.TaskID, AgentID: call.Agent.ID, OwnerID: call.Agent.OwnerID,
		CallerKind: call.Caller.Kind, Model: t.Name,
		Price: t.Price, Portal: t.Portal, Purpose: usage.Work, Input: int64(u.Input), Output: int64(u.Output),
		Estimated: u.Estimated}
	switch call.Caller.Kind {
	case "operator", "person":
		c.CallerKind, c.CallerID = "person", call.Caller.ID
	}
	return c
}

// assumedOutput is the length of an answer that is set aside if the request bounds none.
const assumedOutput = 4096

// Reserve sets the most that a question of in tokens can cost aside, with an answer of at most out, 0 for no bound. It
// does nothing without a guard.
func Reserve(ctx context.Context, g usage.Guard, call task.Call, t Terms, in, out int) (settle func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	if out <= 0 {
		out = assumedOutput
	}
	return g.Reserve(ctx, t.usageOf(call, Used{Input: in, Output: out}))
}
