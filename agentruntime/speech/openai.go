package speech

import (
	"strings"

	"agentsite/internal/openai"
	"agentsite/internal/task"
)

// AppendMessage appends a message to a chat of the OpenAI API. Messages of the agent itself (mine) get
// the assistant's role, all others the user's, distinguished by the frame. Consecutive messages of one
// role are joined, because many servers refuse roles that do not alternate. An empty text adds nothing.
func (f Frame) AppendMessage(list []openai.Message, mine bool, by task.Speaker, text string) []openai.Message {
	if strings.TrimSpace(text) == "" {
		return list
	}
	role, name := openai.User, ""
	if mine {
		role = openai.Assistant
	} else if f.HasSeveral() {
		text, name = f.FormatMessage(by, text), MessageName(by)
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
