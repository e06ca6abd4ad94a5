package prompt

import (
	"context"
	"encoding/json"
	"strings"

	"agentsite/agentruntime/model"
	"agentsite/internal/clock"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// tracer hands what goes out and comes in to whoever looks at the call, the
// model's key taken out.
type tracer struct {
	to  func(task.Traced)
	key string
}

func newTracer(ctx context.Context, key string) tracer { return tracer{task.Trace(ctx), key} }

// untraced keeps what lies below from reporting the same again, with the
// addresses of the portal's model and of other owners' tools.
func untraced(ctx context.Context) context.Context { return task.WithTrace(ctx, nil) }

func (t tracer) traced(out bool, head, body string) {
	if t.to == nil {
		return
	}
	body = redacted(body, t.key)
	t.to(task.Traced{At: clock.Now(), Out: out, Head: cut(head), Body: cut(body), Size: int64(len(body))})
}

func (t tracer) tracedReply(reply model.Reply) {
	if t.to == nil {
		return
	}
	b, err := json.Marshal(struct {
		Text      string            `json:"text,omitempty"`
		ToolCalls []openai.ToolCall `json:"tool_calls,omitempty"`
		Finish    string            `json:"finish_reason,omitempty"`
		Usage     openai.Usage      `json:"usage"`
	}{reply.Text, reply.Calls, reply.Finish, reply.Usage})
	if err != nil {
		return
	}
	head := "answer"
	if reply.Model != "" {
		head += " of " + plain(reply.Model)
	}
	t.traced(false, head, string(b))
}

// head names a question to the model. The address of the portal's own is the
// operator's business.
func (r *run) head() string {
	if r.ask.portal {
		return "question to the portal's model " + plain(r.ask.name)
	}
	return "POST " + redacted(r.call.Agent.Endpoint, r.ask.key) + "/chat/completions"
}

func cut(s string) string {
	if len(s) <= task.MaxTraced {
		return s
	}
	return strings.ToValidUTF8(s[:task.MaxTraced], "")
}
