package chat

import "time"

// LinkKind says what a link to a conversation is for.
type LinkKind string

// JoinLink lets people in; ReadLink shows whoever has it what was said up to
// the moment it was made.
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
	// Role is what those who join get.
	Role string
	// A ReadLink shows the messages after FromSeq, up to UpToSeq: what its
	// creator saw when they made it.
	FromSeq, UpToSeq int64
	Creator          Sender
	// Uses counts who joined, MaxUses bounds them unless 0.
	Uses, MaxUses int
	CreatedAt     time.Time
	ExpiresAt     time.Time
}

// LinkDraft is a link somebody wants.
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

// Invitation is what a join link leads to, for whoever looks before joining.
type Invitation struct {
	ConversationID string
	Title          string
	Role           string
	Inviter        string
	Members        []Member
	// Past says what the joiner will see of before.
	Past Past
	// Member is true when the one who asks is in it already.
	Member bool
}

// Shared is what a read link shows.
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
