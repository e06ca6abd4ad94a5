package store_test

import (
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

func TestReplaceGuest(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	guest := chat.Member{Kind: "guest", ID: ident.NewID(), Handle: "guest", Role: chat.RoleOwner}
	c := chat.Conversation{ID: ident.NewID(), CreatedAt: clock.Now(), Members: []chat.Member{guest}}
	if err := db.CreateConversation(ctx, c, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := db.SetMine(ctx, c.ID, "guest", guest.ID, chat.Mine{Pinned: true}); err != nil {
		t.Fatal(err)
	}
	join(t, db, c, bob, chat.RoleMember, 0)
	if _, err := db.Leave(ctx, c.ID, "person", bob.ID, clock.Now(), event(bob)); err != nil {
		t.Fatal(err)
	}
	replace := func(id string, who account.Account) error {
		_, err := db.ReplaceGuest(ctx, c.ID, id, chat.Member{Kind: "person", ID: who.ID, Handle: who.Name}, event(who))
		return err
	}
	if err := replace(guest.ID, bob); !fault.Is(err, fault.NotFound) {
		t.Errorf("somebody who left comes back: %v", err)
	}
	if err := replace(ident.NewID(), ada); !fault.Is(err, fault.NotFound) {
		t.Errorf("in the place of nobody: %v", err)
	}
	if list, err := db.Members(ctx, c.ID); err != nil || len(list) != 1 || list[0].Kind != "guest" {
		t.Errorf("a refusal changed the members: %+v, %v", list, err)
	}
	if err := replace(guest.ID, ada); err != nil {
		t.Fatal(err)
	}
	room, err := db.Room(ctx, c.ID, "person", ada.ID)
	if err != nil || room.Mine.Role != chat.RoleOwner || !room.Mine.Pinned || len(room.Members) != 1 {
		t.Errorf("%+v, %v", room, err)
	}
	if list, err := db.Members(ctx, c.ID); err != nil || len(list) != 1 || list[0].ID != ada.ID {
		t.Errorf("the members are %+v, %v", list, err)
	}
	if err := replace(guest.ID, ada); !fault.Is(err, fault.NotFound) {
		t.Errorf("a second time: %v", err)
	}
}
