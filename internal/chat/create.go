package chat

import (
	"context"
	"unicode/utf8"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Create opens a conversation of the actor with the named agents and people. People who did not accept an
// invitation of the actor before are invited. A NotFound fault if a handle is unknown or the actor may not
// see it, a Conflict fault if a person cannot be invited.
func (s *Service) Create(ctx context.Context, actor ident.Actor, title string, handles []string) (Conversation, error) {
	if err := checkWrite(actor); err != nil {
		return Conversation{}, err
	}
	if err := s.rooms.allow(ctx, actor); err != nil {
		return Conversation{}, err
	}
	var c fault.Check
	title = oneLine(title)
	c.Field(utf8.RuneCountInString(title) <= MaxTitleRunes, "title", "use at most %d characters", MaxTitleRunes)
	c.Field(len(handles) < MaxMembers, "members", "invite at most %d", MaxMembers-1)
	if err := c.Err(); err != nil {
		return Conversation{}, err
	}
	room := emptyRoom(actor, title)
	var people []Member
	for _, h := range handles {
		m, err := s.findMember(ctx, actor, h)
		if err != nil {
			return Conversation{}, asField(err, "members")
		}
		switch {
		case hasMember(room.Members, m) || hasMember(people, m):
		case m.Kind == "person":
			people = append(people, m)
		default:
			room.Members = append(room.Members, m)
		}
	}
	if len(people) == 0 {
		return room, s.store.CreateConversation(ctx, room, nil, nil)
	}
	room, err := s.store.CreateInviting(ctx, room, Invitees{By: senderOf(actor), People: people, Limits: s.cfg.Rooms})
	for _, m := range room.Members {
		if err == nil && m.Kind == "person" && m.ID != actor.ID {
			s.rooms.change(m.ID, 1)
		}
	}
	return room, asConflictField(err, "members")
}

// emptyRoom returns a new conversation, not stored yet, with the actor as owner and only member.
func emptyRoom(actor ident.Actor, title string) Conversation {
	now := clock.Now()
	return Conversation{ID: ident.NewID(), Title: title, CreatedAt: now, UpdatedAt: now, Settings: DefaultSettings, Mine: Mine{Role: RoleOwner},
		Members: []Member{{Kind: memberKind(actor), ID: actor.ID, Handle: senderOf(actor).Handle, Role: RoleOwner}}}
}

// findMember resolves a handle to an agent or person that the actor may talk to; else a NotFound fault.
func (s *Service) findMember(ctx context.Context, actor ident.Actor, handle string) (Member, error) {
	a, err := s.findAgent(ctx, actor, handle)
	if err == nil {
		return Member{Kind: "agent", ID: a.ID, Handle: a.Handle, Role: RoleMember, Remote: a.Remote}, nil
	}
	if !fault.Is(err, fault.NotFound) {
		return Member{}, err
	}
	if !actor.IsVisitor() {
		if m, perr := s.directory.Person(ctx, actor, handle); perr == nil {
			return m, nil
		} else if !fault.Is(perr, fault.NotFound) {
			return Member{}, perr
		}
	}
	if h, ok := ident.ParseHandle(handle, s.cfg.Portal); ok && h.Portal == "" && !actor.IsVisitor() {
		err = fault.New(fault.NotFound, "There is no agent or person %.80q here. Check the spelling.", handle)
	} else if ok && h.Portal != "" {
		err = fault.New(fault.NotFound, "%s People of other portals cannot be invited.", fault.As(err).Safe)
	}
	return Member{}, err
}

// memberAgent finds the agent m of a conversation, if the actor may talk to it. A NotFound fault if the
// handle now belongs to an agent with another id.
func (s *Service) memberAgent(ctx context.Context, actor ident.Actor, m Member) (AgentRef, error) {
	a, err := s.findAgent(ctx, actor, m.Handle)
	if err == nil && a.ID != m.ID {
		return AgentRef{}, fault.New(fault.NotFound, "%s is not here any more; another agent has its name.", m.Handle)
	}
	return a, err
}

// findAgent resolves a handle to an agent that the actor may talk to; else a NotFound or Forbidden fault.
func (s *Service) findAgent(ctx context.Context, actor ident.Actor, handle string) (AgentRef, error) {
	a, err := s.directory.Agent(ctx, actor, handle)
	if err == nil && actor.Kind == ident.Guest && !a.Public {
		return AgentRef{}, fault.New(fault.NotFound, "There is no agent %.80q here that visitors may talk to.", handle)
	}
	return a, err
}
