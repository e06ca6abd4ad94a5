package chat

import (
	"context"
	"time"

	"agentsite/internal/task"
)

// Rooms stores conversations and who is in them. Absent and not-a-member look
// alike: NotFound.
type Rooms interface {
	// CreateConversation stores the room, its members and its first events.
	CreateConversation(ctx context.Context, c Conversation, events []Message) error
	// Room returns a conversation the member (kind, id) is in now.
	Room(ctx context.Context, id, memberKind, memberID string) (Conversation, error)
	// Members lists who is in a conversation now, without Remote; nobody for
	// one that does not exist. The caller must not change the list.
	Members(ctx context.Context, id string) ([]Member, error)
	// RoomsOf lists a member's conversations, most recently changed first,
	// before the given point; with unread count by ReadSeq.
	RoomsOf(ctx context.Context, memberKind, memberID string, before Point, limit int) ([]Conversation, error)
	// Rename sets the title; Leave marks a member as gone. Both append the
	// event to the transcript in the same transaction.
	Rename(ctx context.Context, id, title string, event Message) (Message, error)
	Join(ctx context.Context, id string, m Member, event Message) (Message, error)
	Leave(ctx context.Context, id, memberKind, memberID string, at time.Time, event Message) (Message, error)
	// DeleteRoom removes a conversation with its messages and tasks.
	DeleteRoom(ctx context.Context, id string) error
	// MarkRead notes how far a member has read; it never goes back.
	MarkRead(ctx context.Context, id, memberKind, memberID string, seq int64) error
}

// Point is a place in a list ordered by time and id.
type Point struct {
	At time.Time
	ID string
}

// Post is a message about to be appended, with the work it asks for.
type Post struct {
	Message Message
	// MustBeMember makes the append fail as NotFound unless the sender is a
	// member at that moment.
	MustBeMember bool
	// Ask lists agents the message addresses: each gets a task, or its task
	// that waits for input goes on.
	Ask []task.Task
	// Title is given to a conversation that has none.
	Title string
}

// Posted is what an append did.
type Posted struct {
	Message Message
	// Repeat is true when the client id was seen before: Message is the first
	// one and nothing was stored.
	Repeat bool
	// Tasks are those that were submitted or continued.
	Tasks []task.Task
}

// Transcripts appends and reads messages.
type Transcripts interface {
	// Said finds the message a sender said with a client id; a NotFound fault
	// when there is none.
	Said(ctx context.Context, conversationID, senderID, clientID string) (Message, error)
	// Append assigns the next seq and extends the hash chain.
	Append(ctx context.Context, p Post) (Posted, error)
	// Finish ends or interrupts a task by its final message, in one
	// transaction; a Conflict fault when the task has ended before.
	Finish(ctx context.Context, t task.Task, m Message) (Message, error)
	// Messages returns messages with after < seq < before (0: no bound), in
	// order: the first limit ones, or the last ones when newest is set.
	Messages(ctx context.Context, conversationID string, after, before int64, limit int, newest bool) ([]Message, error)
}

// Store is all that the service keeps.
type Store interface {
	Rooms
	Transcripts
}
