package remote

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"agentsite/agentruntime/attach"
	"agentsite/agentruntime/speech"
	"agentsite/internal/task"
)

// maxEarlier bounds, in bytes, what an agent elsewhere is told of what others
// said since it spoke.
const maxEarlier = 24 << 10

// asked is what an A2A agent is sent: the message, and where several take
// part, before it who wrote it and what was said since the agent spoke last.
// An answer to the agent's own question needs nothing before it.
func asked(ctx context.Context, call task.Call, answer bool, inline int) []task.Part {
	parts := attach.Elsewhere(ctx, call.Files, call.Parts, int64(inline))
	f := speech.Of(call)
	if answer || !f.Several() {
		return parts
	}
	since := call.History
	for i, t := range slices.Backward(call.History) {
		if t.Mine {
			since = call.History[i+1:]
			break
		}
	}
	var said []string
	left := maxEarlier
	for _, t := range slices.Backward(since) {
		text := f.Say(speech.Speaker(t), task.PlainText(t.Parts))
		if left -= len(text); left < 0 {
			break
		}
		said = append(said, text)
	}
	slices.Reverse(said)
	var b strings.Builder
	b.WriteString(f.Rules())
	if len(said) > 0 {
		b.WriteString("\n\nSaid before:\n\n" + strings.Join(said, "\n\n"))
	}
	b.WriteString("\n\nTo be answered:\n\n" + f.Head(call.Said()))
	by := call.Said()
	meta, err := json.Marshal(map[string]any{"speaker": map[string]string{"kind": by.Kind, "handle": by.Handle}})
	if err != nil {
		meta = nil
	}
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Text = f.Clean(parts[i].Text)
	}
	return slices.Insert(parts, 0, task.Part{Text: b.String(), Metadata: meta})
}
