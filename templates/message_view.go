package templates

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// MessageView is one message. The same component serves pages, windows and the
// live stream; what depends on who reads is told by class, so that it can be
// set afterwards.
type MessageView struct {
	// HTML is the message as it was rendered before, without what depends on
	// its place or on who reads; what is set below for those is added, and the
	// rest not looked at.
	HTML   SafeHTML
	ID     string
	Seq    int
	Event  string // a quiet line instead of a message: "Ada invited the guide"
	Sender Sender
	Mine   bool // on pages; on the live stream the script finds out
	Time   Time
	Body   SafeHTML
	Data   []DataPart
	Files  []FilePart
	Edited bool
	// Gone says by whom it was taken away: "ada"; nothing else is left of it.
	Gone string
	// Newer is the answer that was given in its place, 0 for none; it is folded.
	Newer int
	// Again is the answer it takes the place of, 0 for none.
	Again     int
	Quote     *QuoteView
	Reactions []ReactionView
	TaskID    string
	State     string // of the task it ends
	Mark      string // "failed", "canceled", "interrupted", "rejected", "input_required"; "" when all went well
	Reason    string // why, one sentence
	Retry     string // the text to send again; "" offers nothing
	ChatID    string // of the conversation
	// What it asks for can be given with a finger, while it is the last one.
	YesNo    bool
	FormHref string // of the form to fill in
	// Of the place it stands at on a page:
	Follows bool // the same speaker goes on: the head is folded
	Target  bool // was asked for by ?at=
	Unread  bool // the first one that the reader has not seen
	Day     *Time
}

// openingClass is what a message begins with.
const openingClass = `<article class="message`

// placed are the classes a rendered message has for its place and its reader;
// an event has none.
func (m MessageView) placed() string {
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

// QuoteView is the message that one answers to. Without From it is filled in
// by the reader's browser, because not everybody may see it.
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

// quick are the reactions at hand; others are on the message's own page.
var quick = []ReactionView{{Emoji: "👍"}, {Emoji: "❤️"}, {Emoji: "😄"}, {Emoji: "🎉"}, {Emoji: "👀"}, {Emoji: "👎"}}

// Sender is who said something.
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

// FilePart is a file to download. Preview is the address of a small picture
// of it.
type FilePart struct {
	Name, Href, Size string
	Type             string
	Preview          string
}

// short is what kind of file it is, in a word.
func (f FilePart) short() string {
	t, _, _ := strings.Cut(f.Type, ";")
	if i := strings.LastIndexByte(f.Name, '.'); i > 0 && len(f.Name)-i <= 6 {
		return strings.ToUpper(f.Name[i+1:])
	}
	if _, sub, ok := strings.Cut(t, "/"); ok && len(sub) <= 12 {
		return sub
	}
	return t
}

// about is what stands under a file's name.
func (f FilePart) about() string {
	switch {
	case f.Size == "":
		return f.short()
	case f.short() == "":
		return f.Size
	}
	return f.short() + ", " + f.Size
}

// TaskView is an answer in the making.
type TaskView struct {
	ID, Agent string // the agent's ref
	Title     string
	State     string // submitted, working, input_required
	Status    string // what it is at, in its own words
	Text      string // so far
}

func chatHref(id string) string { return "/chat/" + id }

func messageID(seq int) string { return "m" + strconv.Itoa(seq) }

// messageHref is the page of one message, atHref the conversation around it.
func messageHref(chatID string, seq int) string { return chatHref(chatID) + "/m/" + strconv.Itoa(seq) }

func atHref(chatID string, seq int) string {
	n := strconv.Itoa(seq)
	if chatID == "" { // a page that shows nothing else
		return "#m" + n
	}
	return chatHref(chatID) + "?at=" + n + "#m" + n
}

func (m MessageView) page() string { return messageHref(m.ChatID, m.Seq) }

// said reports whether there is something to be answered, copied or reacted to.
func (m MessageView) said() bool { return m.Gone == "" && m.ChatID != "" }

// isAnswer reports whether it is an answer that can be asked for again.
func (m MessageView) isAnswer() bool { return !m.Sender.Person && m.TaskID != "" && m.Newer == 0 }

// attrs are those of its element that are not always there.
func (m MessageView) attrs() templ.Attributes {
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

func pressed(is bool) string {
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
		return "The answer broke off."
	case "rejected":
		return "The agent declined."
	case "input_required":
		return "It needs an answer from you."
	case "auth_required":
		return "It wants credentials first."
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
