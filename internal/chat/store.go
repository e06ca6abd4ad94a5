package chat

import (
	"context"
	"time"

	"agentsite/internal/task"
)

// Rooms stores conversations and their members. A missing conversation and one without the member
// give the same fault, NotFound. A method with an event appends it to the transcript in the same
// transaction.
type Rooms interface {
	// CreateConversation stores the room with its settings and members, its copied messages (of a
	// branch; they have the seqs and targets of the old conversation and get new ones, in their
	// order) and its first events.
	CreateConversation(ctx context.Context, c Conversation, said, events []Message) error
	// CreateAsking is CreateConversation and Append in one transaction. A first
	// that is not nil is noted in it; where the caller's message opened another
	// conversation before, nothing is stored and the error is an *AskedBefore.
	CreateAsking(ctx context.Context, c Conversation, said []Message, p Post, first *FirstAsk) (Posted, error)
	// CreateAnswered stores a conversation that begins with a question and its answer, in one
	// transaction: readers find the same rows as after CreateConversation, Append and Finish. It
	// returns both messages as they are stored.
	CreateAnswered(ctx context.Context, a Answered) ([]Message, error)
	// Room returns a conversation the member (kind, id) is in now, with Mine
	// and ReadSeq.
	Room(ctx context.Context, id, memberKind, memberID string) (Conversation, error)
	// Members lists the present members of a conversation, without Remote and ReadSeq; none for a
	// missing conversation. The caller must not change the list.
	Members(ctx context.Context, id string) ([]Member, error)
	// RoomsOf lists a member's conversations, with Mine, Unread and Snippet.
	RoomsOf(ctx context.Context, memberKind, memberID string, f RoomFilter) ([]Conversation, error)
	// SettingsOf returns a room's settings and the agent that spoke last by
	// turns.
	SettingsOf(ctx context.Context, id string) (s Settings, spokeID string, err error)
	Rename(ctx context.Context, id, title string, event Message) (Message, error)
	SetRoom(ctx context.Context, id string, s Settings, event Message) (Message, error)
	// Join adds a member, or a former member again. FromSeq of m is the seq after which they see
	// messages; -1 means from now on. A link's id counts one use of it, and is a Conflict fault
	// when it has none left or has ended.
	Join(ctx context.Context, id string, m Member, linkID string, event Message) (Message, error)
	Leave(ctx context.Context, id, memberKind, memberID string, at time.Time, event Message) (Message, error)
	SetRole(ctx context.Context, id, memberKind, memberID, role string, event Message) (Message, error)
	// SetMine stores the personal settings of a member: Pinned, Archived, Notify.
	SetMine(ctx context.Context, id, memberKind, memberID string, m Mine) error
	// DeleteRoom removes a conversation with all that belongs to it.
	DeleteRoom(ctx context.Context, id string) error
	// MarkRead notes how far a member has read; it never goes back.
	MarkRead(ctx context.Context, id, memberKind, memberID string, seq int64) error
}

// Answered is a new conversation with its first question, without files, and
// the answer to it, which ends the task.
type Answered struct {
	Room             Conversation
	Question, Answer Message
	// Task has ended.
	Task task.Task
	// First is as with CreateAsking.
	First *FirstAsk
}

// AskedBefore reports that a message opened a conversation before.
type AskedBefore struct{ ConversationID string }

// Error implements error.
func (e *AskedBefore) Error() string {
	return "the message opened conversation " + e.ConversationID + " before"
}

// FirstAsk is the conversation that a caller's message to an agent opened.
type FirstAsk struct {
	CallerID, AgentID, ClientID string
	ConversationID              string
}

// RoomFilter selects some of a member's conversations: most recently changed
// first, before the given point. Pinned and Archived select those only;
// neither those that are not archived, pinned ones among them.
type RoomFilter struct {
	Pinned, Archived bool
	Before           Point
	Limit            int
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
	// member at that moment, and as Forbidden for a reader.
	MustBeMember bool
	// Ask lists agents the message addresses: each gets a task, or its task
	// that waits for input goes on.
	Ask []task.Task
	// Resumes, when set, is the waiting task that must be the one that goes
	// on: a Conflict fault if it does not wait.
	Resumes string
	// Spoke is the agent that answered in turn, in rooms where agents take turns.
	Spoke string
	// Files are hashes of files the message holds. The sender must have sent
	// them or be able to read them: a NotFound fault.
	Files []string
	// Title is given to a conversation that has none.
	Title string
}

