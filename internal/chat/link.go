package chat

import "time"

// LinkKind is the purpose of a link to a conversation.
type LinkKind string

// JoinLink admits people; ReadLink shows its holders the messages up to the moment of its
// creation.
const (
	JoinLink LinkKind = "join"
	ReadLink LinkKind = "read"
)

// Link is a link to a conversation. Its secret is known only to those it was
// given to: the portal keeps a hash.
type Link struct {
	ID             string
	ConversationID string
	Kind           LinkKind
	// Role is the role of members who join by it.
	Role string
	// A ReadLink shows the messages after FromSeq, up to UpToSeq: those that its creator saw when
	// they made it.
	FromSeq, UpToSeq int64
	Creator          Sender
	// Uses counts the joins, MaxUses bounds them unless 0.
	Uses, MaxUses int
	CreatedAt     time.Time
	ExpiresAt     time.Time
}

// LinkDraft is a request for a link.
type LinkDraft struct {
	Kind    LinkKind
	Role    string        // RoleMember or RoleReader; "" is RoleMember
	MaxUses int           // 0: no bound
	Life    time.Duration // 0: DefaultLinkLife
}

// How long links live.
const (
	DefaultLinkLife = 7 * 24 * time.Hour
	MaxLinkLife     = 365 * 24 * time.Hour
	MaxLinks        = 20 // of one conversation
)

// Invitation describes the conversation of a join link, for its holders before they join.
type Invitation struct {
	ConversationID string
	Title          string
	Role           string
	Inviter        string
	Members        []Member
	// Past selects the earlier messages that the joiner will see.
	Past Past
	// Member is true if the actor is a member already.
	Member bool
}

// Shared is the view of a read link.
type Shared struct {
	ConversationID string
	Title          string
	By             string
	SharedAt       time.Time
	Members        []Member
	Messages       []Message
	// EarlierSeq is the point before which the previous page ends, 0 at the
	// beginning.
	EarlierSeq int64
}
