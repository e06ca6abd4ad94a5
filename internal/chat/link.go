package chat

import "time"

// LinkKind is the purpose of a link; the prefix of its secret shows it.
type LinkKind string

// A JoinLink makes people members; a ReadLink shows its holders the messages up to its creation.
const (
	JoinLink LinkKind = "join"
	ReadLink LinkKind = "read"
)

// Link is a link to a conversation. Only a hash of its secret is stored, so the secret cannot be shown again.
type Link struct {
	ID             string
	ConversationID string
	Kind           LinkKind
	// Role is the role that a JoinLink gives to new members.
	Role string
	// A ReadLink shows the messages with FromSeq < seq <= UpToSeq: those that its creator saw at its creation.
	FromSeq, UpToSeq int64
	Creator          Sender
	// Uses counts the joins. MaxUses limits them; 0 is no limit.
	Uses, MaxUses int
	CreatedAt     time.Time
	ExpiresAt     time.Time
}

// LinkDraft is the input of Service.NewLink.
type LinkDraft struct {
	Kind    LinkKind
	Role    string        // RoleMember or RoleReader; "" is RoleMember
	MaxUses int           // 0: no limit
	Life    time.Duration // 0: DefaultLinkLife
}

// The default and the longest validity of links, and their number.
const (
	DefaultLinkLife = 7 * 24 * time.Hour
	MaxLinkLife     = 365 * 24 * time.Hour
	MaxLinks        = 20 // per conversation
)

// Invitation describes a conversation to the holder of a join link before joining.
type Invitation struct {
	ConversationID string
	Title          string
	Role           string
	Inviter        string
	Members        []Member
	// Past selects the earlier messages that the joiner will see.
	Past Past
	// Member is true if the actor is already a member, so that joining changes nothing.
	Member bool
}

// Shared is the part of a conversation that a read link shows.
type Shared struct {
	ConversationID string
	Title          string
	By             string
	SharedAt       time.Time
	Members        []Member
	Messages       []Message
	// EarlierSeq is the value of before for the previous page, 0 if this is the first page.
	EarlierSeq int64
}
