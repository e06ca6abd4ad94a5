package chat

import (
	"context"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

func checkLimit(limit, most int) error {
	var c fault.Check
	c.Field(limit >= 1 && limit <= most, "limit", "use 1 to %d", most)
	return c.Err()
}

// List returns the actor's conversations that f selects, most recently changed first.
func (s *Service) List(ctx context.Context, actor ident.Actor, f RoomFilter) ([]Conversation, error) {
	if actor.ID == "" {
		return []Conversation{}, nil
	}
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	if err := checkLimit(f.Limit, 100); err != nil {
		return nil, err
	}
	return s.store.RoomsOf(ctx, memberKind(actor), actor.ID, f)
}

// Get returns a conversation that the actor is a member of; else a NotFound fault.
func (s *Service) Get(ctx context.Context, actor ident.Actor, id string) (Conversation, error) {
	if err := checkRead(actor); err != nil {
		return Conversation{}, err
	}
	return s.readShownRoom(ctx, actor, id)
}

// Messages returns the messages of a span that the actor sees, in order of seq. A page ends early when
// its messages take much memory; more reports whether the span may have further ones. An account reads one
// page at a time: the others wait, and after pageWait they get a RateLimited fault.
func (s *Service) Messages(ctx context.Context, actor ident.Actor, id string, span Span) (list []Message, more bool, err error) {
	if err := checkRead(actor); err != nil {
		return nil, false, err
	}
	var c fault.Check
	c.Field(span.After >= 0, "after", "must not be negative")
	c.Field(span.Before >= 0, "before", "must not be negative")
	c.Field(span.Limit >= 1 && span.Limit <= 200, "limit", "use 1 to 200")
	if err := c.Err(); err != nil {
		return nil, false, err
	}
	_, me, err := s.readMembers(ctx, actor, id)
	if err != nil {
		return nil, false, err
	}
	end, err := takeTurn(ctx, &s.reading, actor, pageWait,
		"You read very many messages at once. Wait until some of them have arrived.")
	if err != nil {
		return nil, false, err
	}
	defer end()
	span.After = max(span.After, me.FromSeq)
	list, more, err = s.store.Messages(ctx, id, span)
	for i := range list {
		list[i] = list[i].redactFor(me.FromSeq)
	}
	return list, more, err
}

// Message returns one message that the actor sees; else a NotFound fault.
func (s *Service) Message(ctx context.Context, actor ident.Actor, id string, seq int64) (Message, error) {
	if err := checkRead(actor); err != nil {
		return Message{}, err
	}
	_, me, err := s.readMembers(ctx, actor, id)
	if err != nil {
		return Message{}, err
	}
	return s.readMessage(ctx, me, id, seq)
}

// Edits returns the forms of a message with a seq above after, oldest first: the first one, then its
// edits. A deleted message has only its empty form. more reports that the page ended early.
func (s *Service) Edits(ctx context.Context, actor ident.Actor, id string, seq, after int64) (list []Message, more bool, err error) {
	m, err := s.Message(ctx, actor, id, seq)
	if err != nil {
		return nil, false, err
	}
	if m.Kind != Text || !m.Now.UnsaidAt.IsZero() {
		return []Message{m}, false, nil
	}
	return s.store.Edits(ctx, id, seq, after)
}

// eachForm calls visit with the forms of a message, oldest first, until visit returns false.
func eachForm(ctx context.Context, store Transcripts, id string, seq int64, visit func(Message) bool) error {
	for after, more := int64(0), true; more; {
		var page []Message
		var err error
		if page, more, err = store.Edits(ctx, id, seq, after); err != nil {
			return err
		}
		for _, m := range page {
			if !visit(m) {
				return nil
			}
			after = m.Seq
		}
	}
	return nil
}

// Read stores that the actor has read the conversation up to seq; an earlier seq than the stored one changes nothing.
func (s *Service) Read(ctx context.Context, actor ident.Actor, id string, seq int64) error {
	if err := checkRead(actor); err != nil {
		return err
	}
	c, err := s.readRoom(ctx, actor, id)
	if err != nil || c.ReadSeq >= seq {
		return err
	}
	return s.store.MarkRead(ctx, id, memberKind(actor), actor.ID, min(seq, c.LastSeq))
}

// MaxSearchBytes is the greatest length of a search query; a longer one is an Invalid fault.
const MaxSearchBytes = 500

// Search finds texts that contain the words of the query in the actor's conversations, newest first;
// before is the last result of the previous page, zero for the first page. An account searches once at a
// time: a RateLimited fault for another search that waited for searchWait.
func (s *Service) Search(ctx context.Context, actor ident.Actor, query string, before Point, limit int) (list []Found, more bool, err error) {
	if err := checkRead(actor); err != nil {
		return nil, false, err
	}
	var c fault.Check
	query = oneLine(query)
	c.Field(query != "", "q", "say what to look for")
	c.Field(len(query) <= MaxSearchBytes, "q", "use at most %d bytes", MaxSearchBytes)
	c.Field(limit >= 1 && limit <= 100, "limit", "use 1 to 100")
	if err := c.Err(); err != nil {
		return nil, false, err
	}
	if err := s.limits.limitRate(actor); err != nil {
		return nil, false, err
	}
	end, err := takeTurn(ctx, &s.searching, actor, searchWait,
		"A search of yours is still running. Wait for it, and search again.")
	if err != nil {
		return nil, false, err
	}
	defer end()
	return s.store.SearchMessages(ctx, memberKind(actor), actor.ID, query, before, limit)
}
