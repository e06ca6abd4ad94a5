// Package chat is conversations: people and agents in one room, a transcript
// whose messages carry a dense seq and a hash chain, and live readers that
// lose nothing. It decides who may read and write, and whom a message
// addresses; it knows nothing of SQL, sockets or how an agent answers.
package chat

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"agentsite/internal/task"
)

// Bounds of what somebody may send. Stored text is never cut silently.
const (
	MaxTextBytes      = 64 << 10 // one message of an account
	MaxGuestTextBytes = 16 << 10 // one message of a guest
	MaxParts          = 32
	MaxTitleRunes     = 120
	MaxMembers        = 50
	MaxClientID       = 200
	MaxAnswerBytes    = 256 << 10 // one message of an agent
)

// Kind says what a message is.
type Kind string

// Text is something said; Event is a quiet line about the room (joined, left,
// renamed, a task that ended without an answer).
const (
	Text  Kind = "text"
	Event Kind = "event"
)

// Sender is who said a message, as recorded when it was said.
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
	// TaskID is the task this message asks for (said by a caller) or answers
	// (said by an agent). TaskState is how an answered task ended.
	TaskID    string
	TaskState task.State
	// Reason says why TaskState is not completed.
	Reason    string
	CreatedAt time.Time
	// Hash chains the transcript: see Chain.
	Hash []byte
}

// Conversation is one room.
type Conversation struct {
	ID        string
	Title     string
	CreatedAt time.Time
	UpdatedAt time.Time
	// LastSeq is the seq of the newest message, 0 while there is none.
	LastSeq int64
	Members []Member
	// ReadSeq is how far the asking member has read; only set in lists.
	ReadSeq int64
	// Snippet is the beginning of the last message; only set in lists.
	Snippet string
}

// Member is somebody in a room. A member who left keeps the row.
type Member struct {
	Kind   string // person, guest, agent
	ID     string
	Handle string
	Role   string // owner, member
	// Remote is set for agents whose text leaves this portal, with the host
	// it goes to.
	Remote string
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

// ChainEntry is what the hash chain covers of one message. Body is hashed on
// its own so that a later removal of the text leaves the chain verifiable.
type ChainEntry struct {
	Seq        int64
	ID         string
	SenderKind string
	SenderID   string
	// SenderHandle is who readers are told spoke.
	SenderHandle string
	Kind         string
	TaskID       string
	TaskState    string
	Reason       string
	CreatedAt    int64 // ms
	Body         []byte
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
	body := sha256.Sum256(e.Body)
	h.Write([]byte("agentsite/transcript/1"))
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
	h.Write(body[:])
	return h.Sum(nil)
}
