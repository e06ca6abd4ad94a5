package chat

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Rename sets the title of the conversation; every member who may write can do it.
func (s *Service) Rename(ctx context.Context, actor ident.Actor, id, title string) (Conversation, error) {
	return s.Set(ctx, actor, id, Change{Title: &title})
}

// Invite adds an agent to the conversation, and a person who accepted an invitation of the actor before;
// it invites other people, whose Member has InviterID set. The conversation's Past setting decides whether
// a person sees earlier messages. A Conflict fault beyond MaxMembers or if the person cannot be invited.
func (s *Service) Invite(ctx context.Context, actor ident.Actor, id, handle string) (Member, error) {
	if err := checkWrite(actor); err != nil {
		return Member{}, err
	}
	room, err := s.readRoom(ctx, actor, id)
	if err != nil {
		return Member{}, err
	}
	me, ok := findMember(room.Members, memberKind(actor), actor.ID)
	if !ok {
		return Member{}, errNoRoom()
	}
	if err := checkWriter(me); err != nil {
		return Member{}, err
	}
	if err := s.Contacts.checkDelivery(ctx, actor, room.Members); err != nil {
		return Member{}, err
	}
	m, err := s.findMember(ctx, actor, handle)
	if err != nil {
		return Member{}, asField(err, "handle")
	}
	if hasMember(room.Members, m) {
		return m, nil
	}
	if len(room.Members) >= MaxMembers {
		return Member{}, errFull()
	}
	if err := s.limits.limitRate(actor); err != nil {
		return Member{}, err
	}
	by := senderOf(actor)
	if m.Kind == "person" {
		m.FromSeq = seesFrom(room.Settings)
		m, e, err := s.store.InvitePerson(ctx, id, Invitees{By: by, People: []Member{m}, Limits: s.cfg.Rooms},
			newEvent(by, "%s added %s", by.Handle, m.Handle), newEvent(by, "%s invited %s", by.Handle, m.Handle))
		if err == nil && e.Seq > 0 {
			s.live.passMessage(e)
			if m.InviterID == "" {
				s.rooms.change(m.ID, 1)
			}
		}
		return m, asConflictField(err, "handle")
	}
	e, err := s.store.Join(ctx, id, m, "", newEvent(by, "%s added %s", by.Handle, m.Handle))
	if err != nil {
		return Member{}, err
	}
	s.live.passMessage(e)
	return m, nil
}

// Remove ends a membership: that of the actor, or, for an owner, that of any member. Access ends at
// once. Tasks for the member, or of a removed agent, are canceled. It also withdraws invitations.
func (s *Service) Remove(ctx context.Context, actor ident.Actor, id, handle string) error {
	if err := checkWrite(actor); err != nil {
		return err
	}
	members, me, err := s.readMembers(ctx, actor, id)
	if err != nil {
		return err
	}
	who := me
	if handle != "" {
		if who, err = s.findNamed(members, handle); fault.Is(err, fault.NotFound) && me.Kind == "person" {
			return s.Contacts.withdraw(ctx, me, id, handle)
		} else if err != nil {
			return err
		}
		if who.Kind == me.Kind && who.ID == me.ID {
			return s.DeleteConversation(ctx, actor, id)
		}
		if who.Kind != "agent" && me.Role != RoleOwner {
			return fault.New(fault.Forbidden, "Only the owner of the conversation may remove people.")
		}
		if err := checkWriter(me); err != nil {
			return err
		}
		if err := s.limits.limitRate(actor); err != nil {
			return err
		}
	}
	return s.endMembership(ctx, actor, id, who)
}

// endMembership removes who from the conversation, ends its live subscriptions and stops its tasks.
func (s *Service) endMembership(ctx context.Context, actor ident.Actor, id string, who Member) error {
	by := senderOf(actor)
	e := newEvent(by, "%s removed %s", by.Handle, who.Handle)
	if who.Kind == memberKind(actor) && who.ID == actor.ID {
		e = newEvent(by, "%s left", by.Handle)
	}
	m, err := s.store.Leave(ctx, id, who.Kind, who.ID, clock.Now(), e)
	if err != nil {
		return err
	}
	s.rooms.change(who.ID, -1)
	s.live.endSubscriptions(id, who.Kind, who.ID)
	s.live.passMessage(m)
	if who.Kind == "agent" {
		s.stopWhere(ctx, id, who.Handle+" was removed from the conversation.", func(t task.Task) bool { return t.AgentID == who.ID })
		return nil
	}
	s.stopWhere(ctx, id, who.Handle+" is not in the conversation any more.", func(t task.Task) bool { return t.CallerID == who.ID })
	s.dropLinks(ctx, id, func(l Link) bool { return l.Creator.ID == who.ID })
	return nil
}

// DeleteConversation removes the actor from the conversation; if no other person is left in it, the conversation and
// all its messages are deleted.
func (s *Service) DeleteConversation(ctx context.Context, actor ident.Actor, id string) error {
	if err := checkWrite(actor); err != nil {
		return err
	}
	members, me, err := s.readMembers(ctx, actor, id)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Kind != "agent" && (m.Kind != me.Kind || m.ID != me.ID) {
			return s.endMembership(ctx, actor, id, me)
		}
	}
	active, err := s.store.ActiveTasks(ctx, id, "")
	if err != nil {
		return err
	}
	if err := s.store.DeleteRoom(ctx, id); err != nil {
		return err
	}
	s.rooms.change(me.ID, -1)
	for _, r := range s.Running(id) { // stop tasks that were started during the deletion
		active = append(active, task.Task{ID: r.ID, ConversationID: id})
	}
	for _, t := range active {
		if !s.runner.Stop(t.ID) {
			s.runner.Ended(t)
		}
		s.removeShown(t)
	}
	s.live.endSubscriptions(id, "", "")
	return nil
}
