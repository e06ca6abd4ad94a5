package prompt

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"agentsite/agentruntime/model"
	"agentsite/internal/clock"
	"agentsite/internal/models"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// tracer reports requests and answers of a traced call, without the model's key.
type tracer struct {
	to  task.Tracer
	key string
}

func newTracer(ctx context.Context, key string) tracer { return tracer{task.Trace(ctx), key} }

// withoutTrace prevents lower layers from reporting the same again, because their reports contain the
// addresses of the portal's model and of other owners' tools.
func withoutTrace(ctx context.Context) context.Context { return task.WithTrace(ctx, nil) }

func (t tracer) traceMessage(out bool, head, body string) {
	if t.to == nil {
		return
	}
	body = redactSecret(body, t.key)
	t.to.AddTrace(task.Traced{At: clock.Now(), Out: out, Head: cutText(head), Body: cutText(body), Size: int64(len(body))})
}

func (t tracer) traceReply(reply model.Reply) {
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
		head += " of " + cleanName(reply.Model)
	}
	t.traceMessage(false, head, string(b))
}

// traceHead names a question to the model. The address of the portal's own model is hidden, because
// only the operator may see it.
func (r *run) traceHead() string {
	if r.ask.Portal {
		return "question to the portal's model " + cleanName(r.ask.Name)
	}
	path := "/chat/completions"
	if r.ask.server.Provider == models.Anthropic {
		path = "/messages"
	}
	return "POST " + redactSecret(r.ask.server.URL, r.ask.server.Key) + path
}

func cutText(s string) string {
	if len(s) <= task.MaxTraced {
		return s
	}
	return strings.ToValidUTF8(s[:task.MaxTraced], "")
}

// traceBody returns a request as owners may read it: without the memories of the agent, which only the person sees.
// last is the number of messages up to the question, less one.
func (r *run) traceBody(req openai.ChatRequest, last int, body []byte) string {
	if len(r.call.Memories) == 0 {
		return string(body)
	}
	base := r.st.baseMessages(nil)
	req.Messages = slices.Concat(req.Messages[:last+1-len(base)], base, req.Messages[last+1:])
	hidden, err := json.Marshal(req)
	if err != nil {
		return "" // The body was marshaled before, so this cannot happen.
	}
	return string(hidden)
}
