package speech

import (
	"strings"

	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// Append appends what somebody said to a chat of the OpenAI API: what the
// agent itself said, mine, under the assistant's role, all else under the
// user's, told apart by the frame. Messages of one role in a row are joined:
// many servers refuse roles that do not alternate. An empty text adds nothing.
func (f Frame) Append(list []openai.Message, mine bool, by task.Speaker, text string) []openai.Message {
	if strings.TrimSpace(text) == "" {
		return list
	}
	role, name := openai.User, ""
	if mine {
		role = openai.Assistant
	} else if f.Several() {
		text, name = f.Say(by, text), Name(by)
	}
	if n := len(list); n > 0 && list[n-1].Role == role {
		last := &list[n-1]
		last.Content += openai.Content("\n\n" + text)
		if last.Name != name {
			last.Name = ""
		}
		return list
	}
	return append(list, openai.Message{Role: role, Content: openai.Content(text), Name: name})
}
