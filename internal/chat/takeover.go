package chat

import (
	"context"
	"slices"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// MaxTakenOver is the number of conversations of a guest that an account takes over at once.
const MaxTakenOver = 100

// GuestRooms returns the conversations of a guest that TakeOver would give to an account, most recently changed
// first, at most MaxTakenOver; none for other actors and for a guest without a session.
func (s *Service) GuestRooms(ctx context.Context, guest ident.Actor) ([]Conversation, error) {
	if guest.Kind != ident.Guest || guest.ID == "" {
		return []Conversation{}, nil
	}
	var out []Conversation
	for _, archived := range []bool{false, true} {
		list, err := s.store.RoomsOf(ctx, memberKind(guest), guest.ID,
			RoomFilter{Archived: archived, Limit: MaxTakenOver - len(out)})
		if err != nil {
			return nil, err
		}
		if out = append(out, list...); len(out) >= MaxTakenOver {
			break
		}
	}
	return out, nil
}

// TakeOver puts a person in the place of a guest in the conversations of GuestRooms, each in one transaction. The
// caller must have authenticated both, because it is the guest's session that gives the right. Messages keep their
// author, and running tasks go on. It leaves out conversations in which the person is, was or is invited, and those beyond the
// bounds of the account, oldest first. After an error it can be called again.
func (s *Service) TakeOver(ctx context.Context, person, guest ident.Actor) error {
	if err := hasAccount(person, "keep the chats"); err != nil {
		return err
	}
	if err := checkWrite(person); err != nil {
		return err
	}
	list, err := s.GuestRooms(ctx, guest)
	if err != nil {
		return err
	}
	for i := range list {
		err := s.rooms.allow(ctx, person)
		if fault.Is(err, fault.Conflict) || fault.Is(err, fault.RateLimited) {
			list = list[:i]
			break
		}
		if err != nil {
			return err
		}
	}
	by := senderOf(person)
	for _, c := range slices.Backward(list) { // the oldest first, so that the list keeps its order
		e, err := s.store.ReplaceGuest(ctx, c.ID, guest.ID, Member{Kind: memberKind(person), ID: person.ID, Handle: by.Handle},
			newEvent(by, "the visitor of this conversation logged in as %s", by.Handle))
		if fault.Is(err, fault.NotFound) {
			s.rooms.change(person.ID, -1)
			continue
		}
		if err != nil {
			return err
		}
		s.live.endSubscriptions(c.ID, memberKind(guest), guest.ID)
		s.live.passMessage(e)
	}
	return nil
}
