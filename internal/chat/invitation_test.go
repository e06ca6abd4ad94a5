package chat_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

// stranger is a person who accepted no invitation before.
func (w *world) stranger(name string) ident.Actor {
	a := storetest.Account(w.t, w.db, name)
	w.book.people[name] = chat.Member{Kind: "person", ID: a.ID, Handle: name, Role: chat.RoleMember}
	return ident.Actor{Kind: ident.Person, ID: a.ID, Name: name, Addr: "192.0.2.2"}
}

// bound replaces the service of w by one with limits.
func (w *world) bound(l chat.RoomLimits) {
	w.Service = chat.New(w.db, w.book, w.hands, chat.Config{Portal: "home.example", Rooms: l})
}

func TestInvite_WaitsForTheInvitedPerson(t *testing.T) {
	w := open(t)
	ctx, cleo := t.Context(), w.stranger("cleo")
	c, err := w.Create(ctx, w.ada, "Plans", []string{"bob", "cleo", "calc"})
	if err != nil || len(c.Members) != 3 || len(c.Invited) != 1 || c.Invited[0].Handle != "cleo" || c.Private() {
		t.Fatalf("%+v, %v", c, err)
	}
	w.say(w.ada, c.ID, "hello")
	// The invited person sees the invitation and nothing else.
	for what, err := range map[string]error{
		"get":       second(w.Get(ctx, cleo, c.ID)),
		"messages":  third(w.Messages(ctx, cleo, c.ID, chat.Span{Limit: 10})),
		"post":      second(w.Post(ctx, cleo, c.ID, w.draft("x"))),
		"subscribe": second(w.Subscribe(ctx, cleo, c.ID, 0)),
		"read":      w.Read(ctx, cleo, c.ID, 1),
		"typing":    w.Typing(ctx, cleo, c.ID),
		"branch":    second(w.Branch(ctx, cleo, c.ID, 1)),
	} {
		kind(t, what, err, fault.NotFound)
	}
	if list, err := w.List(ctx, cleo, chat.RoomFilter{Limit: 10}); err != nil || len(list) != 0 {
		t.Errorf("cleo's list: %+v, %v", list, err)
	}
	if found, _, err := w.Search(ctx, cleo, "hello", chat.Point{}, 10); err != nil || len(found) != 0 {
		t.Errorf("cleo finds %+v, %v", found, err)
	}
	list, err := w.Contacts.List(ctx, cleo)
	if err != nil || len(list) != 1 || list[0].Title != "Plans" || list[0].Inviter != "ada" || list[0].Members != 3 {
		t.Fatalf("invitations: %+v, %v", list, err)
	}
	if notices, err := w.db.Notices(ctx, cleo.ID, 10); err != nil || len(notices) != 1 || notices[0].Href != "/chat#invitations" {
		t.Errorf("notices: %+v, %v", notices, err)
	}
	// Inviting again changes nothing.
	m, err := w.Invite(ctx, w.bob, c.ID, "cleo")
	if err != nil || m.InviterID != w.ada.ID {
		t.Errorf("again: %+v, %v", m, err)
	}
	kind(t, "another accepts", second(w.Contacts.Accept(ctx, w.eve, c.ID)), fault.NotFound)
	if c, err = w.Contacts.Accept(ctx, cleo, c.ID); err != nil || len(c.Members) != 4 || len(c.Invited) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	kind(t, "twice", second(w.Contacts.Accept(ctx, cleo, c.ID)), fault.NotFound)
	w.say(cleo, c.ID, "here")
	// From now on ada adds cleo without asking; bob does not.
	if m, err := w.Invite(ctx, w.ada, w.room(w.ada), "cleo"); err != nil || m.InviterID != "" {
		t.Errorf("by ada: %+v, %v", m, err)
	}
	if m, err := w.Invite(ctx, w.bob, w.room(w.bob), "cleo"); err != nil || m.InviterID == "" {
		t.Errorf("by bob: %+v, %v", m, err)
	}
	// Even ada asks again for a conversation that cleo left.
	if err := w.DeleteConversation(ctx, cleo, c.ID); err != nil {
		t.Fatal(err)
	}
	if m, err := w.Invite(ctx, w.ada, c.ID, "cleo"); err != nil || m.InviterID == "" {
		t.Errorf("after leaving: %+v, %v", m, err)
	}
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

func TestDecline_EndsTheInvitationForGood(t *testing.T) {
	w := open(t)
	ctx, cleo := t.Context(), w.stranger("cleo")
	room := w.room(w.ada, "bob", "cleo")
	if err := w.Contacts.Decline(ctx, cleo, room); err != nil {
		t.Fatal(err)
	}
	_, declined := w.Invite(ctx, w.ada, room, "cleo")
	kind(t, "the same inviter", declined, fault.Conflict)
	if m, err := w.Invite(ctx, w.bob, room, "cleo"); err != nil || m.InviterID != w.bob.ID {
		t.Errorf("another inviter: %+v, %v", m, err)
	}
	// Owners and the inviter withdraw an invitation; the others do not.
	if _, err := w.Invite(ctx, w.ada, room, "eve"); err != nil {
		t.Fatal(err)
	}
	kind(t, "a member withdraws", w.Remove(ctx, w.eve, room, "cleo"), fault.Forbidden)
	kind(t, "an owner withdraws", w.Remove(ctx, w.ada, room, "cleo"), "")
	if list, err := w.Contacts.List(ctx, cleo); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	// To repeat the invitation of another member betrays nothing.
	if _, err := w.Invite(ctx, w.bob, room, "cleo"); err != nil {
		t.Fatal(err)
	}
	if m, err := w.Invite(ctx, w.ada, room, "cleo"); err != nil || m.InviterID != w.bob.ID {
		t.Errorf("%+v, %v", m, err)
	}
	if err := w.Contacts.Decline(ctx, cleo, room); err != nil {
		t.Fatal(err)
	}
	// A block gives the same answer, and ends pending invitations.
	other := w.room(w.eve, "cleo")
	if _, err := w.Contacts.Block(ctx, cleo, "eve"); err != nil {
		t.Fatal(err)
	}
	if list, err := w.Contacts.List(ctx, cleo); err != nil || len(list) != 0 {
		t.Errorf("after the block: %+v, %v", list, err)
	}
	for _, id := range []string{other, w.room(w.eve)} {
		if _, err := w.Invite(ctx, w.eve, id, "cleo"); err == nil || err.Error() != declined.Error() {
			t.Errorf("blocked: %v, declined: %v", err, declined)
		}
	}
	kind(t, "a new conversation", second(w.Create(ctx, w.eve, "", []string{"cleo"})), fault.Conflict)
}

func TestBlock_StopsMessagesBetweenTwo(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	two, three := w.room(w.ada, "bob", "calc"), w.room(w.eve, "ada", "bob")
	said := w.say(w.ada, two, "before")
	if _, err := w.Contacts.Block(ctx, w.bob, "ada"); err != nil {
		t.Fatal(err)
	}
	_, err := w.Post(ctx, w.ada, two, w.draft("after"))
	kind(t, "between two", err, fault.Forbidden)
	if strings.Contains(err.Error(), "block") {
		t.Errorf("the answer betrays the block: %v", err)
	}
	title := "words of a title"
	for what, err := range map[string]error{
		"an edit":      second(w.Edit(ctx, w.ada, two, said.Message.Seq, text("changed"))),
		"a title":      second(w.Set(ctx, w.ada, two, chat.Change{Title: &title})),
		"a reaction":   second(w.React(ctx, w.ada, two, said.Message.Seq, "👍", true)),
		"a third":      second(w.Invite(ctx, w.ada, two, "eve")), // else the conversation would be a larger one
		"a join link":  third(w.NewLink(ctx, w.ada, two, chat.LinkDraft{Kind: chat.JoinLink})),
		"an agent":     second(w.Invite(ctx, w.ada, two, "guide")),
		"a new answer": second(w.Regenerate(ctx, w.ada, two, said.Message.Seq, "test")),
	} {
		kind(t, what, err, fault.Forbidden)
	}
	pinned := true
	if _, err := w.Set(ctx, w.ada, two, chat.Change{Pinned: &pinned}); err != nil {
		t.Errorf("a setting of one's own: %v", err)
	}
	w.say(w.bob, two, "bob may write")
	w.say(w.bob, three, "of bob")
	w.say(w.ada, three, "among three")
	unread := func() int {
		t.Helper()
		list, err := w.List(ctx, w.bob, chat.RoomFilter{Limit: 10})
		i := slices.IndexFunc(list, func(c chat.Conversation) bool { return c.ID == three })
		if err != nil || i < 0 {
			t.Fatal(list, err)
		}
		return list[i].Unread
	}
	if n := unread(); n != 0 {
		t.Errorf("%d unread from a blocked person", n)
	}
	all, err := w.List(ctx, w.bob, chat.RoomFilter{Limit: 10})
	for _, c := range all {
		if err != nil || strings.Contains(c.Snippet, "among three") {
			t.Errorf("the list shows %q of a blocked person: %v", c.Snippet, err)
		}
	}
	list, err := w.Contacts.Blocks(ctx, w.bob)
	if err != nil || len(list) != 1 || list[0].Handle != "ada" {
		t.Errorf("%+v, %v", list, err)
	}
	kind(t, "oneself", second(w.Contacts.Block(ctx, w.bob, "bob")), fault.Conflict)
	kind(t, "an unknown person", second(w.Contacts.Block(ctx, w.bob, "zoe")), fault.NotFound)
	if err := w.Contacts.Unblock(ctx, w.bob, "ada"); err != nil {
		t.Fatal(err)
	}
	w.say(w.ada, two, "again")
	if n := unread(); n != 1 {
		t.Errorf("%d unread after the block ended", n)
	}
	// The block ended the right to add without asking.
	if m, err := w.Invite(ctx, w.ada, w.room(w.ada), "bob"); err != nil || m.InviterID == "" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestInvite_Bounds(t *testing.T) {
	w := open(t)
	ctx, cleo := t.Context(), w.stranger("cleo")
	w.bound(chat.RoomLimits{Pending: 2, PerDay: 5}) // each was acquainted by 2
	w.room(w.ada, "cleo")
	w.room(w.bob, "cleo")
	_, err := w.Create(ctx, w.eve, "", []string{"cleo"})
	kind(t, "a third pending invitation", err, fault.Conflict)
	list, err := w.Contacts.List(ctx, cleo)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := w.Contacts.Decline(ctx, cleo, list[0].ConversationID); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		w.stranger(fmt.Sprint("new", i))
		w.room(w.eve, fmt.Sprint("new", i))
	}
	w.room(w.eve, "cleo")
	w.stranger("last")
	_, err = w.Create(ctx, w.eve, "", []string{"last"})
	kind(t, "a fourth on this day", err, fault.RateLimited)
	if e := fault.As(err); e.RetryAfter <= 0 || e.RetryAfter > 24*time.Hour {
		t.Errorf("retry after %v", e.RetryAfter)
	}
	w.room(w.eve, "ada", "bob") // no invitations
	storetest.Sound(t, w.db)
}

// The bound holds against an accomplice who adds the account to conversations that it leaves, and against
// many deletions of one conversation at the same time.
func TestCreate_RoomsAreNotUndercounted(t *testing.T) {
	for what, trick := range map[string]func(w *world){
		"added and left": func(w *world) {
			if err := w.DeleteConversation(w.t.Context(), w.ada, w.room(w.bob, "ada")); err != nil {
				w.t.Fatal(err)
			}
		},
		"deleted twice": func(w *world) {
			id := w.room(w.ada)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() { _ = w.DeleteConversation(w.t.Context(), w.ada, id) })
			}
			all.Wait()
		},
	} {
		w := open(t)
		w.bound(chat.RoomLimits{PerAccount: 8})
		for range 3 {
			w.room(w.ada)
		}
		for range 6 {
			trick(w)
		}
		for range 5 {
			w.room(w.ada)
		}
		kind(t, what, second(w.Create(t.Context(), w.ada, "", nil)), fault.Conflict)
	}
}

