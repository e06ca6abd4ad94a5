package chat

import (
	"context"
	"slices"
	"sync"
)

// Update is an event for a live reader of a conversation. Exactly one of its fields is set.
// Messages are durable and come in order of seq without gap or duplicate; the others carry present
// state. The values it points at are shared by all readers and must not be changed.
type Update struct {
	Message  *Message
	Delta    *Delta
	Task     *TaskState
	Presence *Presence
	Typing   *Typing
	Read     *ReadMark

	memo *memo
	// veiled means that the content was redacted: the reader does not see the target of Message.
	veiled bool
}

// redactFor returns the update for a reader who sees only messages after from: an amendment of an
// earlier message keeps its seq, but its content is hidden.
func (u Update) redactFor(from int64) Update {
	if u.Message != nil && u.Message.hiddenFrom(from) {
		m := u.Message.redactFor(from)
		return Update{Message: &m, veiled: true}
	}
	return u
}

// redactUpdates applies redactFor to each update. It returns list itself if nothing is hidden.
func redactUpdates(list []Update, from int64) []Update {
	hidden := func(u Update) bool { return u.Message != nil && u.Message.hiddenFrom(from) }
	if from == 0 || !slices.ContainsFunc(list, hidden) {
		return list
	}
	list = slices.Clone(list)
	for i, u := range list {
		list[i] = u.redactFor(from)
	}
	return list
}

// Presence lists the handles of the people who have the conversation open.
type Presence struct{ Handles []string }

// Typing means that a person is typing; it holds for TypingHolds.
type Typing struct{ Handle string }

// ReadMark is the seq up to which a person has read.
type ReadMark struct {
	Handle string
	Seq    int64
}

// Forms is the number of encodings of an update that can be cached; protocol endpoints number theirs from 0.
const Forms = 5

// memo caches the encodings of an update for all of its readers.
type memo struct {
	mu    sync.Mutex // guards forms and shown
	forms [Forms][]byte
	shown *Message
}

// Encoded returns the update in the encoding number form (below Forms). encode runs once for all readers
// and may call Shown; the result must not be changed. An error is not cached.
func (u Update) Encoded(form int, encode func(Update) ([]byte, error)) ([]byte, error) {
	if u.memo == nil {
		return encode(u)
	}
	u.memo.mu.Lock()
	defer u.memo.mu.Unlock()
	if b := u.memo.forms[form]; b != nil {
		return b, nil
	}
	b, err := encode(u)
	if err == nil {
		u.memo.forms[form] = b
	}
	return b, err
}

// Shown returns the present form of the message that an update is about: the message itself, or the
// target of an amendment. encode functions call it; the result is cached for all readers.
func (s *Service) Shown(ctx context.Context, u Update) (Message, error) {
	if !u.Message.Kind.Amends() {
		return *u.Message, nil
	}
	if u.veiled {
		return Message{}, errNoMessage()
	}
	if u.memo != nil && u.memo.shown != nil {
		return *u.memo.shown, nil
	}
	m, err := s.store.Message(ctx, u.Message.ConversationID, u.Message.Target)
	if err == nil && u.memo != nil {
		u.memo.shown = &m
	}
	return m, err
}

// size estimates the bytes of memory that an update takes with its cached encodings.
func (u Update) size() int {
	const fixed = 512
	switch {
	case u.Message != nil:
		n := 0
		for _, p := range u.Message.Parts {
			n += len(p.Text) + len(p.Data) + len(p.URL) + len(p.Raw)
		}
		return fixed + 4*n // the text itself, as JSON, and as JSON with HTML
	case u.Delta != nil:
		return fixed + 3*len(u.Delta.Text)
	}
	return fixed
}
