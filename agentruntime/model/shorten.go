package model

import "agentsite/internal/openai"

// LeftOut stands for messages that are not sent.
const LeftOut = "[Earlier messages are left out.]"

// Shorten returns the instructions at the beginning of a conversation and its newest messages, whole and about half of
// all bytes. The last message stays, whatever its size. It returns the list itself if there is nothing to leave out.
func Shorten(list []openai.Message) []openai.Message {
	head := 0
	for head < len(list) && list[head].Role == openai.System {
		head++
	}
	rest, all := list[head:], 0
	if len(rest) < 2 {
		return list
	}
	for _, m := range rest {
		all += len(m.Content)
	}
	from, kept := len(rest)-1, len(rest[len(rest)-1].Content)
	for from > 1 && kept+len(rest[from-1].Content) <= all/2 {
		from--
		kept += len(rest[from].Content)
	}
	out := append([]openai.Message{}, list[:head]...)
	first := rest[from]
	if first.Role != openai.User {
		return append(append(out, openai.Message{Role: openai.User, Content: LeftOut}), rest[from:]...)
	}
	first.Content = LeftOut + "\n\n" + first.Content
	return append(append(out, first), rest[from+1:]...)
}
