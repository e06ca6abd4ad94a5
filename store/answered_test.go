package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// asking is a conversation that begins with a question to an agent.
func asking(ann account.Account, calc hub.Agent, at time.Time) (chat.Conversation, chat.Post) {
	room := chat.Conversation{ID: ident.NewID(), CreatedAt: at, Members: []chat.Member{
		{Kind: "person", ID: ann.ID, Handle: ann.Name, Role: chat.RoleOwner}, {Kind: "agent", ID: calc.ID, Handle: "calc", Role: chat.RoleMember}}}
	p := storetest.Post(room, ann, ident.NewID(), "2 + 2", calc)
	p.Title, p.Message.CreatedAt = "2 + 2", at
	for i := range p.Ask {
		p.Ask[i].CreatedAt, p.Ask[i].UpdatedAt, p.Ask[i].Face = at, at, "a2a"
		p.Ask[i].Via = task.Chain{"elsewhere.example/0123456789abcdef"}
	}
	return room, p
}

// What is stored at once must be what would have been stored step by step.
func TestCreateAnswered_LeavesWhatTheLongWayLeaves(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := context.Background()
	ann := storetest.Account(t, db, "ann")
	calc := storetest.Agent(t, db, "calc", account.Account{})
	hook := webhook(t, db, ann, notify.MessageSaid, notify.TaskEnded, notify.TaskAsks)
	at := clock.Now().Add(-time.Second)
	ended := at.Add(30 * time.Millisecond)
	answer := func(room chat.Conversation, k task.Task) chat.Message {
		return chat.Message{ConversationID: room.ID, ID: ident.NewID(), ClientID: k.ID, Sender: chat.Sender{Kind: "agent", ID: calc.ID, Handle: "calc"},
			Kind: chat.Text, Parts: []task.Part{task.TextPart("4")}, TaskID: k.ID, TaskState: task.Completed, CreatedAt: ended}
	}
	days := func() hub.Day {
		t.Helper()
		list, err := db.Days(ctx, calc.ID, at.Add(-24*time.Hour))
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		return list[len(list)-1]
	}

	long, p := asking(ann, calc, at)
	posted, err := db.CreateAsking(ctx, long, nil, p, nil)
	if err != nil || len(posted.Tasks) != 1 {
		t.Fatal(posted, err)
	}
	list := claim(t, db, 1)
	if len(list) != 1 {
		t.Fatal(list)
	}
	k := list[0]
	k.State, k.UpdatedAt = task.Completed, ended
	if _, err := db.Finish(ctx, chat.Ended{Task: k, Message: answer(long, k)}); err != nil {
		t.Fatal(err)
	}
	before, told := days(), waiting(t, db, hook)
	if len(told) != 2 {
		t.Errorf("a webhook is told %q", told)
	}

	short, p := asking(ann, calc, at)
	short.Title = p.Title
	k2 := p.Ask[0]
	k2.State, k2.UpdatedAt = task.Completed, ended
	said, err := db.CreateAnswered(ctx, chat.Answered{Room: short, Question: p.Message, Answer: answer(short, k2), Task: k2})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a webhook is told", waiting(t, db, hook), told...)
	after := days()
	after.Calls, after.Completed, after.Took = after.Calls-before.Calls, after.Completed-before.Completed, after.Took-before.Took
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("its use is counted otherwise:\n%s", diff)
	}

	type all struct {
		Room chat.Conversation
		Task task.Task
		Said []chat.Message
	}
	read := func(id, taskID string) (a all) {
		t.Helper()
		var err error
		if a.Room, err = db.Room(ctx, id, "person", ann.ID); err != nil {
			t.Fatal(err)
		}
		if a.Task, err = db.TaskByID(ctx, taskID); err != nil {
			t.Fatal(err)
		}
		a.Said = storetest.Messages(t, db, id)
		a.Room.ID, a.Task.ID, a.Task.ConversationID = "", "", ""
		for i := range a.Said {
			m := &a.Said[i]
			m.ID, m.ConversationID, m.ClientID, m.Hash = "", "", "", nil
			if m.TaskID == taskID {
				m.TaskID = "that"
			}
		}
		return a
	}
	if diff := cmp.Diff(read(long.ID, k.ID), read(short.ID, k2.ID)); diff != "" {
		t.Errorf("stored otherwise:\n%s", diff)
	}
	if m, err := db.Said(ctx, short.ID, ann.ID, p.Message.ClientID); err != nil || m.Seq != 1 {
		t.Errorf("the question by its client id: %d, %v", m.Seq, err)
	}
	if m, err := db.Said(ctx, short.ID, calc.ID, k2.ID); err != nil || m.Seq != 2 || m.ID != said[1].ID {
		t.Errorf("the answer by its client id: %d, %v", m.Seq, err)
	}
	if list, err := db.Queued(ctx, 0, 10); err != nil || len(list) != 0 {
		t.Errorf("still in the queue: %+v, %v", list, err)
	}
	storetest.Sound(t, db)
}

