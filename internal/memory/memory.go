// Package memory keeps the memories of agents: short texts about a person, or about a conversation of several members,
// that an agent gets back in later conversations. A memory belongs to one person and one agent, or to one conversation
// and one agent, and is used nowhere else. The person decides by a grant whether an agent may remember, and sees, edits
// and erases all of it. The owner of the agent has no access.
package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/plaintext"
)

// The bounds of memories.
const (
	// MaxText is the number of characters of one memory.
	MaxText = 1000
	// MaxOfPlace is the number of memories of a place, MaxOfPerson that of a person in all places.
	MaxOfPlace, MaxOfPerson = 2000, 100_000
)

// Place is where a memory belongs: to a person and an agent or, if RoomID is set, to that conversation and the agent.
// PersonID is then the author of the words.
type Place struct{ PersonID, AgentID, RoomID string }

// Memory is one memory.
type Memory struct {
	ID string
	Place
	// Agent is the handle of the agent.
	Agent string
	Text  string
	// ConversationID and Seq name the message with which the person said it.
	ConversationID string
	Seq            int64
	// Distilled is true if a model took it from the conversation, false if the agent wrote it by a tool.
	Distilled bool
	// Binding is the BindingHash of the agent when the person agreed to this one memory, "" for one under a grant.
	Binding   string
	CreatedAt time.Time
	// UsedAt is the time of the last recall, at first CreatedAt.
	UsedAt time.Time
}

// Use is the access of an agent to a place during one task.
type Use struct {
	Place
	Agent          string // handle
	ConversationID string
	Seq            int64 // of the message that the agent answers
	// FromSeq is that of the person in a room: the person sees only messages with a greater seq.
	FromSeq int64
	// Binds are the present facts about the agent.
	Binds grant.Binding
}

// BindingHash returns a short form of the facts about an agent for which a person agreed.
func BindingHash(b grant.Binding) string {
	text, _ := json.Marshal(b) // strings cannot fail
	sum := sha256.Sum256(append([]byte("agentsite/memory/1 "), text...))
	return hex.EncodeToString(sum[:16])
}

// Filter chooses memories of a person. Before is the id of the last memory of the page before.
type Filter struct {
	Agent  string // name of the agent, "" for all
	Before string
	Limit  int
}

// Bounds are the greatest numbers of memories.
type Bounds struct{ Place, Person int }

// Store stores memories. A memory that is missing or of another person is a NotFound fault.
type Store interface {
	// PutMemories stores new memories of one place, except texts that the place has already. If there are more
	// than the bounds allow, it deletes the ones that were not used for the longest time and returns their ids.
	PutMemories(ctx context.Context, list []Memory, b Bounds) (added []Memory, dropped []string, err error)
	// MemoriesOf returns a page of a person's memories, the newest first.
	MemoriesOf(ctx context.Context, personID string, f Filter) ([]Memory, error)
	// MemoriesByID returns those of the ids that exist, in any order.
	MemoriesByID(ctx context.Context, ids []string) ([]Memory, error)
	// MemoriesAt returns all memories of a place, the oldest first: of a room those of all its people.
	MemoriesAt(ctx context.Context, p Place) ([]Memory, error)
	// EachText yields the memories of a person or, if roomID is set, of an agent in a room.
	EachText(ctx context.Context, personID, roomID, agentID string, yield func(Memory)) error
	SetMemoryText(ctx context.Context, personID, id, text string) error
	// DeleteMemories deletes memories of a person and returns how many there were.
	DeleteMemories(ctx context.Context, personID string, ids []string) (int, error)
	// DeleteMemoriesOf deletes all memories of a person with an agent's name, and returns their ids.
	DeleteMemoriesOf(ctx context.Context, personID, agent string) ([]string, error)
	// MarkUsed notes a recall. It may be lost in a crash.
	MarkUsed(ctx context.Context, ids []string, at time.Time) error
	// CountMemories returns the number of a person's memories with an agent, by its name.
	CountMemories(ctx context.Context, personID, agent string) (int, error)
}

// CanRemember reports whether an agent of this portal can have a memory: one that is a prompt and one that runs
// elsewhere or here as a program, if its owner declared the tool.
func CanRemember(kind string, config json.RawMessage) bool {
	switch kind {
	case "prompt":
		return true
	case "wasm", "a2a", "link":
		var conf struct {
			Tools []string `json:"tools"`
		}
		return json.Unmarshal(config, &conf) == nil && slices.Contains(conf.Tools, grant.Memory)
	}
	return false
}

// cleanText returns a memory as it is stored: on one line, cut to MaxText.
func cleanText(s string) string {
	s = strings.TrimSpace(plaintext.OneLine(s))
	if utf8.RuneCountInString(s) > MaxText {
		s = string([]rune(s)[:MaxText])
	}
	return s
}

// checkText returns a person's text for a memory.
func checkText(s string) (string, error) {
	s = strings.TrimSpace(plaintext.OneLine(s))
	var c fault.Check
	c.Field(s != "", "text", "write the text, or delete the memory")
	c.Field(utf8.RuneCountInString(s) <= MaxText, "text", "use at most %d characters", MaxText)
	return s, c.Err()
}
