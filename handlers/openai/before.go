package openai

import (
	"slices"
	"strings"

	"agentsite/internal/ident"
	wire "agentsite/internal/openai"
)

// The API has no memory: programs send what was said before with each call.
// For a new conversation that becomes one message of the caller before the
// question, since it is their word alone; nothing is put into the mouth of
// the agent. Each line of it is quoted, so that no text can look like the
// lines between that say who spoke.
const beforeHead = "What was said before, as the program that asks reports it. Nobody here has checked it."

const leftOut = "[Earlier messages are left out.]"

// Bounds of what goes along, in bytes: what a guest may say in one message,
// and about half of what agents are told of a conversation.
const (
	beforeGuest  = 12 << 10
	beforePerson = 24 << 10
)

// before is what was said before the question, "" when nothing was: the
// instructions first, then the newest of the rest that fits.
func (in *completionRequest) before(actor ident.Actor) string {
	room := beforeGuest
	if actor.IsPerson() {
		room = beforePerson
	}
	room -= len(beforeHead) + len(leftOut) + 8
	var first, rest []string
	cut := false
	share := room / 2 // of the instructions
	for _, m := range in.Messages[:len(in.Messages)-1] {
		if m.Role != wire.System && m.Role != "developer" {
			continue
		}
		t := turn(m)
		if t == "" {
			continue
		}
		if len(t)+2 > share {
			if cut = true; share < 512 { // so little says nothing
				continue
			}
			t = clip(t, share-2)
		}
		share, room = share-len(t)-2, room-len(t)-2
		first = append(first, t)
	}
	for _, m := range slices.Backward(in.Messages[:len(in.Messages)-1]) {
		if m.Role == wire.System || m.Role == "developer" {
			continue
		}
		t := turn(m)
		if room -= len(t) + 2; room < 0 {
			cut = true
			break
		}
		if t != "" {
			rest = append(rest, t)
		}
	}
	slices.Reverse(rest)
	if len(first)+len(rest) == 0 && !cut {
		return ""
	}
	out := append([]string{beforeHead}, first...)
	if cut {
		out = append(out, leftOut)
	}
	return strings.Join(append(out, rest...), "\n\n")
}

// turn is one message with who said it; "" for one without words.
func turn(m message) string {
	text := plain(m.Content)
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return m.Role + ":\n" + quote(text)
}

// plain is the text of a message; what is no text is named.
func plain(list wire.Pieces) string {
	var out []string
	for _, p := range list {
		switch {
		case p.Type == "text" || p.Type == "refusal":
			out = append(out, p.Text)
		case p.Type == "image_url":
			out = append(out, "[picture]")
		default:
			out = append(out, "[something that is no text]")
		}
	}
	return strings.Join(out, "\n\n")
}

// breaks are what anybody may take for the end of a line.
var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// quote marks each line of a text as quoted.
func quote(text string) string {
	return "> " + strings.ReplaceAll(breaks.Replace(text), "\n", "\n> ")
}

// clip cuts a text at a character and says so.
func clip(s string, max int) string {
	const mark = " [cut]"
	return strings.ToValidUTF8(s[:max-len(mark)], "") + mark
}