// Posted is the result of an append.
type Posted struct {
	Message Message
	// Repeat is true when the client id was seen before: Message is the first
	// one and nothing was stored.
	Repeat bool
	// Tasks are those that were submitted or continued.
	Tasks []task.Task
	// Held is how many of those asked for were not, because of a bound.
	Held int
}

// Ended is the result of a task or its request for input, with the agents that its answer calls.
type Ended struct {
	Task    task.Task
	Message Message
	Files   []string // hashes of files that the answer or its artifacts hold
	// Ask are agents that the answer addresses. None of them is asked once Turns answers or Budget
	// bytes of answers go back to the same root. Each gets a task of its own: a task that waits
	// for input waits for a person, because an agent cannot answer for one.
	Ask           []task.Task
	Turns, Budget int
}

// Transcripts appends and reads messages.
type Transcripts interface {
	// Said finds the message of a sender with a client id; a NotFound fault when there is none.
	Said(ctx context.Context, conversationID, senderID, clientID string) (Message, error)
	// Append assigns the next seq and extends the hash chain.
	Append(ctx context.Context, p Post) (Posted, error)
	// Amend appends a message of a kind that amends and applies it to its
	// target: NotFound when that is absent, Conflict when it was taken away
	// or, of a reaction, has too many. on is whether a reaction is set or
	// taken back; where nothing changes, seq 0 is returned.
	Amend(ctx context.Context, m Message, on bool) (Message, error)
	// Ask submits a task for an earlier message; Conflict when the agent works on one for that
	// message already.
	Ask(ctx context.Context, t task.Task) (task.Task, error)
	// Finish ends or interrupts a task by its final message, in one
	// transaction; a Conflict fault when the task has ended before.
	Finish(ctx context.Context, e Ended) (Posted, error)
	// Message returns one message; NotFound when it is absent.
	Message(ctx context.Context, conversationID string, seq int64) (Message, error)
	// Edits returns the forms of a message, oldest first: the message with its first parts, then
	// its edits.
	Edits(ctx context.Context, conversationID string, seq int64) ([]Message, error)
	// Messages returns messages with after < seq < before (0: no bound), in
	// order: the first limit ones, or the last ones when newest is set.
	Messages(ctx context.Context, conversationID string, after, before int64, limit int, newest bool) ([]Message, error)
	// SearchMessages finds texts by their words in the conversations of a
	// member, as far as they see them, newest first, before the given point.
	SearchMessages(ctx context.Context, memberKind, memberID, query string, before Point, limit int) ([]Found, error)
}

// Links stores links to conversations.
type Links interface {
	PutLink(ctx context.Context, l Link, secretHash string) error
	// LinkByHash returns a link that has not ended; else a NotFound fault.
	LinkByHash(ctx context.Context, secretHash string) (Link, error)
	LinksOf(ctx context.Context, conversationID string) ([]Link, error)
	DropLink(ctx context.Context, conversationID, id string) error
	// RoomByLink returns the link's conversation for actors that are not members.
	RoomByLink(ctx context.Context, l Link) (Conversation, error)
}

// People stores the settings of persons and guests.
type People interface {
	// Disclosures returns the member's disclosures for these agents.
	Disclosures(ctx context.Context, memberKind, memberID string, agentIDs []string) (map[string]Disclosure, error)
	Disclose(ctx context.Context, memberKind, memberID string, d Disclosure) error
	Prefs(ctx context.Context, accountID string) (Prefs, error)
	SetPrefs(ctx context.Context, accountID string, p Prefs) error
}

// Tasks finds the work that messages ask for.
type Tasks interface {
	TaskByID(ctx context.Context, id string) (task.Task, error)
	// TaskAsked returns the first task that the message seq of a conversation
	// asked for or was the input of; a NotFound fault when there is none.
	TaskAsked(ctx context.Context, conversationID string, seq int64) (task.Task, error)
	// FirstAsked is the conversation that a message opened, as it was noted
	// then; a NotFound fault without. It is forgotten with the conversation.
	FirstAsked(ctx context.Context, a FirstAsk) (conversationID string, err error)
	// Questions returns the messages that asked for a task or were its input,
	// by seq, each with the client id its sender gave it.
	Questions(ctx context.Context, t task.Task) (map[int64]string, error)
	// ActiveTasks returns tasks that have not ended, of a conversation or of
	// a caller; the empty string selects nothing by that side.
	ActiveTasks(ctx context.Context, conversationID, callerID string) ([]task.Task, error)
}

// Store is all that the service keeps.
type Store interface {
	Rooms
	Transcripts
	Tasks
	Links
	Files
	People
}
