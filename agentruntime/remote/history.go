package remote

import (
	"strings"

	"agentsite/agentruntime/speech"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// chatMessages turns a call into the messages of a chat request: instructions, if there are any, then
// the history, then the question. Authors are marked by the frame.
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
