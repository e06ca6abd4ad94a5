package templates

import (
	"strconv"
	"strings"
)

// ConversationView is one conversation as one of its members sees it.
type ConversationView struct {
	ID, Title string
	Me        string // the reader's own handle, as messages carry it
	MeKind    string // person or guest
	Role      string // owner, member or reader
	Members   []Member
	Messages  []MessageView
	// First and Last are the range of seqs of the transcript, NewestSeq is where the live stream
	// continues, ReadSeq is the last seq that the reader had read.
	First, Last, NewestSeq, ReadSeq int64
	Begin, End                      bool // no messages before, none after
	At                              int64
	Tasks                           []TaskView // in progress
	Disclosures                     []DisclosureView
	Composer                        ComposerView
	Toolboxes                       []Toolbox
	Tool                            *ToolFormView // the chosen tool, nil for none
	Examples                        []string      // first questions, shown while there are no messages
	CanDelete                       bool          // else the reader can only leave
	CanInvite                       bool
	CanWrite                        bool
	Private                         bool
	Past                            string // the messages that new members see: all or nothing
	Pinned, Archived                bool
	Notify                          string // "", mentions or nothing
	Settings                        string // a sentence about the answers to messages without a mention
	MaxFile                         int64
	BranchedHref                    string // the conversation that this one is a copy of
}

// ComposerView is the message being written.
type ComposerView struct {
	ClientID string // new for each form, so that it is safe to send the form twice
	Text     string
	Error    string // the problem with it
	Closed   string // the reason why messages cannot be written here; "" shows the composer
	Mode     string // "", reply or edit
	Seq      int    // of the message that is answered or edited
	Label    string // "Answering ada"
	Quote    string
	Kept     []KeptFile // files that are uploaded already
	Share    string     // all, own or nothing
}

// KeptFile is a file that was uploaded before the message that will hold it.
type KeptFile struct {
	FilePart
	Value string // the value that the form sends back
}

// Member is a person or agent in a conversation.
type Member struct {
	Ref, Title, Handle string
	Person             bool
	Me                 bool
	Role               string // owner, member or reader
	Remote             string // host that messages to it are sent to
	Provenance
	CanRemove bool
	CanRole   bool
}

// DisclosureView names the destination of text for an agent that leaves this portal.
type DisclosureView struct {
	Agent string // handle
	Title string
	Host  string
	Share string
	Told  bool // shown before
}

// storageText names the portals that store the conversation: an agent whose handle names a portal has it
// there too.
func (x DisclosureView) storageText() string {
	if strings.Contains(x.Agent, "@") {
		return "Both portals keep the conversation."
	}
	return "This portal keeps the conversation."
}

// newDisclosures returns the disclosures that the reader has not seen yet.
func (v ConversationView) newDisclosures() []DisclosureView {
	var out []DisclosureView
	for _, x := range v.Disclosures {
		if !x.Told {
			out = append(out, x)
		}
	}
	return out
}

// action returns the address of the composer's form.
func (v ConversationView) action() string {
	if v.Composer.Mode == "edit" {
		return messageHref(v.ID, v.Composer.Seq) + "/edit"
	}
	return chatHref(v.ID)
}

func (c ComposerView) replyTo() string {
	if c.Mode == "reply" {
		return strconv.Itoa(c.Seq)
	}
	return ""
}

// shareOptions are the choices of earlier messages that are sent along.
func shareOptions(chosen string) []Option {
	out := []Option{
		{Value: "all", Label: "all earlier messages"},
		{Value: "own", Label: "only messages to and from it"},
		{Value: "nothing", Label: "only this message"},
	}
	for i := range out {
		out[i].Selected = out[i].Value == chosen || chosen == "" && i == 0
	}
	return out
}

// countPeople counts the members other than the reader and agents.
func (v ConversationView) countPeople() (n int) {
	for _, m := range v.Members {
		if m.Person && !m.Me {
			n++
		}
	}
	return n
}

// privacyText returns a sentence about the people that can read the conversation.
func (v ConversationView) privacyText() string {
	if v.countPeople() == 0 {
		return "Private: only you and the agents in it."
	}
	return "Shared: " + count(v.countPeople()+1, "person", "people") + " can read this."
}

// joinText returns a sentence about the messages that new members see.
func (v ConversationView) joinText() string {
	if v.Past == "nothing" {
		return "New members see new messages only."
	}
	return "New members see all messages."
}

// closedReason returns the reason why messages cannot be written here, if any.
func (v ConversationView) closedReason() string {
	switch {
	case v.Composer.Closed != "":
		return v.Composer.Closed
	case v.Role == "reader":
		return "You can read here and react. The owner of the conversation can let you write."
	}
	return ""
}

func roleLabel(role string) string {
	switch role {
	case "owner":
		return "owner"
	case "reader":
		return "reads"
	}
	return ""
}

// shortcut is a key and its action.
type shortcut struct {
	keys []string
	does string
}

// shortcuts are the keys of the conversation page; its script implements them.
var shortcuts = []shortcut{
	{[]string{"Enter"}, "send"},
	{[]string{"Shift", "Enter"}, "new line"},
	{[]string{"↑"}, "edit your last message, in an empty field"},
	{[]string{"Esc"}, "cancel a reply or an edit, close open dialogs"},
	{[]string{"Ctrl", "K"}, "run a command"},
	{[]string{"Ctrl", "."}, "stop the answers"},
	{[]string{"/"}, "to the message field"},
	{[]string{"J"}, "next message"},
	{[]string{"K"}, "message before"},
	{[]string{"R"}, "reply to the message"},
	{[]string{"E"}, "edit it"},
	{[]string{"C"}, "copy its text"},
	{[]string{"L"}, "copy a link to it"},
	{[]string{"+"}, "react to it"},
	{[]string{"M"}, "its menu"},
	{[]string{"N"}, "first unread message"},
	{[]string{"G"}, "newest message"},
	{[]string{"?"}, "this list"},
}
