package openai

import (
	"slices"
	"strings"

	"agentsite/internal/ident"
	wire "agentsite/internal/openai"
)

// The API has no memory: programs send the earlier messages with each call. In a new conversation
// these become one message of the caller before the question, because only the caller vouches for
// them; none of them is shown as a message of the agent. Each line is quoted, so that no text can
// look like one of the lines with the roles.
const beforeHead = "Earlier messages, as reported by the calling program. This portal has not checked them."

const leftOut = "[Earlier messages are left out.]"

// Bounds of the earlier messages in bytes: for a guest the limit of one message, for an account about
// half of the context that agents get.
const (
	beforeGuest  = 12 << 10
	beforePerson = 24 << 10
)

// textBefore returns the messages before the question as one text: the system instructions first, then as
// many of the newest messages as fit. It returns "" if there are none.
func (in *completionRequest) textBefore(actor ident.Actor) string {
	room := beforeGuest
	if actor.IsPerson() {
		room = beforePerson
	}
	room -= len(beforeHead) + len(leftOut) + 8
	var first, rest []string
	cut := false
	share := room / 2 // the instructions may use half of the space
	for _, m := range in.Messages[:len(in.Messages)-1] {
		if m.Role != wire.System && m.Role != "developer" {
			continue
		}
		t := formatTurn(m)
		if t == "" {
			continue
		}
		if len(t)+2 > share {
			if cut = true; share < 512 { // a shorter rest of an instruction would be useless
				continue
			}
			t = clipText(t, share-2)
		}
		share, room = share-len(t)-2, room-len(t)-2
		first = append(first, t)
	}
	for _, m := range slices.Backward(in.Messages[:len(in.Messages)-1]) {
		if m.Role == wire.System || m.Role == "developer" {
			continue
		}
		t := formatTurn(m)
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

// formatTurn returns one message, quoted below a line with its role; "" for a message without text.
func formatTurn(m message) string {
	text := plainText(m.Content)
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return m.Role + ":\n" + quoteText(text)
}

// plainText returns the text of a message. Content of other types is replaced by its type in brackets.
func plainText(list wire.Pieces) string {
	var out []string
	for _, p := range list {
		switch {
		case p.Type == "text" || p.Type == "refusal":
			out = append(out, p.Text)
		case p.Type == "image_url":
			out = append(out, "[picture]")
		default:
			out = append(out, "[content other than text]")
		}
	}
	return strings.Join(out, "\n\n")
}

// breaks replaces all characters that a program may treat as the end of a line by \n.
var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n",
	"\u2029", "\n")

// quoteText prefixes each line of a text with "> ", so that no line can imitate a line with a role.
func quoteText(text string) string {
	return "> " + strings.ReplaceAll(breaks.Replace(text), "\n", "\n> ")
}

// clipText cuts a text to max bytes at a rune's boundary, and marks the cut.
func clipText(s string, max int) string {
	const mark = " [cut]"
	return strings.ToValidUTF8(s[:max-len(mark)], "") + mark
}
