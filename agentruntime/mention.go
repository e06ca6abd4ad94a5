package agentruntime

import (
	"slices"
	"strings"

	"agentsite/internal/task"
)

// withoutOwnMention returns the parts of a message without the mention of the agent among the mentions that the message
// begins with: it only says that the message is for the agent. Mentions of others and later ones stay, and so does a
// message that has no other text.
func withoutOwnMention(parts []task.Part, handle string) []task.Part {
	i := slices.IndexFunc(parts, func(p task.Part) bool { return p.Text != "" })
	if i < 0 {
		return parts
	}
	name, _, _ := strings.Cut(handle, "@")
	own := func(word string) bool {
		word = strings.TrimRight(word, ",:")
		return strings.EqualFold(word, "@"+handle) || strings.EqualFold(word, "@"+name)
	}
	var others strings.Builder
	rest := strings.TrimLeft(parts[i].Text, " \t\n")
	found := false
	for strings.HasPrefix(rest, "@") {
		end := strings.IndexAny(rest, " \t\n")
		if end < 0 {
			break
		}
		word, after := rest[:end], strings.TrimLeft(rest[end:], " \t\n")
		if own(word) {
			found = true
		} else {
			others.WriteString(rest[:len(rest)-len(after)])
		}
		rest = after
	}
	if !found || strings.TrimSpace(rest) == "" {
		return parts
	}
	parts = slices.Clone(parts)
	parts[i].Text = others.String() + rest
	return parts
}
