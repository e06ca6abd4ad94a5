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
	// First and Last are the range of seqs the transcript covers, NewestSeq is
	// where the live stream goes on, ReadSeq how far the reader had read.
	First, Last, NewestSeq, ReadSeq int64
	Begin, End                      bool // nothing before, nothing after
	At                              int64
	Tasks                           []TaskView // in progress
	Disclosures                     []DisclosureView
	Composer                        ComposerView
	Toolboxes                       []Toolbox
	Tool                            *ToolFormView // the tool that was chosen, nil for none
	Examples                        []string      // to start with, shown while nothing has been said
	CanDelete                       bool          // else the reader can only leave
	CanInvite                       bool
	CanWrite                        bool
	Private                         bool
	Past                            string // all or nothing
	Pinned, Archived                bool
	Notify                          string // "", mentions or nothing
	Settings                        string // who speaks when nobody is addressed, in a sentence
	MaxFile                         int64
	BranchedHref                    string // of where it began as a copy
}

// ComposerView is what is being written.
type ComposerView struct {
	ClientID string // fresh, makes the form safe to send twice
	Text     string
	Error    string // what was wrong with it
	Closed   string // why nothing can be written here; "" shows the composer
	Mode     string // "", reply or edit
	Seq      int    // of the message that is answered or changed
	Label    string // "Answering ada"
	Quote    string
	Kept     []KeptFile // files that are here already
	Share    string     // all, own or nothing
}

// KeptFile is a file that was sent before the message that will hold it.
type KeptFile struct {
	FilePart
	Value string // what the form sends back
}

// Member is somebody in a conversation.
type Member struct {
	Ref, Title, Handle string
	Person             bool
	Me                 bool
	Role               string // owner, member or reader
	Remote             string // host that what is written to it goes to
	Provenance
	CanRemove bool
	CanRole   bool
}

// DisclosureView says of an agent whose text leaves this portal where it goes.
type DisclosureView struct {
	Agent string // handle
	Title string
	Host  string
	Share string
	Told  bool // before now
}

// keeps says who has the conversation: an agent whose handle names a portal has
// it there too.
func (x DisclosureView) keeps() string {
	if strings.Contains(x.Agent, "@") {
		return "Both portals keep the conversation."
	}
	return "This portal keeps the conversation."
}

// untold are the disclosures that the reader has yet to be shown.
func (v ConversationView) untold() []DisclosureView {
	var out []DisclosureView
	for _, x := range v.Disclosures {
		if !x.Told {
			out = append(out, x)
		}
	}
	return out
}

// action is where the composer sends to.
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

// shares are what may go along with a message.
func shares(chosen string) []Option {
	out := []Option{
		{Value: "all", Label: "what was said before, by everybody"},
		{Value: "own", Label: "only what was said to and by it"},
		{Value: "nothing", Label: "only this message"},
	}
	for i := range out {
		out[i].Selected = out[i].Value == chosen || chosen == "" && i == 0
	}
	return out
}

// people counts those in it other than the reader and agents.
func (v ConversationView) people() (n int) {
	for _, m := range v.Members {
		if m.Person && !m.Me {
			n++
		}
	}
	return n
}

// standing says who can read the conversation.
func (v ConversationView) standing() string {
	if v.people() == 0 {
		return "Private: nobody but you and the agents in it."
	}
	return "Shared: " + count(v.people()+1, "person", "people") + " can read this."
}

// joiners says what those who join will see.
func (v ConversationView) joiners() string {
	if v.Past == "nothing" {
		return "Who joins sees what is said from then on."
	}
	return "Who joins sees everything that was said."
}

// closed says why nothing can be written here, if so.
func (v ConversationView) closed() string {
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

// shortcut is a key and what it does.
type shortcut struct {
	keys []string
	does string
}

// shortcuts are the keys of the conversation page; its script makes them work.
var shortcuts = []shortcut{
	{[]string{"Enter"}, "send"},
	{[]string{"Shift", "Enter"}, "new line"},
	{[]string{"↑"}, "edit your last message, in an empty field"},
	{[]string{"Esc"}, "leave answering or editing, close what is open"},
	{[]string{"Ctrl", "K"}, "do something by name"},
	{[]string{"Ctrl", "."}, "stop the answers"},
	{[]string{"/"}, "to the message field"},
	{[]string{"J"}, "next message"},
	{[]string{"K"}, "message before"},
	{[]string{"R"}, "answer the message"},
	{[]string{"E"}, "edit it"},
	{[]string{"C"}, "copy its text"},
	{[]string{"L"}, "copy a link to it"},
	{[]string{"+"}, "react to it"},
	{[]string{"M"}, "its menu"},
	{[]string{"N"}, "first unread message"},
	{[]string{"G"}, "newest message"},
	{[]string{"?"}, "this list"},
}
