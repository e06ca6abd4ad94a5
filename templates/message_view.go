package templates

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// MessageView is one message. The same component renders it for pages, embedded windows and the
// live stream. The rendering is cached for all readers, so the parts that depend on the reader are
// classes that are added afterwards.
type MessageView struct {
	// HTML is the cached rendering, without the parts that depend on the message's place or the
	// reader. Those are added from the fields below; the other fields are then ignored. "" renders
	// the message.
	HTML    SafeHTML
	ID      string
	Seq     int
	Event   string // text of an event line in place of a message: "Ada invited the guide"
	AsideID string // conversation with the question that an event is about; only its owner may open it
	Sender  Sender
	Mine    bool // the reader wrote it; on the live stream the script decides this
	Time    Time
	Body    SafeHTML
	// Thoughts are those of the model that wrote the message, shown folded.
	Thoughts SafeHTML
	// Claim is the cost of the answer, as its server states it; "" for no statement.
	Claim string
	Data  []DataPart
	Files []FilePart
	// Written are the files that the agent wrote into the reader's library in the task. Filed says that the message has
	// files, which readers with a library may keep, so the page's script fetches it again for them.
	Written []WrittenRow
	Filed   bool
	Edited  bool
	// Gone is the handle of the member that deleted the message, such as "ada"; "" if it was not
	// deleted. A deleted message has no content.
	Gone string
	// Newer is the seq of the regenerated answer that replaced this one, 0 for none. A replaced
	// answer is collapsed.
	Newer int
	// Version says which of Versions answers to the same question this is, 0 for an only one; Earlier and Later are
	// the seqs of the answers beside it, 0 for none.
	Version, Versions int
	Earlier, Later    int
	// Folded collapses the message, because the reader blocked its sender.
	Folded bool
	// Again is the seq of the answer that this one replaced, 0 for none.
	Again     int
	Quote     *QuoteView
	Reactions []ReactionView
	TaskID    string
	State     string // state of the task that the message ends
	Mark      string // "failed", "canceled", "interrupted", "rejected", "busy", "input_required"; "" for success
	Reason    string // why the task did not succeed, one sentence
	ChatID    string // id of the conversation, "" if the message has no page of its own
	// YesNo shows buttons to answer the agent's question, while the message is the last one.
	YesNo    bool
	Standing []string // further buttons: answers for all later questions of the kind
	FormHref string   // address of the form that the agent asks to fill in
	// The fields from here depend on the place of the message on the page.
	Follows bool // same sender as the message before, so the heading is left out
	Target  bool // the page was opened at this message with ?at=
	Unread  bool // first unread message, below a line that says so
	Day     *Time
}

// openingClass is the beginning of each rendered message, where placeClasses are inserted.
const openingClass = `<article class="message`

// placeClasses returns the CSS classes that a cached rendering lacks for the message's place
// and reader; "" for an event line, which has none.
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

// WrittenRow is a version of a file that an agent wrote into the reader's library. Undo is true while it is the newest
// version.
type WrittenRow struct {
	Path    string
	Version int
	Undo    bool
}

// QuoteView is the message that a reply quotes. From is empty in the live stream, because not all
// readers may see the quoted message; each browser fills it in.
type QuoteView struct {
	Seq        int
	From, Text string
}

// ReactionView is one emoji on a message and the members that chose it.
type ReactionView struct {
	Emoji string
	By    []string // handles of the members
	Mine  bool
}

// quick are the reactions in the menu of a message. The message's own page takes any emoji.
var quick = []ReactionView{{Emoji: "👍"}, {Emoji: "❤️"}, {Emoji: "😄"}, {Emoji: "🎉"}, {Emoji: "👀"}, {Emoji: "👎"}}

// Sender is the author of a message, as pages show it.
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

// DataPart is structured content of a message, shown as code.
type DataPart struct {
	Label, Code string
}

// FilePart is a file of a message, to download. Preview is the address of a small picture of it, ""
// for none.
type FilePart struct {
	Name, Href, Size string
	Type             string
	Preview          string
	// Keep is the hash by which the reader may keep the file in the own library, "" for no button.
	Keep string
}

// typeName returns the type of the file in one word: the suffix of its name or the subtype of its
// media type.
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

// typeAndSize returns the line below a file's name. Either part may be unknown.
func (f FilePart) typeAndSize() string {
	switch {
	case f.Size == "":
		return f.typeName()
	case f.typeName() == "":
		return f.Size
	}
	return f.typeName() + ", " + f.Size
}

// TaskView is an answer that an agent is still writing.
type TaskView struct {
	ID, Agent string // Agent is the agent's ref, as in AgentCard
	Title     string
	State     string   // submitted, working, input_required
	Turn      string   // when a submitted one is about to start, "" if that is not known
	Status    string   // the agent's description of its current step
	Finished  SafeHTML // blocks of the answer that are finished
	Done      int      // bytes of the answer that Finished renders
	Text      string   // the answer behind them
}

func chatHref(id string) string { return "/chat/" + id }

func messageID(seq int) string { return "m" + strconv.Itoa(seq) }

// messageHref returns the address of the page of one message. atHref returns the address of the
// conversation's page at that message.
func messageHref(chatID string, seq int) string { return chatHref(chatID) + "/m/" + strconv.Itoa(seq) }

func atHref(chatID string, seq int) string {
	n := strconv.Itoa(seq)
	if chatID == "" { // an embedded page, which has only one conversation
		return "#m" + n
	}
	return chatHref(chatID) + "?at=" + n + "#m" + n
}

// doneHref returns the address of a page with a confirmation of what was done.
func doneHref(href, done string) string {
	href, fragment, _ := strings.Cut(href, "#")
	sep := "?"
	if strings.Contains(href, "?") {
		sep = "&"
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	return href + sep + "done=" + done + fragment
}

// backHref returns the page to which the forms of a message return.
func (m MessageView) backHref() string { return atHref(m.ChatID, m.Seq) }

func (m MessageView) pageHref() string { return messageHref(m.ChatID, m.Seq) }

// hasContent reports whether the message can be answered, copied and reacted to.
func (m MessageView) hasContent() bool { return m.Gone == "" && m.ChatID != "" }

// canRetry reports whether the agent can be asked for the answer again because it has none, or a part of one. A
// replaced answer has no button: the newest one has it.
func (m MessageView) canRetry() bool {
	switch m.Mark {
	case "failed", "interrupted", "canceled", "rejected", "busy":
		return m.hasContent() && m.isAnswer()
	}
	return false
}

// canContinue reports whether the agent can be asked to go on from the part of an answer.
func (m MessageView) canContinue() bool {
	return (m.Mark == "interrupted" || m.Mark == "canceled") && m.canRetry() && m.Body != ""
}

// isAnswer reports whether the message is an answer that can be regenerated: the newest version of
// an agent's answer to a task.
func (m MessageView) isAnswer() bool { return !m.Sender.Person && m.TaskID != "" && m.Newer == 0 }

// elementAttrs returns the data attributes of the message's element that are set. The page's script
// reads them.
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
	if m.Filed {
		out["data-filed"] = true
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
	case "busy":
		return "Not asked."
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
	case "busy":
		return "info"
	case "input_required":
		return "circle-question-mark"
	case "auth_required":
		return "key-round"
	default:
		return "triangle-alert"
	}
}

func taskLabel(state, turn string) string {
	switch state {
	case "submitted":
		if turn != "" {
			return "waiting for its turn, " + turn
		}
		return "waiting for its turn"
	case "input_required":
		return "waits for you"
	default:
		return "answering"
	}
}
