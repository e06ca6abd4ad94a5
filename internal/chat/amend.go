package chat

import (
	"bytes"
	"context"
	"slices"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
	"agentsite/internal/task"
)

// Edit replaces the parts of the actor's own message and returns it in its new form. Its earlier
// forms stay readable to members. Agents that answered are not asked again.
func (s *Service) Edit(ctx context.Context, actor ident.Actor, id string, seq int64,
	parts []task.Part) (Message, error) {
	if err := checkWrite(actor); err != nil {
		return Message{}, err
	}
	if err := checkParts(actor, parts); err != nil {
		return Message{}, err
	}
	members, me, err := s.readWriters(ctx, actor, id)
	if err == nil {
		err = s.Contacts.checkDelivery(ctx, actor, members)
	}
	if err != nil {
		return Message{}, err
	}
	m, err := s.readText(ctx, me, id, seq)
	if err != nil {
		return Message{}, err
	}
	if !m.Sender.is(actor) {
		return Message{}, fault.New(fault.Forbidden, "You can change only what you said yourself.")
	}
	if err := s.limits.limitRate(actor); err != nil {
		return Message{}, err
	}
	if err := s.limits.limitText(ctx, actor, parts); err != nil {
		return Message{}, err
	}
	parts, err = s.editedFiles(ctx, actor, m.Parts, parts)
	if err != nil {
		return Message{}, err
	}
	if slices.EqualFunc(m.Parts, parts, equalParts) {
		return m, nil
	}
	return s.appendAmendment(ctx, actor, m, Edit, parts, true)
}

// editedFiles returns the parts of an edit in their stored form. Parts with a URL that the message has
// already are taken over unchanged; the files of the other parts are checked and stored.
func (s *Service) editedFiles(ctx context.Context, actor ident.Actor, before, after []task.Part) ([]task.Part, error) {
	after = slices.Clone(after)
	for i, p := range after {
		if at := slices.IndexFunc(before, func(b task.Part) bool { return p.URL != "" && b.URL == p.URL }); at >= 0 {
			after[i] = before[at]
			continue
		}
		one, _, err := s.withFiles(ctx, actor, after[i:i+1])
		if err != nil {
			return nil, err
		}
		after[i] = one[0]
	}
	return after, nil
}

func equalParts(a, b task.Part) bool {
	return a.Text == b.Text && a.URL == b.URL && bytes.Equal(a.Raw, b.Raw) && bytes.Equal(a.Data, b.Data) &&
		a.MediaType == b.MediaType && a.Filename == b.Filename && bytes.Equal(a.Metadata, b.Metadata)
}

// appendAmendment appends an edit, deletion or reaction (kind) for the message m and returns m as it is
// afterwards. on is used by reactions only: true sets the emoji, false removes it.
func (s *Service) appendAmendment(ctx context.Context, actor ident.Actor, m Message, kind Kind, parts []task.Part,
	on bool) (Message, error) {
	done, err := s.store.Amend(ctx, Message{ConversationID: m.ConversationID, ID: ident.NewID(),
		Sender: senderOf(actor),
		Kind:   kind, Parts: parts, Target: m.Seq, CreatedAt: clock.Now()}, on)
	if fault.Is(err, fault.NotFound) {
		err = errNoMessage()
	}
	if err != nil {
		return Message{}, err
	}
	if done.Seq > 0 {
		s.live.passMessage(done)
	}
	return s.store.Message(ctx, m.ConversationID, m.Seq)
}

// DeleteMessage deletes the actor's own message or, for an owner of the conversation, any message, with all its
// earlier forms. The text cannot be restored; an empty entry stays, so that seq has no gap. Agents that
// work on the message are stopped.
func (s *Service) DeleteMessage(ctx context.Context, actor ident.Actor, id string, seq int64) (Message, error) {
	if err := checkWrite(actor); err != nil {
		return Message{}, err
	}
	_, me, err := s.readMembers(ctx, actor, id)
	if err != nil {
		return Message{}, err
	}
	m, err := s.readMessage(ctx, me, id, seq)
	switch {
	case err != nil:
		return Message{}, err
	case m.Kind != Text && (m.Kind != Event || m.Sender.Kind != "agent"):
		return Message{}, fault.New(fault.Conflict, "This line is not a message of a member.")
	case !m.Sender.is(actor) && me.Role != RoleOwner:
		return Message{}, fault.New(fault.Forbidden,
			"You can delete only your own messages; an owner of the conversation can delete any.")
	case !m.Now.UnsaidAt.IsZero():
		return m, nil
	}
	if err := s.limits.limitRate(actor); err != nil {
		return Message{}, err
	}
	now, err := s.appendAmendment(ctx, actor, m, Unsaid, nil, true)
	if err != nil {
		return Message{}, err
	}
	s.stopWhere(ctx, id, "The message was deleted.",
		func(t task.Task) bool { return t.MessageSeq == seq || t.RootSeq == seq })
	return now, nil
}

// React sets (on) or removes the actor's emoji on a message; a Conflict fault beyond MaxReactions different emoji.
func (s *Service) React(ctx context.Context, actor ident.Actor, id string, seq int64, emoji string,
	on bool) (Message, error) {
	if err := checkWrite(actor); err != nil {
		return Message{}, err
	}
	var c fault.Check
	c.Field(len(emoji) <= MaxEmojiBytes && plaintext.IsEmoji(emoji), "emoji", "use one emoji")
	if err := c.Err(); err != nil {
		return Message{}, err
	}
	members, me, err := s.readMembers(ctx, actor, id)
	if err == nil && on {
		err = s.Contacts.checkDelivery(ctx, actor, members)
	}
	if err != nil {
		return Message{}, err
	}
	m, err := s.readText(ctx, me, id, seq)
	if err != nil {
		return Message{}, err
	}
	if err := s.limits.limitRate(actor); err != nil {
		return Message{}, err
	}
	return s.appendAmendment(ctx, actor, m, React, []task.Part{task.TextPart(emoji)}, on)
}
