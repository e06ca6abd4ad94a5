package remote

import (
	"strings"

	"agentsite/agentruntime/speech"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// messages turns a call into a chat: instructions, what was said, what is
// asked.
func messages(instructions string, call task.Call, f speech.Frame) []openai.Message {
	var out []openai.Message
	if s := strings.TrimSpace(strings.TrimSpace(instructions) + "\n\n" + f.Rules()); s != "" {
		out = append(out, openai.Message{Role: openai.System, Content: openai.Content(s)})
	}
	for _, t := range call.History {
		out = f.Append(out, t.Mine, speech.Speaker(t), task.PlainText(t.Parts))
	}
	return f.Append(out, false, call.Said(), task.PlainText(call.Parts))
}
