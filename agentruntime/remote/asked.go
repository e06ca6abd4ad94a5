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

// maxEarlier bounds, in bytes, the messages of others since the agent's last answer that a remote agent
// gets.
const maxEarlier = 24 << 10

// requestParts returns the parts for an A2A agent: the message and, with several speakers, before it
// its author and the messages since the agent's last answer. An answer to the agent's own question
// needs no context.
func requestParts(ctx context.Context, call task.Call, answer bool, inline int) []task.Part {
	parts := attach.ForRemote(ctx, call.Files, call.Parts, int64(inline))
	f := speech.NewFrame(call)
	if answer || !f.HasSeveral() {
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
		text := f.FormatMessage(speech.SpeakerOf(t), task.PlainText(t.Parts))
		if left -= len(text); left < 0 {
			break
		}
		said = append(said, text)
	}
	slices.Reverse(said)
	var b strings.Builder
	b.WriteString(f.ExplainRules())
	if len(said) > 0 {
		b.WriteString("\n\nSaid before:\n\n" + strings.Join(said, "\n\n"))
	}
	b.WriteString("\n\nTo be answered:\n\n" + f.HeadLine(call.AskedBy()))
	by := call.AskedBy()
	meta, err := json.Marshal(map[string]any{"speaker": map[string]string{"kind": by.Kind, "handle": by.Handle}})
	if err != nil {
		meta = nil
	}
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Text = f.RemoveMark(parts[i].Text)
	}
	return slices.Insert(parts, 0, task.Part{Text: b.String(), Metadata: meta})
}
