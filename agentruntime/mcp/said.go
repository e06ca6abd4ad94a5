package mcp

import (
	"fmt"
	"slices"
	"strings"

	"agentsite/internal/a2a"
	"agentsite/internal/task"
)

// saidTo returns the parts of a call without the mention of the agent at the start of the text. In a
// message of an agent, which may contain more than the request, the request is the text after the
// mention.
func saidTo(call task.Call) []task.Part {
	names := []string{call.Agent.Handle, call.Agent.Name}
	for i, p := range call.Parts {
		if p.Text == "" {
			continue
		}
		text := strings.TrimSpace(p.Text)
		for at := range len(text) {
			if text[at] != '@' || at > 0 && call.AskedBy().Kind != "agent" {
				continue
			}
			if _, ok := withoutMention(text[at:], names); ok {
				text = text[at:]
				break
			}
		}
		rest, ok := withoutMention(text, names)
		if !ok {
			return call.Parts
		}
		out := slices.Clone(call.Parts)
		out[i].Text = rest
		if rest == "" {
			out = slices.Delete(out, i, i+1)
		}
		return out
	}
	return call.Parts
}

// withoutMention removes "@name" or "@name@portal" and following punctuation from the front of a text;
// false if the text does not begin with a mention of one of names.
func withoutMention(text string, names []string) (string, bool) {
	for _, n := range names {
		if n == "" || len(text) <= len(n) || text[0] != '@' || !strings.EqualFold(text[1:1+len(n)], n) {
			continue
		}
		rest := text[1+len(n):]
		if strings.HasPrefix(rest, "@") {
			end := strings.IndexAny(rest, " \t\n")
			if end < 0 {
				end = len(rest)
			}
			rest = rest[end:]
		}
		if rest == "" || strings.ContainsAny(rest[:1], " \t\n,:;.!?") {
			return strings.TrimSpace(strings.TrimLeft(rest, ",:;.!? \t\n")), true
		}
	}
	return text, false
}

// forbidReason returns the reason why a tool is not called, "" if it may be. A tool that may change
// something needs a request of the person behind the call; the text of an agent in between does not
// count.
func forbidReason(call task.Call, t *offered) (reason string) {
	by := call.AskedBy()
	if by.Kind != "agent" || call.Caller.Kind == "agent" || t.ReadOnly {
		return ""
	}
	return fmt.Sprintf("The tool %s was not called: it may change something, and %s asked for it, not a person. "+
		"Ask for it yourself.", t.Name, a2a.Line(by.Handle, 100))
}
