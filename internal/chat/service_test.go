package chat_test

import (
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// TestDelete_LeavesWhileOthersAreThereAndRemovesTheRoomWithTheLast also shows
// that a room keeps an owner.
func TestDelete_LeavesWhileOthersAreThereAndRemovesTheRoomWithTheLast(t *testing.T) {
	db := storetest.New(t)
	a, b := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	storetest.Acquaint(t, db, a, b)
	ada, bob := ident.Actor{Kind: ident.Person, ID: a.ID, Name: "ada"}, ident.Actor{Kind: ident.Person, ID: b.ID, Name: "bob"}
	s := chat.New(db, &book{people: map[string]chat.Member{"bob": {Kind: "person", ID: b.ID, Handle: "bob", Role: "member"}}}, &hands{}, chat.Config{})
	ctx := t.Context()
	room, err := s.Create(ctx, ada, "", []string{"bob"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Post(ctx, bob, room.ID, chat.Draft{ClientID: "1", Parts: []task.Part{task.TextPart("hi")}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, bob, room.ID, "ada"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a member removes the owner: %v", err)
	}
	if err := s.DeleteConversation(ctx, ada, room.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, ada, room.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("who left still sees it: %v", err)
	}
	left, err := s.Get(ctx, bob, room.ID)
	if err != nil || left.Members[0].Role != "owner" {
		t.Errorf("the room has no owner: %+v, %v", left.Members, err)
	}
	if err := s.DeleteConversation(ctx, bob, room.ID); err != nil {
		t.Fatal(err)
	}
	if r := storetest.Sound(t, db); r.Conversations != 0 || r.Messages != 0 {
		t.Errorf("%d conversations remain", r.Conversations)
	}
}
