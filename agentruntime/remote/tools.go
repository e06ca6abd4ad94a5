package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"agentsite/internal/a2a"
	"agentsite/internal/task"
)

// keeper stores the checkpoint of a run together with the state of the portal's tools, which calls of the agent change
// while the run goes on. It also guards the output: it is a Sink for several goroutines, and removes the token of the
// tools from all that the agent says.
type keeper struct {
	mu    sync.Mutex // guards the fields below and the calls of out
	out   task.Sink
	at    checkpoint
	tools json.RawMessage
	token string
}

var (
	_ task.Sink     = (*keeper)(nil)
	_ task.ToolSink = (*keeper)(nil)
)

// keptState is the stored form of both.
type keptState struct {
	checkpoint
	Tools json.RawMessage `json:"tools,omitempty"`
}

func newKeeper(out task.Sink, stored json.RawMessage) *keeper {
	var s keptState
	if json.Unmarshal(stored, &s) != nil {
		s = keptState{}
	}
	return &keeper{out: out, at: s.checkpoint, tools: s.Tools}
}

// saveRun stores the checkpoint of the run.
func (k *keeper) saveRun(ctx context.Context, at checkpoint) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = at
	return k.saveBoth(ctx)
}

// SaveTools implements task.ToolSink.
func (k *keeper) SaveTools(ctx context.Context, state json.RawMessage) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tools = state
	return k.saveBoth(ctx)
}

// saveBoth stores the checkpoint and the state of the tools; the caller holds mu.
func (k *keeper) saveBoth(ctx context.Context) error {
	b, err := json.Marshal(keptState{k.at, k.tools})
	if err != nil {
		return err
	}
	return k.out.Checkpoint(ctx, b)
}

// hideToken removes the token from a text.
func (k *keeper) hideToken(s string) string { return redactSecret(s, k.token) }

// hideParts returns parts without the token.
func (k *keeper) hideParts(in []task.Part) []task.Part {
	if k.token == "" {
		return in
	}
	out := make([]task.Part, len(in))
	for i, p := range in {
		p.Text, p.URL, p.Filename = k.hideToken(p.Text), k.hideToken(p.URL), k.hideToken(p.Filename)
		p.Data = json.RawMessage(k.hideToken(string(p.Data)))
		p.Metadata = json.RawMessage(k.hideToken(string(p.Metadata)))
		out[i] = p
	}
	return out
}

// Text implements task.Sink.
func (k *keeper) Text(delta string) { k.withOut(func(out task.Sink) { out.Text(k.hideToken(delta)) }) }

// Replace implements task.Sink.
func (k *keeper) Replace(text string) {
	k.withOut(func(out task.Sink) { out.Replace(k.hideToken(text)) })
}

// Status implements task.Sink and task.ToolSink.
func (k *keeper) Status(text string) {
	k.withOut(func(out task.Sink) { out.Status(k.hideToken(text)) })
}

// Artifact implements task.Sink.
func (k *keeper) Artifact(a task.Artifact) {
	a.Name, a.Description, a.Parts = k.hideToken(a.Name), k.hideToken(a.Description), k.hideParts(a.Parts)
	k.withOut(func(out task.Sink) { out.Artifact(a) })
}

// Checkpoint implements task.Sink; the run uses saveRun.
func (k *keeper) Checkpoint(ctx context.Context, state json.RawMessage) error {
	return k.SaveTools(ctx, state)
}

// Pause implements task.Pauser.
func (k *keeper) Pause() {
	if p, ok := k.out.(task.Pauser); ok {
		p.Pause()
	}
}

// Resume implements task.Pauser.
func (k *keeper) Resume() {
	if p, ok := k.out.(task.Pauser); ok {
		p.Resume()
	}
}

func (k *keeper) withOut(fn func(task.Sink)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn(k.out)
}

// openTools opens the portal's tools for the run, if the agent has any, and returns the context of its requests, whose
// traces hide the token.
func (r *run) openTools(ctx context.Context) (context.Context, error) {
	if r.d.cfg.Tools == nil || r.way.peer {
		return ctx, nil
	}
	s, ok, err := r.d.cfg.Tools.OpenTools(ctx, r.call, r.keep, r.keep.tools)
	if err != nil || !ok {
		return ctx, err
	}
	address, token := s.Access()
	r.tools, r.access = s, &a2a.Tools{URL: address, Token: token}
	r.keep.token = token
	if to := task.Trace(ctx); to != nil {
		ctx = task.WithTrace(ctx, hidden{to, token})
	}
	return ctx, nil
}

// replyParts returns the parts for the agent: those of the message, or the portal's text if the message answers a
// question of the portal.
func (r *run) replyParts(ctx context.Context) []task.Part {
	if r.tools != nil {
		if text := r.tools.Reply(); text != "" {
			return []task.Part{task.TextPart(text)}
		}
	}
	return requestParts(ctx, r.call, r.at.Task != "", r.way.inline)
}

// askPermission replaces the result of an agent that waits for input by the portal's question to the person, if a call
// of the agent needs a permission.
func (r *run) askPermission() {
	if r.tools == nil || r.result.State != task.InputRequired {
		return
	}
	text, short := r.tools.Question()
	if text == "" {
		return
	}
	r.keep.Replace(text)
	r.result = task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart(text)}, Reason: short}
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

// withExtension is a RoundTripper that asks for an extension of A2A.
type withExtension struct {
	next http.RoundTripper
	uri  string
}

// RoundTrip implements http.RoundTripper. It changes a copy of the request.
func (w withExtension) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(a2a.ExtensionsHeader, w.uri)
	return w.next.RoundTrip(r)
}
