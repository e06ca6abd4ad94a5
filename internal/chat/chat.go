// Package chat holds conversations: people and agents in one room, a transcript whose messages
// carry a dense seq and a hash chain, and live readers that lose nothing. It decides on read and
// write access and on the addressees of a message; it knows nothing of SQL, sockets or the way an
// agent answers.
package chat

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"agentsite/internal/task"
)

// Bounds of sent content. Stored text is never cut silently.
const (
	MaxTextBytes      = 64 << 10 // one message of an account
	MaxGuestTextBytes = 16 << 10 // one message of a guest
	MaxParts          = 32
	MaxTitleRunes     = 120
	MaxMembers        = 50
	MaxClientID       = 200
	MaxEmojiBytes     = 32
	MaxReactions      = 20        // different ones on one message
	MaxAnswerBytes    = 256 << 10 // one message of an agent
)

// Kind is the kind of a message.
type Kind string

// Text is a message with content; Event is a line about the room (joined, left, renamed, a task
// that ended without an answer). The others change how the message they target is shown and are no
// lines of their own: Edit holds its new parts, Unsaid deletes it, React sets or removes an emoji.
const (
	Text   Kind = "text"
	Event  Kind = "event"
	Edit   Kind = "edit"
	Unsaid Kind = "unsaid"
	React  Kind = "react"
)

// Amends reports whether messages of the kind are about another one only.
func (k Kind) Amends() bool { return k == Edit || k == Unsaid || k == React }

// Sender is the author of a message, as recorded at that time.
type Sender struct {
	Kind   string // person, operator, guest, agent, system
	ID     string
	Handle string
}

// Message is one entry of a transcript.
type Message struct {
	ConversationID string
	Seq            int64
	ID             string
	ClientID       string
	Sender         Sender
	Kind           Kind
	Parts          []task.Part
	// TaskID is the task that this message asks for (of a caller) or answers (of an agent).
	// TaskState is the final state of an answered task.
	TaskID    string
	TaskState task.State
	// Reason explains a TaskState other than completed.
	Reason string
	// Target is the seq of the message this one is about, 0 for none: of a
	// Text of a person the one it quotes, of an answer that was asked for
	// again the one it takes the place of.
	Target    int64
	CreatedAt time.Time
	// Hash chains the transcript: see Chain.
	Hash []byte
	// Now is the present state of the message. Messages are read with it and with their present
	// parts; the hash chain does not cover it.
	Now Now
}

// Now is the present state of a message.
type Now struct {
	// EditSeq is the message that holds its present parts, 0 for its first parts; EditedAt is the
	// time of that edit.
	EditSeq  int64
	EditedAt time.Time
	// UnsaidAt is the time of the deletion and By its actor; the parts of a deleted message are
	// empty.
	UnsaidAt time.Time
	UnsaidBy string
	// NewerSeq is the answer that was given in its place, 0 for none.
	NewerSeq  int64
	Reactions []Reaction
}

// Reaction is one emoji on a message and the members that set it.
type Reaction struct {
	Emoji string
	By    []Reactor
}

// Reactor is a member that set a reaction.
type Reactor struct{ Kind, ID, Handle string }

// Conversation is one room.
type Conversation struct {
	ID        string
	Title     string
	CreatedAt time.Time
	UpdatedAt time.Time
	// LastSeq is the seq of the newest message, 0 while there is none.
	LastSeq  int64
	Members  []Member
	Settings Settings
	// BranchedFrom and BranchedSeq name the conversation and message that this one was copied up
	// to.
	BranchedFrom string
	BranchedSeq  int64
	// Mine holds the personal settings of the asking member.
	Mine Mine
	// ReadSeq is how far the asking member has read.
	ReadSeq int64
	// Unread is how many texts of others the asking member has not read, at
	// most MaxUnread; only set in lists.
	Unread int
	// Snippet is the beginning of the last text; only set in lists.
	Snippet string
}

// MaxUnread is where counting ends.
const MaxUnread = 100

// Settings are the room settings, chosen by its owner.
type Settings struct {
	// Speaks selects the agent that answers a message without an addressee.
	Speaks Speaks
	// SpeakerID is the agent of SpeaksAgent.
	SpeakerID string
	// Past selects the earlier messages that new members see.
	Past Past
	// Hops, Turns and Budget bound the work of agents for one message of a person: the length of a
	// chain of mentions, the number of answers in all, and their bytes.
	Hops, Turns, Budget int
}

