package templates

import (
	"slices"
	"strconv"
	"strings"
)

// ConversationView is the page of one conversation, as one of its members sees it.
type ConversationView struct {
	ID, Title string
	// Blocked are the handles of the people that the reader blocked, separated by spaces: the script collapses
	// their messages that arrive while the page is open.
	Blocked  string
	Me       string // handle of the reader, as in Sender.Handle, to find the reader's own messages
	MeKind   string // person or guest
	Role     string // owner, member or reader
	Members  []Member
	Messages []MessageView
	Beside   ChatsBeside
	// First and Last are the seqs of the first and last message shown, NewestSeq is the seq after
	// which the live stream continues, and ReadSeq is the last seq that the reader has read.
	First, Last, NewestSeq, ReadSeq int64
	Begin, End                      bool // nothing before the first message shown, nothing after the last
	At                              int64
	Tasks                           []TaskView // answers in progress
	LastAnswer                      LastAnswer
	Disclosures                     []DisclosureView
	Composer                        ComposerView
	Toolboxes                       []Toolbox
	Tool                            *ToolFormView // form of the chosen tool, nil for none
	Examples                        []string      // suggested first questions, shown while there are no messages
	CanDelete                       bool          // false: the reader can leave but not delete it
	CanInvite                       bool
	CanWrite                        bool
	Private                         bool
	Past                            string // earlier messages that new members see: all or nothing
	Pinned, Archived                bool
	Notify                          string     // notifications for all messages (""), for mentions, or for nothing
	Grants                          []GrantRow // of the reader, in this conversation only
	Speaker                         string     // handle of the agent chosen to answer messages without a mention
	Settings                        string     // sentence on which agent answers messages without a mention
	MaxFile                         int64
	BranchedHref                    string // address of the conversation that this one was copied from
}

// ComposerView is the form for a new message, a reply or an edit.
type ComposerView struct {
	ClientID string // random id that makes sending the form twice harmless
	Text     string
	Error    string // problem with the text that was sent
	Closed   string // why no message can be written here; "" shows the form
	Mode     string // "", reply or edit
	Seq      int    // seq of the message that is answered or edited
	Asks     bool   // the edited message asked an agent
	Label    string // heading of a reply, "Answering ada"
	Quote    string
	Kept     []KeptFile // files that were uploaded before
	Share    string     // earlier messages that an agent gets: all, own or nothing
}

// KeptFile is an uploaded file that is not part of a message yet.
type KeptFile struct {
	FilePart
	Value string // value of the form field that attaches it
}

// Member is a person or agent in a conversation.
type Member struct {
	Ref, Title, Handle string
	Person             bool
	Me                 bool
	Role               string // owner, member or reader
	Remote             string // host outside this portal that receives text for this member, "" for none
	Provenance
	CanRemove bool
	CanRole   bool
	Invited   bool // has not accepted yet and sees nothing; CanRemove withdraws the invitation
}

// DisclosureView informs the reader which host receives the text for an agent outside this portal.
type DisclosureView struct {
	Agent string // handle of the agent
	Title string
	Host  string
	Share string
	Told  bool // the reader has confirmed it before
}

// storageText returns a sentence on which portals store the conversation. An agent of another
// portal has a handle with a host, and that portal stores it too.
func (x DisclosureView) storageText() string {
	if strings.Contains(x.Agent, "@") {
		return "Both portals keep the conversation."
	}
	return "This portal keeps the conversation."
}

// newDisclosures returns the disclosures that the reader has not confirmed yet.
func (v ConversationView) newDisclosures() []DisclosureView {
	var out []DisclosureView
	for _, x := range v.Disclosures {
		if !x.Told {
			out = append(out, x)
		}
	}
	return out
}

// action returns the address that the composer's form posts to.
func (v ConversationView) action() string {
	if v.Composer.Mode == "edit" && v.Composer.Asks {
		return messageHref(v.ID, v.Composer.Seq) + "/ask"
	}
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

// shareOptions returns the options of the field that chooses which earlier messages an agent gets with a
// message. The option with the value chosen is selected; the first one if chosen is empty.
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

// countPeople returns the number of people besides the reader; agents do not count.
func (v ConversationView) countPeople() (n int) {
	for _, m := range v.Members {
		if m.Person && !m.Me && !m.Invited {
			n++
		}
	}
	return n
}

// privacyText returns a sentence on the people that can read the conversation.
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

// closedReason returns the sentence to show in place of the composer, "" if the reader may write.
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

// shortcut is a combination of keys and its effect, for the list of shortcuts.
type shortcut struct {
	keys []string
	does string
}

// shortcuts lists the keys of the conversation page. The script chat-keys.js implements them, so
// both must agree.
var shortcuts = []shortcut{
	{[]string{"Enter"}, "send"},
	{[]string{"Shift", "Enter"}, "new line"},
	{[]string{"↑"}, "edit your last message, in an empty field"},
	{[]string{"Esc"}, "cancel a reply or an edit, close dialogs, leave the message field"},
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

// answeringAgent returns the agent that answers a message without a mention: the chosen one, or the only one.
func (v ConversationView) answeringAgent() (now Member) {
	agents := 0
	for _, m := range v.Members {
		if m.Person {
			continue
		}
		if v.Speaker == m.Ref {
			return m
		}
		agents++
		now = m
	}
	if agents != 1 {
		return Member{}
	}
	return now
}

// otherAgents returns the agents of the conversation besides the one that answers.
func (v ConversationView) otherAgents() []Member {
	now := v.answeringAgent()
	return slices.DeleteFunc(slices.Clone(v.Members), func(m Member) bool { return m.Person || m.Ref == now.Ref })
}
