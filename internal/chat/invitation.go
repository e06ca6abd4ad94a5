package chat

import (
	"context"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// RoomLimits bound the conversations and invitations of accounts; 0 is no bound.
type RoomLimits struct {
	// PerAccount bounds the conversations that an account is in and opens more of.
	PerAccount int
	// Pending bounds the invitations of one person that are not answered yet, PerDay those that one
	// account sends in a day (UTC).
	Pending, PerDay int
}

// pendingShare is the part of the pending invitations of a person that one inviter may send, so that one
// account does not keep those of others out.
const pendingShare = 10

// FreelyAdded is the number of conversations up to which others add a person without asking, 0 for no
// bound. The other half stays for those that the person opens.
func (l RoomLimits) FreelyAdded() int { return (l.PerAccount + 1) / 2 }

// Invitees are people whom a member adds to a conversation. Each becomes a member at once or gets an
// invitation, as Standing.Admit decides in the transaction.
type Invitees struct {
	By     Sender
	People []Member
	Limits RoomLimits
}

// Standing is the relation of a person to an inviter and a conversation.
type Standing struct {
	Accepted bool // the person accepted an invitation of the inviter before
	Blocked  bool // the person blocked the inviter
	Left     bool // the person left the conversation by their own will
	Declined bool // the person declined an invitation of the inviter to the conversation
	Pending  int  // invitations that the person has not answered
	// PendingBy counts those of the inviter among them.
	PendingBy int
	Sent      int // invitations that the inviter sent today
	Rooms     int // conversations that the person is in, counted up to RoomLimits.FreelyAdded
}

// Admit reports whether the person becomes a member at once (true) or gets an invitation. The fault is
// the same for a block, a declined invitation and too many invitations, so that it betrays none of them.
func (s Standing) Admit(handle string, l RoomLimits, now time.Time) (direct bool, err error) {
	switch {
	case s.Blocked, s.Declined && !s.Accepted:
		return false, errNotInvitable(handle)
	case s.Accepted && !s.Left && (l.PerAccount <= 0 || s.Rooms < l.FreelyAdded()):
		return true, nil
	case s.Declined, l.Pending > 0 && (s.Pending >= l.Pending || s.PendingBy >= max(l.Pending/pendingShare, 1)):
		return false, errNotInvitable(handle)
	case l.PerDay > 0 && s.Sent >= l.PerDay:
		day := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		return false, fault.Limited(day.Sub(now), "You sent %d invitations today, as many as one account may. "+
			"Invite more people after midnight (UTC), or give them a link to the conversation.", l.PerDay)
	}
	return false, nil
}

func errNotInvitable(handle string) error {
	return fault.New(fault.Conflict, "%s cannot be invited to this conversation now. "+
		"An owner of the conversation can make a link that lets people join.", handle)
}

// PendingInvitation is an invitation as the invited person sees it: nothing of the transcript.
type PendingInvitation struct {
	ConversationID string
	Title          string
	InviterID      string
	Inviter        string // handle
	Members        int
	CreatedAt      time.Time
}

// MaxBlocks is the number of people that one account can block. It bounds the rows of an account; no person
// meets it by hand.
const MaxBlocks = 1000

// Block is a person that an account blocked.
type Block struct {
	ID, Handle string
	CreatedAt  time.Time
}

// Invitations stores the invitations of people to conversations, and their blocks. A missing invitation
// is a NotFound fault.
type Invitations interface {
	// CreateInviting is CreateConversation with people. It returns c with the members and invited
	// people as they are stored; one person who cannot be invited fails the whole.
	CreateInviting(ctx context.Context, c Conversation, in Invitees) (Conversation, error)
	// InvitePerson adds the only person of in to a conversation with the event joined, or stores an
	// invitation with the event invited. A present member or invited person is returned without an event.
	InvitePerson(ctx context.Context, id string, in Invitees, joined, invited Message) (Member, Message, error)
	// Invited lists the invited people of a conversation.
	Invited(ctx context.Context, id string) ([]Member, error)
	// InvitationsOf lists the pending invitations of a person, newest first.
	InvitationsOf(ctx context.Context, personID string) ([]PendingInvitation, error)
	// AcceptInvitation makes the person a member and remembers that the person accepted the inviter.
	AcceptInvitation(ctx context.Context, id string, person Member, event Message) (Message, error)
	DeclineInvitation(ctx context.Context, id, personID string) error
	// WithdrawInvitation deletes a pending invitation; its inviter may invite the person again.
	WithdrawInvitation(ctx context.Context, id, personID string) error
	// CountRooms counts the conversations that a person is in, at most up to most.
	CountRooms(ctx context.Context, personID string, most int) (int, error)

	Blocks(ctx context.Context, personID string) ([]Block, error)
	// Block also declines the pending invitations of the blocked person and ends their right to add the
	// person without asking. More than MaxBlocks are a Conflict fault.
	Block(ctx context.Context, personID string, b Block) error
	// Unblock does nothing if the person is not blocked.
	Unblock(ctx context.Context, personID, blockedID string) error
	// BlockersOf returns the ids of the people who blocked a person. The caller must not change the list.
	BlockersOf(ctx context.Context, personID string) ([]string, error)
}

func errNoInvitation() error {
	return fault.New(fault.NotFound, "There is no such invitation. It was answered or withdrawn, or never sent.")
}

// Contacts answers invitations and keeps the list of people that an account blocked.
type Contacts struct{ svc *Service }

// List returns the actor's pending invitations, newest first; none for a visitor.
func (s *Contacts) List(ctx context.Context, actor ident.Actor) ([]PendingInvitation, error) {
	if !actor.IsPerson() {
		return nil, checkReadAccount(actor)
	}
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	return s.svc.store.InvitationsOf(ctx, actor.ID)
}

// checkReadAccount returns a fault for a caller without any session; a visitor has no invitations.
func checkReadAccount(actor ident.Actor) error {
	if actor.ID == "" {
		return hasAccount(actor, "see your invitations")
	}
	return nil
}

// Accept makes the actor a member of a conversation that they are invited to. Later conversations of the
// inviter then add them without asking. A NotFound fault without an invitation.
func (s *Contacts) Accept(ctx context.Context, actor ident.Actor, id string) (Conversation, error) {
	in, err := s.find(ctx, actor, id)
	if err != nil {
		return Conversation{}, err
	}
	if err := s.svc.rooms.allow(ctx, actor); err != nil {
		return Conversation{}, err
	}
	set, _, err := s.svc.store.SettingsOf(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return Conversation{}, errNoInvitation()
	}
	if err != nil {
		return Conversation{}, err
	}
	by := senderOf(actor)
	m := Member{Kind: "person", ID: actor.ID, Handle: by.Handle, Role: RoleMember, FromSeq: seesFrom(set)}
	e, err := s.svc.store.AcceptInvitation(ctx, id, m, newEvent(by, "%s joined, invited by %s", by.Handle, in.Inviter))
	if err != nil {
		return Conversation{}, err
	}
	s.svc.live.passMessage(e)
	return s.svc.readShownRoom(ctx, actor, id)
}

// Decline removes an invitation of the actor. Its inviter cannot invite the actor to the same
// conversation again. A NotFound fault without an invitation.
func (s *Contacts) Decline(ctx context.Context, actor ident.Actor, id string) error {
	if _, err := s.find(ctx, actor, id); err != nil {
		return err
	}
	if err := s.svc.limits.limitRate(actor); err != nil {
		return err
	}
	return s.svc.store.DeclineInvitation(ctx, id, actor.ID)
}

func (s *Contacts) find(ctx context.Context, actor ident.Actor, id string) (PendingInvitation, error) {
	if err := checkWrite(actor); err != nil {
		return PendingInvitation{}, err
	}
	if !actor.IsPerson() || !ident.ValidID(id) {
		return PendingInvitation{}, errNoInvitation()
	}
	list, err := s.svc.store.InvitationsOf(ctx, actor.ID)
	if err != nil {
		return PendingInvitation{}, err
	}
	i := slices.IndexFunc(list, func(p PendingInvitation) bool { return p.ConversationID == id })
	if i < 0 {
		return PendingInvitation{}, errNoInvitation()
	}
	return list[i], nil
}

// Blocks returns the people that the actor blocked, by handle.
func (s *Contacts) Blocks(ctx context.Context, actor ident.Actor) ([]Block, error) {
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	if err := hasAccount(actor, "block people"); err != nil {
		return nil, err
	}
	return s.svc.store.Blocks(ctx, actor.ID)
}

// Block stops a person from inviting and writing to the actor. The person is not notified. A NotFound
// fault for an unknown handle.
func (s *Contacts) Block(ctx context.Context, actor ident.Actor, handle string) (Block, error) {
	m, err := s.person(ctx, actor, handle)
	if err != nil {
		return Block{}, err
	}
	if m.ID == actor.ID {
		return Block{}, fault.New(fault.Conflict, "You cannot block yourself.")
	}
	b := Block{ID: m.ID, Handle: m.Handle, CreatedAt: clock.Now()}
	return b, s.svc.store.Block(ctx, actor.ID, b)
}

// Unblock lets a person invite and write again; a person who is not blocked stays so.
func (s *Contacts) Unblock(ctx context.Context, actor ident.Actor, handle string) error {
	if err := checkWrite(actor); err != nil {
		return err
	}
	if err := hasAccount(actor, "block people"); err != nil {
		return err
	}
	list, err := s.svc.store.Blocks(ctx, actor.ID)
	if err != nil {
		return err
	}
	h, _ := ident.ParseHandle(handle, s.svc.cfg.Portal)
	i := slices.IndexFunc(list, func(b Block) bool { return b.Handle == h.String() })
	if i < 0 { // A disabled account can be unblocked, so the directory is asked last.
		_, err := s.person(ctx, actor, handle)
		return err
	}
	if err := s.svc.limits.limitRate(actor); err != nil {
		return err
	}
	return s.svc.store.Unblock(ctx, actor.ID, list[i].ID)
}

func (s *Contacts) person(ctx context.Context, actor ident.Actor, handle string) (Member, error) {
	if err := checkWrite(actor); err != nil {
		return Member{}, err
	}
	if err := hasAccount(actor, "block people"); err != nil {
		return Member{}, err
	}
	if err := s.svc.limits.limitRate(actor); err != nil {
		return Member{}, err
	}
	m, err := s.svc.directory.Person(ctx, actor, handle)
	if err != nil {
		return Member{}, asField(err, "person")
	}
	return m, nil
}

// checkDelivery refuses a message to a conversation of two people if the other one blocked the sender. The
// words do not say so. In larger conversations pages fold the message for those who blocked its sender.
func (s *Contacts) checkDelivery(ctx context.Context, actor ident.Actor, members []Member) error {
	var other Member
	people := 0
	for _, m := range members {
		if m.Kind == "agent" {
			continue
		}
		if people++; m.ID != actor.ID {
			other = m
		}
	}
	if people != 2 || !actor.IsPerson() {
		return nil
	}
	list, err := s.svc.store.BlockersOf(ctx, actor.ID)
	if err == nil && slices.Contains(list, other.ID) {
		return fault.New(fault.Forbidden, "%s takes no messages in this conversation now. "+
			"Nothing was sent; you can leave the conversation.", other.Handle)
	}
	return err
}

// withdraw deletes the pending invitation of a handle that is no member of the conversation: the inviter
// and owners may do so.
func (s *Contacts) withdraw(ctx context.Context, me Member, id, handle string) error {
	list, err := s.svc.store.Invited(ctx, id)
	if err != nil {
		return err
	}
	m, err := s.svc.findNamed(list, handle)
	if err != nil {
		return err
	}
	if me.Role != RoleOwner && m.InviterID != me.ID {
		return fault.New(fault.Forbidden, "Only the inviter and owners of the conversation may withdraw an invitation.")
	}
	return s.svc.store.WithdrawInvitation(ctx, id, m.ID)
}

// MaxLeft is the number of conversations that one call of LeaveMany takes.
const MaxLeft = 100

// LeaveMany is DeleteConversation for several conversations, in the given order. It returns those that
// the actor left; ids of others are skipped. After an error the conversations before it are left.
func (s *Contacts) LeaveMany(ctx context.Context, actor ident.Actor, ids []string) (left []string, err error) {
	if err := checkWrite(actor); err != nil {
		return nil, err
	}
	var c fault.Check
	c.Field(len(ids) > 0, "ids", "name the conversations to leave")
	c.Field(len(ids) <= MaxLeft, "ids", "name at most %d conversations at once", MaxLeft)
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := s.svc.limits.limitRate(actor); err != nil {
		return nil, err
	}
	left = []string{}
	for _, id := range ids {
		switch err := s.svc.DeleteConversation(ctx, actor, id); {
		case err == nil:
			left = append(left, id)
		case !fault.Is(err, fault.NotFound):
			return left, err
		}
	}
	return left, nil
}
