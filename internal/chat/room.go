package chat

import (
	"context"
	"unicode/utf8"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Rename gives the conversation another title.
func (s *Service) Rename(ctx context.Context, actor ident.Actor, id, title string) (Conversation, error) {
	if err := writes(actor); err != nil {
		return Conversation{}, err
	}
	room, err := s.room(ctx, actor, id)
	if err != nil {
		return Conversation{}, err
	}
	title = oneLine(title)
	var c fault.Check
	c.Field(title != "", "title", "give it a name")
	c.Field(utf8.RuneCountInString(title) <= MaxTitleRunes, "title", "use at most %d characters", MaxTitleRunes)
	if err := c.Err(); err != nil {
		return Conversation{}, err
	}
	if title == room.Title {
		return room, nil
	}
	by := sender(actor)
	m, err := s.store.Rename(ctx, id, title, event(by, "%s renamed the conversation to “%s”", by.Handle, title))
	if err != nil {
		return Conversation{}, err
	}
	s.live.message(m)
	room.Title = title
	return room, nil
}

// Invite adds an agent or person to the conversation.
func (s *Service) Invite(ctx context.Context, actor ident.Actor, id, handle string) (Member, error) {
	if err := writes(actor); err != nil {
		return Member{}, err
	}
	room, err := s.room(ctx, actor, id)
	if err != nil {
		return Member{}, err
	}
	m, err := s.member(ctx, actor, handle)
	if err != nil {
		return Member{}, asField(err, "handle")
	}
	if has(room.Members, m) {
		return m, nil
	}
	if len(room.Members) >= MaxMembers {
		return Member{}, fault.New(fault.Conflict, "A conversation has at most %d members.", MaxMembers)
	}
	by := sender(actor)
	e, err := s.store.Join(ctx, id, m, event(by, "%s added %s", by.Handle, m.Handle))
	if err != nil {
		return Member{}, err
	}
	s.live.message(e)
	return m, nil
}

// Remove takes a member out of the conversation: oneself, or, for the owner,
// anybody. Their sight of it ends at once.
func (s *Service) Remove(ctx context.Context, actor ident.Actor, id, handle string) error {
	if err := writes(actor); err != nil {
		return err
	}
	room, err := s.room(ctx, actor, id)
	if err != nil {
		return err
	}
	h, _ := ident.ParseHandle(handle, s.cfg.Portal)
	var who *Member
	mine := false
	for i, m := range room.Members {
		self := m.Kind == memberKind(actor) && m.ID == actor.ID
		if self && m.Role == "owner" {
			mine = true
		}
		if m.Handle == h.String() || handle == "" && self {
			who = &room.Members[i]
		}
	}
	if who == nil {
		return fault.New(fault.NotFound, "There is no member %.80q in this conversation.", handle)
	}
	self := who.Kind == memberKind(actor) && who.ID == actor.ID
	if self && handle != "" {
		return s.Delete(ctx, actor, id)
	}
	if !self && who.Kind != "agent" && !mine {
		return fault.New(fault.Forbidden, "Only the owner of the conversation may remove people.")
	}
	by := sender(actor)
	e := event(by, "%s removed %s", by.Handle, who.Handle)
	if self {
		e = event(by, "%s left", by.Handle)
	}
	m, err := s.store.Leave(ctx, id, who.Kind, who.ID, clock.Now(), e)
	if err != nil {
		return err
	}
	s.live.kick(id, who.Kind, who.ID)
	s.live.message(m)
	return nil
}

// Delete takes the actor out of the conversation; when nobody else is left in
// it, the conversation is removed with everything that was said.
func (s *Service) Delete(ctx context.Context, actor ident.Actor, id string) error {
	if err := writes(actor); err != nil {
		return err
	}
	room, err := s.room(ctx, actor, id)
	if err != nil {
		return err
	}
	for _, m := range room.Members {
		if m.Kind != "agent" && (m.Kind != memberKind(actor) || m.ID != actor.ID) {
			return s.Remove(ctx, actor, id, "")
		}
	}
	if err := s.store.DeleteRoom(ctx, id); err != nil {
		return err
	}
	for _, r := range s.Running(id) {
		s.runner.Stop(r.ID)
		s.forget(task.Task{ID: r.ID, ConversationID: id})
	}
	s.live.kick(id, "", "")
	return nil
}