func TestCreateAsking_StoresAllOrNothing(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := context.Background()
	ann := storetest.Account(t, db, "ann")
	room, p := asking(ann, storetest.Agent(t, db, "calc", account.Account{}), clock.Now())
	p.Files = []string{"0000000000000000000000000000000000000000000000000000000000000000"} // nobody sent
	if _, err := db.CreateAsking(ctx, room, nil, p, nil); !fault.Is(err, fault.NotFound) {
		t.Fatalf("a file that is not there: %v", err)
	}
	if _, err := db.Room(ctx, room.ID, "person", ann.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the room of a refused question: %v", err)
	}
	if list, err := db.ActiveTasks(ctx, "", ann.ID); err != nil || len(list) != 0 {
		t.Errorf("its tasks: %+v, %v", list, err)
	}
	p.Files = nil
	said := []chat.Message{{ID: ident.NewID(), Sender: p.Message.Sender, Kind: chat.Text, Parts: []task.Part{task.TextPart("before")}, CreatedAt: p.Message.CreatedAt}}
	done, err := db.CreateAsking(ctx, room, said, p, nil)
	if err != nil || done.Message.Seq != 2 || len(done.Tasks) != 1 || done.Tasks[0].MessageSeq != 2 {
		t.Errorf("%+v, %v", done, err)
	}
}

// Of several at once that ask the same for the first time, one opens a
// conversation.
func TestCreate_FirstAskIsKeptOnce(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := context.Background()
	ann := storetest.Account(t, db, "ann")
	calc := storetest.Agent(t, db, "calc", account.Account{})
	first := func(room chat.Conversation) *chat.FirstAsk {
		return &chat.FirstAsk{CallerID: ann.ID, AgentID: calc.ID, ClientID: "m-1", ConversationID: room.ID}
	}
	room, p := asking(ann, calc, clock.Now())
	if _, err := db.CreateAsking(ctx, room, nil, p, first(room)); err != nil {
		t.Fatal(err)
	}
	for what, create := range map[string]func(chat.Conversation, chat.Post) error{
		"asking": func(c chat.Conversation, p chat.Post) error {
			_, err := db.CreateAsking(ctx, c, nil, p, first(c))
			return err
		},
		"answered": func(c chat.Conversation, p chat.Post) error {
			k := p.Ask[0]
			k.State = task.Completed
			_, err := db.CreateAnswered(ctx, chat.Answered{Room: c, Question: p.Message, Task: k, First: first(c),
				Answer: chat.Message{ConversationID: c.ID, ID: ident.NewID(), ClientID: k.ID, Sender: chat.Sender{Kind: "agent", ID: calc.ID, Handle: "calc"},
					Kind: chat.Text, Parts: []task.Part{task.TextPart("4")}, TaskID: k.ID, TaskState: k.State, CreatedAt: p.Message.CreatedAt}})
			return err
		},
	} {
		again, p := asking(ann, calc, clock.Now())
		var before *chat.AskedBefore
		if err := create(again, p); !errors.As(err, &before) || before.ConversationID != room.ID {
			t.Errorf("%s again: %v", what, err)
		}
		if _, err := db.Room(ctx, again.ID, "person", ann.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s again leaves a room: %v", what, err)
		}
	}
}

// Who comes second is told so when the first conversation can be read, even
// where both were written together.
func TestCreate_FirstAskIsThereWhenOthersAreToldOfIt(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := context.Background()
	ann := storetest.Account(t, db, "ann")
	calc := storetest.Agent(t, db, "calc", account.Account{})
	for range 20 {
		id := ident.NewID()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				room, p := asking(ann, calc, clock.Now())
				_, err := db.CreateAsking(ctx, room, nil, p, &chat.FirstAsk{CallerID: ann.ID, AgentID: calc.ID, ClientID: id, ConversationID: room.ID})
				before, ok := errors.AsType[*chat.AskedBefore](err)
				if !ok {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if _, err := db.Room(ctx, before.ConversationID, "person", ann.ID); err != nil {
					t.Errorf("the first conversation cannot be read: %v", err)
				}
			})
		}
		wg.Wait()
	}
}
