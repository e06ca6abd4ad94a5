package chat

import (
	"context"
	"time"

	"agentsite/internal/task"
)

// Rooms stores conversations and their members. A conversation that is missing or does not have the member gives a
// NotFound fault. A method with an event appends the event to the transcript in the same transaction.
type Rooms interface {
	// CreateConversation stores a conversation with its settings, members and first events. said are the
	// copied messages of a branch: their seqs and targets are those of the old conversation, and the
	// store assigns new ones in the same order.
	CreateConversation(ctx context.Context, c Conversation, said, events []Message) error
	// CreateAsking is CreateConversation and Append in one transaction. first, unless nil, is stored with it; if the
	// caller's message opened another conversation before, nothing is stored and the error is an *AskedBefore.
	CreateAsking(ctx context.Context, c Conversation, said []Message, p Post, first *FirstAsk) (Posted, error)
	// CreateAnswered stores a conversation that begins with a question and its answer, in one transaction: readers
	// find the same rows as after CreateConversation, Append and Finish. It returns both messages as they are stored.
	CreateAnswered(ctx context.Context, a Answered) ([]Message, error)
	// Room returns a conversation that the member (kind, id) is in at present, with that member's Mine and ReadSeq.
	Room(ctx context.Context, id, memberKind, memberID string) (Conversation, error)
	// Members lists the present members of a conversation, without Remote and ReadSeq; none for a
	// missing conversation. The caller must not change the list.
	Members(ctx context.Context, id string) ([]Member, error)
	// RoomsOf lists a member's conversations, with Mine, Unread and Snippet.
	RoomsOf(ctx context.Context, memberKind, memberID string, f RoomFilter) ([]Conversation, error)
	// SettingsOf returns the settings of a conversation and the id of the agent that answered the last
	// turn of SpeaksTurns, "" for none.
	SettingsOf(ctx context.Context, id string) (s Settings, spokeID string, err error)
	Rename(ctx context.Context, id, title string, event Message) (Message, error)
	SetRoom(ctx context.Context, id string, s Settings, event Message) (Message, error)
	// Join adds a member, or restores a former one. m.FromSeq is the seq after which the member sees
	// messages; -1 is the present end. linkID, unless "", is the join link that is used: it counts a
	// use, and is a Conflict fault if it has none left or has expired.
	Join(ctx context.Context, id string, m Member, linkID string, event Message) (Message, error)
	Leave(ctx context.Context, id, memberKind, memberID string, at time.Time, event Message) (Message, error)
	SetRole(ctx context.Context, id, memberKind, memberID, role string, event Message) (Message, error)
	// ReplaceGuest puts the person m in the place of a guest, with the guest's role and personal settings. A NotFound
	// fault if the person is or was a member or is invited, or if the guest is no member.
	ReplaceGuest(ctx context.Context, id, guestID string, m Member, event Message) (Message, error)
	// SetMine stores the personal settings of a member: Pinned, Archived, Notify.
	SetMine(ctx context.Context, id, memberKind, memberID string, m Mine) error
	// DeleteRoom deletes a conversation with its messages, members, links and tasks.
	DeleteRoom(ctx context.Context, id string) error
	// MarkRead stores the seq up to which a member has read; a lower seq than the stored one changes nothing.
	MarkRead(ctx context.Context, id, memberKind, memberID string, seq int64) error
}

// Answered is a new conversation that consists of a question without files and its answer, which ends the task.
type Answered struct {
	Room             Conversation
	Question, Answer Message
	// Task is in a final state.
	Task task.Task
	// First is stored as by CreateAsking; nil for none.
	First *FirstAsk
}

// AskedBefore is the error of a question whose ClientID opened a conversation before.
type AskedBefore struct{ ConversationID string }

// Error implements error.
func (e *AskedBefore) Error() string {
	return "the message opened conversation " + e.ConversationID + " before"
}

// FirstAsk records the conversation that a caller's ClientID opened with an agent, so that a retry finds it.
type FirstAsk struct {
	CallerID, AgentID, ClientID string
	ConversationID              string
}

// RoomFilter selects and pages a member's conversations, most recently changed first. Pinned or Archived select only
// such conversations; with neither, all that are not archived are listed, including pinned ones.
type RoomFilter struct {
	Pinned, Archived bool
	Before           Point
	Limit            int
}

// Point is a position in a list that is ordered by time and id; the zero value is the start of the list.
type Point struct {
	At time.Time
	ID string
}

// Post is a message to append, with the tasks it submits, in one transaction.
type Post struct {
	Message Message
	// MustBeMember makes the append NotFound unless the sender is a member at that moment, and Forbidden for a reader.
	MustBeMember bool
	// Ask has a task for each agent that the message addresses. If the agent has a task of the same
	// caller that waits for input, that task is continued instead.
	Ask []task.Task
	// Refused has the addressed agents' tasks that were not admitted. They are stored in their final
	// state, each with its message after the post's, and are never in the queue.
	Refused []Ended
	// Resumes is the id of the waiting task that must be continued, "" for none, and Answers the seq of the question
	// with which it must wait, 0 for any; else a Conflict fault.
	Resumes string
	Answers int64
	// Spoke is the id of the agent chosen by SpeaksTurns, stored for the next turn; "" otherwise.
	Spoke string
	// Files are the hashes of the files in the message. A NotFound fault if the sender neither sent one nor may read it.
	Files []string
	// Mentions has the ids of the people in the conversation that the message mentions, without the sender.
	Mentions []string
	// Title becomes the title of a conversation that has none.
	Title string
}

