package chat

import (
	"context"
	"fmt"
	"slices"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

func memberKind(actor ident.Actor) string {
	if actor.IsVisitor() {
		return "guest"
	}
	return "person"
}

func errNoRoom() error {
	return fault.New(fault.NotFound, "There is no such conversation, or you are not in it.")
}

func errNoMessage() error {
	return fault.New(fault.NotFound, "There is no such message in this conversation, or it is not for you to see.")
}

func checkRead(actor ident.Actor) error {
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in, or start a conversation as a guest.")
	}
	if !actor.May(ident.ChatRead) && !actor.May(ident.ChatWrite) {
		return fault.New(fault.Forbidden, "%s", ident.ChatRead.DescribeMissing())
	}
	return nil
}

func checkWrite(actor ident.Actor) error {
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in to talk.")
	}
	if !actor.May(ident.ChatWrite) {
		return fault.New(fault.Forbidden, "%s", ident.ChatWrite.DescribeMissing())
	}
	return nil
}

// hasAccount returns an Unauthenticated fault if the actor has no account. what completes the sentence "Sign in to".
func hasAccount(actor ident.Actor, what string) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in to %s.", what)
	}
	return nil
}

// readRoom returns a conversation that the actor is a member of; else a NotFound fault.
func (s *Service) readRoom(ctx context.Context, actor ident.Actor, id string) (Conversation, error) {
	if !ident.ValidID(id) {
		return Conversation{}, errNoRoom()
	}
	c, err := s.store.Room(ctx, id, memberKind(actor), actor.ID)
	if fault.Is(err, fault.NotFound) {
		return Conversation{}, errNoRoom()
	}
	return c, err
}

// readShownRoom is readRoom for display: the members that are agents on other hosts have Remote set.
func (s *Service) readShownRoom(ctx context.Context, actor ident.Actor, id string) (Conversation, error) {
	c, err := s.readRoom(ctx, actor, id)
	if err != nil {
		return c, err
	}
	c.Members, err = s.withHosts(ctx, c.Members)
	return c, err
}

// withHosts sets Remote of each member agent that receives its text on another host. It may change list.
func (s *Service) withHosts(ctx context.Context, list []Member) ([]Member, error) {
	var ids []string
	for _, m := range list {
		if m.Kind == "agent" {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		return list, nil
	}
	hosts, err := s.directory.Hosts(ctx, ids)
	if err != nil {
		return list, err
	}
	list = slices.Clone(list)
	for i, m := range list {
		if m.Kind == "agent" {
			list[i].Remote = hosts[m.ID]
		}
	}
	return list, nil
}

// readMembers returns all members of a conversation and the actor's own row; a NotFound fault for others.
func (s *Service) readMembers(ctx context.Context, actor ident.Actor, id string) (list []Member, me Member, err error) {
	if !ident.ValidID(id) {
		return nil, me, errNoRoom()
	}
	list, err = s.store.Members(ctx, id)
	if err != nil {
		return nil, me, err
	}
	me, ok := findMember(list, memberKind(actor), actor.ID)
	if !ok {
		return nil, me, errNoRoom()
	}
	return list, me, nil
}

// readWriters is readMembers for actions that change the conversation: members with RoleReader get a Forbidden fault.
func (s *Service) readWriters(ctx context.Context, actor ident.Actor, id string) (list []Member, me Member, err error) {
	if err := checkWrite(actor); err != nil {
		return nil, me, err
	}
	if list, me, err = s.readMembers(ctx, actor, id); err != nil {
		return nil, me, err
	}
	return list, me, checkWriter(me)
}

// checkWriter returns a Forbidden fault for a member with RoleReader.
func checkWriter(me Member) error {
	if me.Role == RoleReader {
		return fault.New(fault.Forbidden, "You may read this conversation, not write in it. Its owner can change that.")
	}
	return nil
}

// checkOwner returns a Forbidden fault for a member that is no owner.
func checkOwner(me Member) error {
	if me.Role != RoleOwner {
		return fault.New(fault.Forbidden, "Only an owner of the conversation may do this.")
	}
	return nil
}

// hiddenFrom reports whether the message amends a message that a reader with FromSeq from does not see.
func (m Message) hiddenFrom(from int64) bool { return m.Kind.Amends() && m.Target <= from }

// redactFor hides the content of an edit, deletion or reaction whose target is outside the messages
// after from, which the reader may see. The event itself stays, so that seq has no gap.
func (m Message) redactFor(from int64) Message {
	if m.hiddenFrom(from) {
		m.Parts, m.Now = nil, Now{}
	}
	return m
}

// readMessage returns the message seq if the member me sees it; else a NotFound fault.
func (s *Service) readMessage(ctx context.Context, me Member, id string, seq int64) (Message, error) {
	if seq <= me.FromSeq || seq < 1 {
		return Message{}, errNoMessage()
	}
	m, err := s.store.Message(ctx, id, seq)
	if fault.Is(err, fault.NotFound) || err == nil && m.hiddenFrom(me.FromSeq) {
		return Message{}, errNoMessage()
	}
	return m, err
}

// readText is readMessage for messages of kind Text; a deleted or other message is a fault.
func (s *Service) readText(ctx context.Context, me Member, id string, seq int64) (Message, error) {
	m, err := s.readMessage(ctx, me, id, seq)
	switch {
	case err != nil:
		return m, err
	case m.Kind != Text:
		return m, fault.New(fault.Conflict, "This line is not a message of a member.")
	case !m.Now.UnsaidAt.IsZero():
		return m, fault.New(fault.Conflict, "This message was deleted.")
	}
	return m, nil
}

func findMember(list []Member, kind, id string) (Member, bool) {
	i := slices.IndexFunc(list, func(m Member) bool { return m.Kind == kind && m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return list[i], true
}

func hasMember(list []Member, m Member) bool {
	_, ok := findMember(list, m.Kind, m.ID)
	return ok
}

func senderOf(actor ident.Actor) Sender {
	handle := actor.Name
	if actor.Kind == ident.Guest {
		handle = "guest"
	}
	kind := string(actor.Kind)
	switch actor.Kind {
	case ident.Operator:
		kind = string(ident.Person)
	case ident.Portal: // a person of another portal: has a handle, but no account here
		kind = string(ident.Guest)
	}
	return Sender{Kind: kind, ID: actor.ID, Handle: handle}
}

// is reports whether the actor is the sender, comparing kind and id.
func (by Sender) is(actor ident.Actor) bool {
	me := senderOf(actor)
	return by.ID == me.ID && by.Kind == me.Kind
}

// newEvent returns an Event message for the transcript; it is not stored yet.
func newEvent(by Sender, format string, args ...any) Message {
	return Message{ID: ident.NewID(), Sender: by, Kind: Event, Parts: []task.Part{task.TextPart(fmt.Sprintf(format, args...))}, CreatedAt: clock.Now()}
}

// asConflictField names the field of a Conflict fault, so that forms show it there.
func asConflictField(err error, name string) error {
	if e := fault.As(err); err != nil && e.Kind == fault.Conflict && len(e.Fields) == 0 {
		return &fault.Error{Kind: e.Kind, Safe: e.Safe, Fields: map[string]string{name: e.Safe}, Err: err}
	}
	return err
}

func asField(err error, name string) error {
	if e := fault.As(err); e.Kind == fault.NotFound || e.Kind == fault.Invalid {
		return &fault.Error{Kind: e.Kind, Safe: e.Safe, Fields: map[string]string{name: e.Safe}, Err: err}
	}
	return err
}
