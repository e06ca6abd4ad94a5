// Package chat holds conversations: people and agents in one room, a transcript whose messages carry a dense seq and
// a hash chain, and live readers that lose nothing. It decides on read and write access and on the addressees of a
// message; it knows nothing of SQL, sockets or the way an agent answers.
package chat

import (
	"time"

	"agentsite/internal/task"
)

// Limits on sent content, in bytes unless the name says otherwise. Content beyond a limit is refused;
// stored text is never cut silently.
const (
	MaxTextBytes      = 64 << 10 // one message of an account
	MaxGuestTextBytes = 16 << 10 // one message of a guest
	MaxParts          = 32
	MaxTitleRunes     = 120
	MaxMembers        = 50
	MaxClientID       = 200
	MaxEmojiBytes     = 32
	MaxReactions      = 20        // different emoji on one message
	MaxAnswerBytes    = 256 << 10 // one message of an agent
)

// Kind is the kind of a transcript entry.
type Kind string

// Text is a message with content. Event is a line about the conversation (joined, left, renamed, a task
// that ended without an answer). The other kinds change how the message in Target is shown and are not
// shown themselves: Edit holds its new parts, Unsaid deletes it, React sets or removes an emoji.
const (
	Text   Kind = "text"
	Event  Kind = "event"
	Edit   Kind = "edit"
	Unsaid Kind = "unsaid"
	React  Kind = "react"
)

// Amends reports whether entries of the kind only change how another message is shown.
func (k Kind) Amends() bool { return k == Edit || k == Unsaid || k == React }

// Sender is the author of a message, with the handle at the time of writing.
type Sender struct {
	Kind   string // person, guest, agent or system
	ID     string
	Handle string
}

// Message is one entry of a transcript. Later entries amend it; only a deletion removes its content.
type Message struct {
	ConversationID string
	Seq            int64
	ID             string
	ClientID       string
	Sender         Sender
	Kind           Kind
	Parts          []task.Part
	// TaskID is the task that this message asks for (message of a caller) or answers (message of an
	// agent). TaskState is the final state of an answered task, empty otherwise.
	TaskID    string
	TaskState task.State
	// Reason explains a TaskState other than completed, for readers.
	Reason string
	// Target is the seq of another message, 0 for none: for a Text of a person the quoted message, for a
	// regenerated answer the answer that it replaces, for an amendment the amended message.
	Target    int64
	CreatedAt time.Time
	// Hash is the hash of this entry and all before it, see transcript.Chain.
	Hash []byte
	// Now is the state of the message after later edits, reactions, deletion and regeneration. The store
	// fills it in on reading, together with the present Parts; the hash chain does not cover it.
	Now Now
}

// Now is the state of a message after the later events about it.
type Now struct {
	// EditSeq is the seq of the newest edit, which holds the present parts, 0 if the message was never
	// edited; EditedAt is the time of that edit.
	EditSeq  int64
	EditedAt time.Time
	// UnsaidAt is the time of the deletion, zero if the message is not deleted, and By is the actor who
	// deleted it. A deleted message has no parts.
	UnsaidAt time.Time
	UnsaidBy string
	// NewerSeq is the seq of the regenerated answer that replaces this one, 0 for none.
	NewerSeq  int64
	Reactions []Reaction
}

// Reaction is one emoji on a message and the members that set it.
type Reaction struct {
	Emoji string
	By    []Reactor
}

// Reactor is a member that set a reaction, with the handle at present.
type Reactor struct{ Kind, ID, Handle string }

