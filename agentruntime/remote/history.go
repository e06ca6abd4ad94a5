package remote

import (
	"strings"

	"agentsite/agentruntime/speech"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// chatMessages turns a call into a chat: instructions, history, question.
func chatMessages(instructions string, call task.Call, f speech.Frame) []openai.Message {
	var out []openai.Message
	if s := strings.TrimSpace(strings.TrimSpace(instructions) + "\n\n" + f.ExplainRules()); s != "" {
		out = append(out, openai.Message{Role: openai.System, Content: openai.Content(s)})
	}
	for _, t := range call.History {
		out = f.AppendMessage(out, t.Mine, speech.SpeakerOf(t), task.PlainText(t.Parts))
	}
	return f.AppendMessage(out, false, call.AskedBy(), task.PlainText(call.Parts))
}