// Posted is the result of an append to a transcript.
type Posted struct {
	Message Message
	// Repeat is true when the client id was seen before: Message is the first one and nothing was stored.
	Repeat bool
	// Tasks are the tasks that were submitted or continued.
	Tasks []task.Task
	// Refused are the tasks that were not admitted, with their messages as they are stored.
	Refused []Ended
	// Held is the number of tasks in Ask that were not submitted because of a limit (Ended.Turns, Ended.Budget).
	Held int
}

// Ended is the final result of a task or its request for input, with the tasks for the agents that the
// answer mentions.
type Ended struct {
	Task    task.Task
	Message Message
	Files   []string // hashes of the files in the answer and its artifacts
	// Ask has a task for each agent that the answer mentions. None is submitted once the answers to the
	// same root message reach Turns in number or Budget in bytes. Tasks that wait for input are not
	// continued: they wait for a person, and an agent cannot answer for one.
	Ask           []task.Task
	Turns, Budget int
}

// Span selects messages of a conversation.
type Span struct {
	// After and Before bound the seqs, both exclusive. Before 0 is no bound.
	After, Before int64
	// Limit bounds the messages, and Bytes their memory: the first message beyond it is the
	// last one returned. 0 is PageBytes.
	Limit, Bytes int
	// Newest selects the last messages of the span instead of the first.
	Newest bool
}

// PageBytes bounds the messages on one page of a transcript, with their edits and reactions.
const PageBytes = 512 << 10

// Transcripts appends and reads messages. The seqs of a conversation are dense and begin at 1.
type Transcripts interface {
	// Said finds the message of a sender with a client id; a NotFound fault when there is none.
	Said(ctx context.Context, conversationID, senderID, clientID string) (Message, error)
	// Append stores a message with the next seq and hash, and its tasks, in one transaction.
	Append(ctx context.Context, p Post) (Posted, error)
	// Amend appends an edit, deletion or reaction and applies it to its target. NotFound if the target
	// is absent; Conflict if it is deleted or has too many reactions. on sets or removes a reaction; if
	// that changes nothing, the result has seq 0 and nothing is appended.
	Amend(ctx context.Context, m Message, on bool) (Message, error)
	// Ask submits a task for a message that is stored already (regenerate); Conflict if the agent has an
	// unfinished task for it.
	Ask(ctx context.Context, t task.Task) (task.Task, error)
	// Finish stores the final message of a task, or its request for input, in one transaction; a
	// Conflict fault if the task is in a final state already.
	Finish(ctx context.Context, e Ended) (Posted, error)
	// Message returns one message; NotFound when it is absent.
	Message(ctx context.Context, conversationID string, seq int64) (Message, error)
	// Edits returns the forms of a message with a seq above after, oldest first: the message with its
	// first parts, then its edits. A page ends early at PageBytes; more reports further forms.
	Edits(ctx context.Context, conversationID string, seq, after int64) (list []Message, more bool, err error)
	// Messages returns the messages of a span in order. more reports whether the span may have further
	// ones: after the last, or before the first if Newest is set. At least one is returned if there is one.
	Messages(ctx context.Context, conversationID string, span Span) (list []Message, more bool, err error)
	// SearchMessages finds texts that contain the words of query and that the member sees, newest first,
	// after the result before (zero: from the newest). A page ends early at PageBytes.
	SearchMessages(ctx context.Context, memberKind, memberID, query string, before Point, limit int) (list []Found, more bool, err error)
}

// Links stores links to conversations by the hash of their secret.
type Links interface {
	// PutLink is a NotFound fault if the creator is no member, and ErrManyLinks beyond MaxLinks.
	PutLink(ctx context.Context, l Link, secretHash string) error
	// LinkByHash returns a link that is not expired or revoked; else a NotFound fault.
	LinkByHash(ctx context.Context, secretHash string) (Link, error)
	LinksOf(ctx context.Context, conversationID string) ([]Link, error)
	DropLink(ctx context.Context, conversationID, id string) error
	// RoomByLink returns the link's conversation without checking membership: the link is the permission.
	RoomByLink(ctx context.Context, l Link) (Conversation, error)
}

// People stores settings and disclosures of persons and guests.
type People interface {
	// Disclosures returns the member's disclosures for these agents.
	Disclosures(ctx context.Context, memberKind, memberID string, agentIDs []string) (map[string]Disclosure, error)
	Disclose(ctx context.Context, memberKind, memberID string, d Disclosure) error
	Prefs(ctx context.Context, accountID string) (Prefs, error)
	SetPrefs(ctx context.Context, accountID string, p Prefs) error
}

// Tasks finds the tasks of messages.
type Tasks interface {
	TaskByID(ctx context.Context, id string) (task.Task, error)
	// TaskAsked returns the first task that the message seq submitted or continued; else a NotFound fault.
	TaskAsked(ctx context.Context, conversationID string, seq int64) (task.Task, error)
	// FirstAsked returns the conversation recorded by CreateAsking for this caller, agent and ClientID;
	// a NotFound fault if there is none. The record is deleted with the conversation.
	FirstAsked(ctx context.Context, a FirstAsk) (conversationID string, err error)
	// Questions returns the client ids of the messages that submitted or continued a task, by seq.
	Questions(ctx context.Context, t task.Task) (map[int64]string, error)
	// ActiveTasks returns the unfinished tasks of a conversation or of a caller; "" leaves out that criterion.
	ActiveTasks(ctx context.Context, conversationID, callerID string) ([]task.Task, error)
	// Asides returns the unfinished tasks of the questions that the agent of t asked for t.
	Asides(ctx context.Context, t task.Task) ([]task.Task, error)
	// Orphans returns the tasks of questions of agents that wait to run while their asking task has ended or is gone.
	Orphans(ctx context.Context) ([]task.Task, error)
}

// Store is everything that Service and Attachments read and write.
type Store interface {
	Rooms
	Transcripts
	Tasks
	Links
	Invitations
	Files
	People
}
