// Package equip gives an agent that runs elsewhere the portal's tools while it works on one task. It stands between the
// run of the agent and its sink: it stores the state of the tools with the checkpoint of the run, removes the token of
// the tools from all that the agent says, and puts the portal's question to the person in place of the agent's.
package equip

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"agentsite/internal/task"
)

// Kit is the Sink of one run, and its tools. It is safe for concurrent use after Open.
type Kit struct {
	session task.ToolSession // nil without tools
	address string
	token   string

	mu    sync.Mutex // guards the fields below and the calls of out
	out   task.Sink
	at    json.RawMessage // the checkpoint of the run, an object
	tools json.RawMessage
}

var (
	_ task.Sink     = (*Kit)(nil)
	_ task.ToolSink = (*Kit)(nil)
)

// toolsField is the member of a stored checkpoint that has the state of the tools.
const toolsField = "tools"

// Wrap returns a Kit without tools. stored is the checkpoint of the task, nil for none.
func Wrap(out task.Sink, stored json.RawMessage) *Kit {
	k := &Kit{out: out}
	var s struct {
		Tools json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(stored, &s) == nil {
		k.at, k.tools = stored, s.Tools
	}
	return k
}

// Open opens the tools of the run, if the agent has any, and returns the context of its requests, whose traces hide
// the token. A nil server has none. The caller calls Close.
func (k *Kit) Open(ctx context.Context, server task.ToolServer, call task.Call) (context.Context, error) {
	if server == nil {
		return ctx, nil
	}
	s, ok, err := server.OpenTools(ctx, call, k, k.tools)
	if err != nil || !ok {
		return ctx, err
	}
	k.session = s
	k.address, k.token = s.Access()
	if to := task.Trace(ctx); to != nil {
		ctx = task.WithTrace(ctx, hidden{to, k.token})
	}
	return ctx, nil
}

// Close ends the tools and the calls that are under way.
func (k *Kit) Close() {
	if k.session != nil {
		k.session.Close()
	}
}

// Access returns the address of the tools and the token for it; ok is false if the agent has none.
func (k *Kit) Access() (address, token string, ok bool) { return k.address, k.token, k.session != nil }

// Reply returns the text that the agent gets in place of the message, because that answers a question of the portal;
// "" if it does not.
func (k *Kit) Reply() string {
	if k.session == nil {
		return ""
	}
	return k.session.Reply()
}

// AskPermission replaces the result of an agent that waits for input or a login by the portal's question to the person,
// if a call of the agent needs a permission.
func (k *Kit) AskPermission(r task.Result) task.Result {
	if k.session == nil || r.State != task.InputRequired && r.State != task.AuthRequired {
		return r
	}
	text, short := k.session.Question()
	if text == "" {
		return r
	}
	k.Replace(text)
	return task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart(text)}, Reason: short}
}

// SaveRun stores the checkpoint of the run, which is encoded as a JSON object.
func (k *Kit) SaveRun(ctx context.Context, at any) error {
	b, err := json.Marshal(at)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = b
	return k.saveBoth(ctx)
}

// SaveTools implements task.ToolSink.
func (k *Kit) SaveTools(ctx context.Context, state json.RawMessage) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tools = state
	return k.saveBoth(ctx)
}

// saveBoth stores the checkpoint and the state of the tools; the caller holds mu.
func (k *Kit) saveBoth(ctx context.Context) error {
	fields := make(map[string]json.RawMessage)
	if len(k.at) > 0 && string(k.at) != "null" {
		if err := json.Unmarshal(k.at, &fields); err != nil {
			return err
		}
	}
	delete(fields, toolsField)
	if len(k.tools) > 0 {
		fields[toolsField] = k.tools
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return k.out.Checkpoint(ctx, b)
}

// HideToken removes the token from a text.
func (k *Kit) HideToken(s string) string {
	if k.token == "" {
		return s
	}
	return strings.ReplaceAll(s, k.token, "[key]")
}

// HideParts returns parts without the token.
func (k *Kit) HideParts(in []task.Part) []task.Part {
	if k.token == "" {
		return in
	}
	out := make([]task.Part, len(in))
	for i, p := range in {
		p.Text, p.URL, p.Filename = k.HideToken(p.Text), k.HideToken(p.URL), k.HideToken(p.Filename)
		p.Data = json.RawMessage(k.HideToken(string(p.Data)))
		p.Metadata = json.RawMessage(k.HideToken(string(p.Metadata)))
		out[i] = p
	}
	return out
}

// Text implements task.Sink.
func (k *Kit) Text(delta string) { k.withOut(func(out task.Sink) { out.Text(k.HideToken(delta)) }) }

// Replace implements task.Sink.
func (k *Kit) Replace(text string) {
	k.withOut(func(out task.Sink) { out.Replace(k.HideToken(text)) })
}

// Status implements task.Sink and task.ToolSink.
func (k *Kit) Status(text string) {
	k.withOut(func(out task.Sink) { out.Status(k.HideToken(text)) })
}

// Artifact implements task.Sink.
func (k *Kit) Artifact(a task.Artifact) {
	a.Name, a.Description, a.Parts = k.HideToken(a.Name), k.HideToken(a.Description), k.HideParts(a.Parts)
	k.withOut(func(out task.Sink) { out.Artifact(a) })
}

// Checkpoint implements task.Sink; the run uses SaveRun.
func (k *Kit) Checkpoint(ctx context.Context, state json.RawMessage) error {
	return k.SaveTools(ctx, state)
}

// Pause implements task.Pauser.
func (k *Kit) Pause() {
	if p, ok := k.out.(task.Pauser); ok {
		p.Pause()
	}
}

// Resume implements task.Pauser.
func (k *Kit) Resume() {
	if p, ok := k.out.(task.Pauser); ok {
		p.Resume()
	}
}

func (k *Kit) withOut(fn func(task.Sink)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn(k.out)
}

// hidden is a Tracer that removes a token from all entries.
type hidden struct {
	next  task.Tracer
	token string
}

// minHidden is the least part of a token at the end of a text that was cut which is removed too.
const minHidden = 12

// AddTrace implements task.Tracer.
func (h hidden) AddTrace(t task.Traced) {
	t.Head, t.Body = h.removeToken(t.Head), h.removeToken(t.Body)
	h.next.AddTrace(t)
}

func (h hidden) removeToken(s string) string {
	s = strings.ReplaceAll(s, h.token, "[removed]")
	for n := len(h.token) - 1; n >= minHidden; n-- {
		if before, ok := strings.CutSuffix(s, h.token[:n]); ok {
			return before + "[removed]"
		}
	}
	return s
}