// One inviter leaves room for the invitations of others.
func TestInvite_OneInviterDoesNotFillTheList(t *testing.T) {
	w := open(t)
	w.bound(chat.RoomLimits{Pending: 20})
	w.stranger("cleo")
	w.room(w.ada, "cleo")
	w.room(w.ada, "cleo")
	_, err := w.Create(t.Context(), w.ada, "", []string{"cleo"})
	kind(t, "a third of one inviter", err, fault.Conflict)
	w.room(w.bob, "cleo")
}

// A person added by others without asking can still open conversations: from half of the bound on they
// are asked.
func TestInvite_AdditionsLeaveRoomForOwn(t *testing.T) {
	w := open(t)
	w.bound(chat.RoomLimits{PerAccount: 6})
	ctx := t.Context()
	for range 6 {
		id := w.room(w.ada, "bob")
		if err := w.DeleteConversation(ctx, w.ada, id); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := w.db.CountRooms(ctx, w.bob.ID, 100); err != nil || n != 3 {
		t.Errorf("bob was added to %d conversations: %v", n, err)
	}
	m, err := w.Invite(ctx, w.ada, w.room(w.ada), "bob")
	if err != nil || m.InviterID == "" {
		t.Errorf("%+v, %v", m, err)
	}
	w.room(w.bob)
}

func TestCreate_RoomsPerAccount(t *testing.T) {
	w := open(t)
	w.bound(chat.RoomLimits{PerAccount: 3})
	ctx := t.Context()
	var rooms []string
	for range 3 {
		rooms = append(rooms, w.room(w.ada, "calc"))
	}
	_, err := w.Create(ctx, w.ada, "", nil)
	kind(t, "one too many", err, fault.Conflict)
	_, err = w.Ask(ctx, w.ada, chat.Ask{Agent: "calc", ClientID: "1", Parts: text("1+1")})
	kind(t, "a question that opens one", err, fault.Conflict)
	kind(t, "a question in one", second(w.Ask(ctx, w.ada, chat.Ask{Agent: "calc", Context: rooms[0], ClientID: "1", Parts: text("1+1")})), "")
	w.room(w.bob)
	left, err := w.Contacts.LeaveMany(ctx, w.ada, []string{rooms[1], ident.NewID(), rooms[2]})
	if err != nil || !slices.Equal(left, rooms[1:]) {
		t.Fatal(left, err)
	}
	w.room(w.ada)
	w.room(w.ada)
	kind(t, "again one too many", second(w.Create(ctx, w.ada, "", nil)), fault.Conflict)
	kind(t, "none", second(w.Contacts.LeaveMany(ctx, w.ada, nil)), fault.Invalid)
	kind(t, "too many", second(w.Contacts.LeaveMany(ctx, w.ada, make([]string, chat.MaxLeft+1))), fault.Invalid)
}

// The fault of a block is the same as those of the other reasons that the invited person decides.
func TestStanding_Admit(t *testing.T) {
	l := chat.RoomLimits{PerAccount: 10, Pending: 20, PerDay: 5}
	for _, c := range []struct {
		name   string
		s      chat.Standing
		direct bool
		fault  fault.Kind
	}{
		{"a stranger", chat.Standing{}, false, ""},
		{"accepted before", chat.Standing{Accepted: true}, true, ""},
		{"accepted before, at the bounds", chat.Standing{Accepted: true, Pending: 20, PendingBy: 2, Sent: 5, Rooms: 4}, true, ""},
		{"accepted, in many", chat.Standing{Accepted: true, Rooms: 5}, false, ""},
		{"accepted, left this one", chat.Standing{Accepted: true, Left: true}, false, ""},
		{"blocked", chat.Standing{Accepted: true, Blocked: true}, false, fault.Conflict},
		{"declined", chat.Standing{Declined: true}, false, fault.Conflict},
		{"declined after leaving", chat.Standing{Accepted: true, Left: true, Declined: true}, false, fault.Conflict},
		{"too many pending", chat.Standing{Pending: 20}, false, fault.Conflict},
		{"too many pending of one inviter", chat.Standing{Pending: 2, PendingBy: 2}, false, fault.Conflict},
		{"too many sent", chat.Standing{Sent: 5}, false, fault.RateLimited},
	} {
		direct, err := c.s.Admit("cleo", l, time.Now())
		kind(t, c.name, err, c.fault)
		if direct != c.direct {
			t.Errorf("%s: direct is %v", c.name, direct)
		}
	}
}