// Speaks is the rule for messages without an addressee.
type Speaks string

// SpeaksAlone lets the agent answer if it is the only one, which is where
// rooms begin; SpeaksNobody none; SpeaksAgent the chosen one; SpeaksTurns one
// after the other.
const (
	SpeaksAlone  Speaks = "alone"
	SpeaksNobody Speaks = "nobody"
	SpeaksAgent  Speaks = "agent"
	SpeaksTurns  Speaks = "turns"
)

// Past is a rule for the earlier messages that a new member sees.
type Past string

// PastAll shows all messages, PastNothing only those after joining.
const (
	PastAll     Past = "all"
	PastNothing Past = "nothing"
)

// DefaultSettings are those of a new room, Limits the greatest there are.
var (
	DefaultSettings = Settings{Speaks: SpeaksAlone, Past: PastAll, Hops: 3, Turns: 8, Budget: 256 << 10}
	MaxSettings     = Settings{Hops: 10, Turns: 50, Budget: 2 << 20}
)

// Mine holds the personal settings of one member for a conversation.
type Mine struct {
	Role     string
	FromSeq  int64 // sees only messages after it
	Pinned   bool
	Archived bool
	Notify   Notify
}

// Notify selects the messages that a member is notified of.
type Notify string

// NotifyAll is of every text, NotifyMentions of those that name them.
const (
	NotifyAll      Notify = ""
	NotifyMentions Notify = "mentions"
	NotifyNothing  Notify = "nothing"
)

// The roles of members. A Reader may read and react, but not post.
const (
	RoleOwner  = "owner"
	RoleMember = "member"
	RoleReader = "reader"
)

// Member is a person or agent in a room. The row stays when the member leaves.
type Member struct {
	Kind   string // person, guest, agent
	ID     string
	Handle string
	Role   string // see RoleOwner; agents are members
	// FromSeq is the message after which they see the conversation.
	FromSeq int64
	ReadSeq int64
	// Remote is set for agents that receive text outside this portal, with the receiving host.
	Remote string
}

// Private reports whether the conversation has one person only, besides agents.
func (c Conversation) Private() bool {
	n := 0
	for _, m := range c.Members {
		if m.Kind != "agent" {
			n++
		}
	}
	return n < 2
}

// Agents returns the members that are agents.
func (c Conversation) Agents() []Member {
	var out []Member
	for _, m := range c.Members {
		if m.Kind == "agent" {
			out = append(out, m)
		}
	}
	return out
}

// ChainEntry holds the fields of one message that the hash chain covers. Body is hashed on its own
// so that a later removal of the text leaves the chain verifiable.
type ChainEntry struct {
	Seq        int64
	ID         string
	SenderKind string
	SenderID   string
	// SenderHandle is the author's handle as readers see it.
	SenderHandle string
	Kind         string
	TaskID       string
	TaskState    string
	Reason       string
	Target       int64
	CreatedAt    int64 // ms
	// Body, or its SHA-256 once the body was taken away.
	Body     []byte
	BodyHash []byte
}

// Chain returns the hash of an entry that follows prev (nil for the first).
// Every field is length-prefixed, so no two entries share an encoding.
func Chain(prev []byte, e ChainEntry) []byte {
	h := sha256.New()
	field := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	num := func(v int64) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(v))
		h.Write(n[:])
	}
	body := e.BodyHash
	if body == nil {
		sum := sha256.Sum256(e.Body)
		body = sum[:]
	}
	if e.Target == 0 {
		h.Write([]byte("agentsite/transcript/1"))
	} else { // the first release had no targets
		h.Write([]byte("agentsite/transcript/2"))
		num(e.Target)
	}
	field(prev)
	num(e.Seq)
	field([]byte(e.ID))
	field([]byte(e.SenderKind))
	field([]byte(e.SenderID))
	field([]byte(e.SenderHandle))
	field([]byte(e.Kind))
	field([]byte(e.TaskID))
	field([]byte(e.TaskState))
	field([]byte(e.Reason))
	num(e.CreatedAt)
	h.Write(body)
	return h.Sum(nil)
}
