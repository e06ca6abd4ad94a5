package templates

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// MessageView is one message. The same component serves pages, windows and the live stream. Parts that
// depend on the reader are set by class, so that they can be added afterwards.
type MessageView struct {
	// HTML is the message as it was rendered before, without the parts that depend on its place or on
	// the reader. These are added from the fields below; the other fields are ignored.
	HTML   SafeHTML
	ID     string
	Seq    int
	Event  string // a quiet line instead of a message: "Ada invited the guide"
	Sender Sender
	Mine   bool // on pages; on the live stream the script sets it
	Time   Time
	Body   SafeHTML
	Data   []DataPart
	Files  []FilePart
	Edited bool
	// Gone is the handle of the member that deleted it: "ada". A deleted message has no content.
	Gone string
	// Newer is the regenerated answer that replaced it, 0 for none; it is collapsed.
	Newer int
	// Again is the answer that it replaced, 0 for none.
	Again     int
	Quote     *QuoteView
	Reactions []ReactionView
	TaskID    string
	State     string // of the task it ends
	Mark      string // "failed", "canceled", "interrupted", "rejected", "input_required"; "" for success
	Reason    string // the reason, one sentence
	Retry     string // the text to send again; "" offers nothing
	ChatID    string // of the conversation
	// The answer to its question can be given by buttons, while it is the last message.
	YesNo    bool
	FormHref string // of the form to fill in
	// Depending on its place on a page:
	Follows bool // the same sender continues: the head is collapsed
	Target  bool // requested by ?at=
	Unread  bool // the first unread message
	Day     *Time
}

// openingClass is the beginning of a message's HTML.
const openingClass = `<article class="message`

// placeClasses returns the classes that a rendered message has for its place and its reader; an event has
// none.
func (m MessageView) placeClasses() string {
	out := ""
	if !strings.HasPrefix(string(m.HTML), openingClass) {
		return out
	}
	if m.Mine {
		out += " message-mine"
	}
	if m.Follows {
		out += " message-follows"
	}
	if m.Target {
		out += " message-target"
	}
	return out
}

// QuoteView is the message that is replied to. Without From the reader's browser fills it in, because
// some readers may not see it.
type QuoteView struct {
	Seq        int
	From, Text string
}

// ReactionView is one emoji on a message.
type ReactionView struct {
	Emoji string
	By    []string // handles
	Mine  bool
}

// quick are the reactions in the menu; others are on the message's own page.
var quick = []ReactionView{{Emoji: "👍"}, {Emoji: "❤️"}, {Emoji: "😄"}, {Emoji: "🎉"}, {Emoji: "👀"}, {Emoji: "👎"}}

// Sender is the author of a message.
type Sender struct {
	Ref, Title, Handle string
	Kind               string // person, guest or agent
	Person             bool
	Provenance
}

func (s Sender) name() string { return firstOf(s.Title, s.Handle, s.Ref) }

func (s Sender) kind() string {
	switch {
	case s.Kind == "operator", s.Kind == "" && s.Person:
		return "person"
	case s.Kind == "":
		return "agent"
	}
	return s.Kind
}

// DataPart is structured content, shown as code.
type DataPart struct {
	Label, Code string
}

// FilePart is a file to download. Preview is the address of a small picture of it.
type FilePart struct {
	Name, Href, Size string
	Type             string
	Preview          string
}

// typeName returns the kind of file, in a word.
func (f FilePart) typeName() string {
	t, _, _ := strings.Cut(f.Type, ";")
	if i := strings.LastIndexByte(f.Name, '.'); i > 0 && len(f.Name)-i <= 6 {
		return strings.ToUpper(f.Name[i+1:])
	}
	if _, sub, ok := strings.Cut(t, "/"); ok && len(sub) <= 12 {
		return sub
	}
	return t
}

// typeAndSize returns the line under a file's name.
func (f FilePart) typeAndSize() string {
	switch {
	case f.Size == "":
		return f.typeName()
	case f.typeName() == "":
		return f.Size
	}
	return f.typeName() + ", " + f.Size
}

// TaskView is an answer in progress.
type TaskView struct {
	ID, Agent string // the agent's ref
	Title     string
	State     string // submitted, working, input_required
	Status    string // the agent's own words about its current step
	Text      string // so far
}

func chatHref(id string) string { return "/chat/" + id }

func messageID(seq int) string { return "m" + strconv.Itoa(seq) }

// messageHref returns the page of one message, atHref the conversation around it.
func messageHref(chatID string, seq int) string { return chatHref(chatID) + "/m/" + strconv.Itoa(seq) }

func atHref(chatID string, seq int) string {
	n := strconv.Itoa(seq)
	if chatID == "" { // a page with a single conversation
		return "#m" + n
	}
	return chatHref(chatID) + "?at=" + n + "#m" + n
}

func (m MessageView) pageHref() string { return messageHref(m.ChatID, m.Seq) }

// hasContent reports whether it has content to be answered, copied or reacted to.
func (m MessageView) hasContent() bool { return m.Gone == "" && m.ChatID != "" }

// isAnswer reports whether it is an answer that can be regenerated.
func (m MessageView) isAnswer() bool { return !m.Sender.Person && m.TaskID != "" && m.Newer == 0 }

// elementAttrs returns the optional attributes of its element.
func (m MessageView) elementAttrs() templ.Attributes {
	out := templ.Attributes{}
	if m.TaskID != "" {
		out["data-task"] = m.TaskID
	}
	if m.State != "" {
		out["data-task-state"] = m.State
	}
	if m.Quote != nil {
		out["data-target"] = strconv.Itoa(m.Quote.Seq)
	} else if m.Again > 0 {
		out["data-target"] = strconv.Itoa(m.Again)
	}
	if m.Newer > 0 {
		out["data-newer"] = strconv.Itoa(m.Newer)
	}
	if m.Gone != "" {
		out["data-gone"] = true
	}
	return out
}

func (r ReactionView) title() string {
	if len(r.By) > 12 {
		return strings.Join(r.By[:12], ", ") + " and " + strconv.Itoa(len(r.By)-12) + " more"
	}
	return strings.Join(r.By, ", ")
}

func ariaPressed(is bool) string {
	if is {
		return "true"
	}
	return "false"
}

func markLabel(mark string) string {
	switch mark {
	case "failed":
		return "This did not work."
	case "canceled":
		return "Stopped."
	case "interrupted":
		return "The answer was interrupted."
	case "rejected":
		return "The agent declined."
	case "input_required":
		return "It needs an answer from you."
	case "auth_required":
		return "It needs credentials first."
	default:
		return strings.ReplaceAll(mark, "_", " ")
	}
}

func markIcon(mark string) string {
	switch mark {
	case "canceled":
		return "square"
	case "input_required":
		return "circle-question-mark"
	case "auth_required":
		return "key-round"
	default:
		return "triangle-alert"
	}
}

func taskLabel(state string) string {
	switch state {
	case "submitted":
		return "waiting for its turn"
	case "input_required":
		return "waits for you"
	default:
		return "answering"
	}
}