// Conversation is one conversation as the asking member sees it.
type Conversation struct {
	ID        string
	Title     string
	CreatedAt time.Time
	UpdatedAt time.Time
	// LastSeq is the seq of the newest message, 0 while there is none.
	LastSeq int64
	Members []Member
	// Invited are people who have not answered their invitation: no members, with InviterID set.
	Invited  []Member
	Settings Settings
	// BranchedFrom and BranchedSeq name the conversation and message that this one was copied up to.
	BranchedFrom string
	BranchedSeq  int64
	// Mine holds the personal settings of the asking member for this conversation.
	Mine Mine
	// ReadSeq is the seq of the last message that the asking member has read.
	ReadSeq int64
	// Unread is how many texts of others the asking member has not read, at most MaxUnread; only set in lists.
	Unread int
	// Snippet is the beginning of the last text; only set in lists.
	Snippet string
}

// MaxUnread is the greatest value of Conversation.Unread: counting stops there, because the exact number
// of many unread messages is not shown.
const MaxUnread = 100

// Settings are the settings of a conversation, chosen by its owners.
type Settings struct {
	// Speaks selects the agent that answers a message without an addressee.
	Speaks Speaks
	// SpeakerID is the id of the chosen agent if Speaks is SpeaksAgent.
	SpeakerID string
	// Past selects the earlier messages that new members see.
	Past Past
	// Hops, Turns and Budget limit the work of agents for one message of a person: the length of a chain
	// of mentions, the number of answers, and the total bytes of the answers.
	Hops, Turns, Budget int
}

// Speaks is the rule for messages without an addressee.
type Speaks string

// SpeaksAlone, the default, lets an agent answer if it is the only agent in the conversation; SpeaksNobody lets none
// answer; SpeaksAgent selects Settings.SpeakerID; SpeaksTurns selects the agents in rotation.
const (
	SpeaksAlone  Speaks = "alone"
	SpeaksNobody Speaks = "nobody"
	SpeaksAgent  Speaks = "agent"
	SpeaksTurns  Speaks = "turns"
)

// Past selects the messages from before joining that a new member sees.
type Past string

// PastAll shows all earlier messages, PastNothing only those after joining.
const (
	PastAll     Past = "all"
	PastNothing Past = "nothing"
)

// DefaultSettings are the settings of a new conversation; MaxSettings are the greatest allowed values.
var (
	DefaultSettings = Settings{Speaks: SpeaksAlone, Past: PastAll, Hops: 3, Turns: 8, Budget: 256 << 10}
	MaxSettings     = Settings{Hops: 10, Turns: 50, Budget: 2 << 20}
)

// Mine holds the personal settings of one member for a conversation.
type Mine struct {
	Role     string
	FromSeq  int64 // The member sees only messages with a greater seq.
	Pinned   bool
	Archived bool
	Notify   Notify
}

// Notify selects the messages of which a member gets notifications.
type Notify string

// NotifyAll selects every text, NotifyMentions only texts that mention the member.
const (
	NotifyAll      Notify = ""
	NotifyMentions Notify = "mentions"
	NotifyNothing  Notify = "nothing"
)

// The roles of members. A reader may read and react, but not post.
const (
	RoleOwner  = "owner"
	RoleMember = "member"
	RoleReader = "reader"
)

// Member is a person or agent in a conversation. The row stays after the member left, so that
// transcripts can name the author.
type Member struct {
	Kind   string // person, guest or agent
	ID     string
	Handle string
	Role   string // RoleOwner, RoleMember or RoleReader; agents have RoleMember
	// FromSeq: the member sees only messages with a greater seq.
	FromSeq int64
	ReadSeq int64
	// Remote is the host that receives the text for an agent outside this portal; empty for local agents
	// and for people.
	Remote string
	// InviterID is the id of the inviter of a person who is invited and no member yet; "" for members.
	InviterID string
}

// Private reports whether the conversation has one person only, besides agents, and no invitation.
func (c Conversation) Private() bool {
	return len(c.Invited)+len(c.Members)-len(c.Agents()) < 2
}

// Agents returns the members that are agents, in the order of Members.
func (c Conversation) Agents() []Member {
	var out []Member
	for _, m := range c.Members {
		if m.Kind == "agent" {
			out = append(out, m)
		}
	}
	return out
}
