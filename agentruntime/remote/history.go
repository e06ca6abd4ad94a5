package remote

import (
	"strings"

	"agentsite/internal/a2a"
	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// messages turns a call into a chat: instructions, what was said, what is
// asked. What others than the agent said stands under the user's role; when
// there is more than one of them each begins with its speaker's name, as
// plain data. Messages of one role in a row are joined: many servers refuse
// roles that do not alternate.
func messages(instructions string, call task.Call) []openai.Message {
	several := manySpeakers(call)
	var out []openai.Message
	if s := strings.TrimSpace(instructions); s != "" {
		out = append(out, openai.Message{Role: openai.System, Content: openai.Content(s)})
	}
	say := func(role, speaker string, parts []task.Part) {
		text := task.PlainText(parts)
		if text == "" {
			return
		}
		if role == openai.User && several && speaker != "" {
			text = a2a.Line(speaker, 100) + ": " + text
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content += openai.Content("\n\n" + text)
			return
		}
		out = append(out, openai.Message{Role: role, Content: openai.Content(text)})
	}
	for _, t := range call.History {
		role := openai.User
		if t.Mine {
			role = openai.Assistant
		}
		say(role, t.Speaker, t.Parts)
	}
	say(openai.User, speakerOf(call.Caller), call.Parts)
	return out
}

func manySpeakers(call task.Call) bool {
	first := speakerOf(call.Caller)
	for _, t := range call.History {
		if !t.Mine && t.Speaker != first {
			return true
		}
	}
	return false
}

func speakerOf(c task.Caller) string {
	if c.Handle != "" {
		return c.Handle
	}
	return c.Kind
}
