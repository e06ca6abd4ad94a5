package store_test

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/racetest"
	"agentsite/internal/testing/storetest"
)

// dense fails unless the transcript is 1, 2, 3 … without a gap.
func dense(t rapid.TB, list []chat.Message) {
	t.Helper()
	for i, m := range list {
		if m.Seq != int64(i+1) {
			t.Fatalf("message %d has seq %d", i+1, m.Seq)
		}
	}
}

// said is what a model knows of a message.
type said struct{ sender, clientID, text string }

// A conversation behaves as a plain list does, whatever is posted, repeated,
// left, joined and renamed.
func TestAppend_LikeAList(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	people := map[string]*struct{ in bool }{ada.ID: {}, bob.ID: {}}
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		c := storetest.Conversation(t, db, ada)
		people[ada.ID].in, people[bob.ID].in = true, false
		var model []said
		first := map[said]int64{} // by sender and client id
		event := func(text string) chat.Message {
			return chat.Message{ID: ident.NewID(), Sender: chat.Sender{Kind: "system"}, Kind: chat.Event, Parts: []task.Part{task.TextPart(text)}, CreatedAt: clock.Now()}
		}
		who := rapid.SampledFrom([]string{ada.ID, bob.ID})
		rt.Repeat(map[string]func(*rapid.T){
			"post": func(rt *rapid.T) {
				id, clientID, text := who.Draw(rt, "who"), rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(rt, "client id"), rapid.String().Draw(rt, "text")
				p := storetest.Post(c, ada, clientID, text)
				p.Message.Sender.ID = id
				got, err := db.Append(ctx, p)
				key := said{sender: id, clientID: clientID}
				switch seq, before := first[key]; {
				case !people[id].in:
					if !fault.Is(err, fault.NotFound) {
						rt.Fatalf("not a member: %v", err)
					}
				case err != nil:
					rt.Fatal(err)
				case before:
					if !got.Repeat || got.Message.Seq != seq {
						rt.Fatalf("repeat of %d: %+v", seq, got)
					}
				default:
					model = append(model, said{id, clientID, text})
					if got.Repeat || got.Message.Seq != int64(len(model)) {
						rt.Fatalf("message %d: %+v", len(model), got)
					}
					if clientID != "" {
						first[key] = got.Message.Seq
					}
				}
			},
			"leave": func(rt *rapid.T) {
				id := who.Draw(rt, "who")
				_, err := db.Leave(ctx, c.ID, "person", id, clock.Now(), event("left"))
				if people[id].in != (err == nil) {
					rt.Fatalf("in %v, leaving says %v", people[id].in, err)
				}
				if err == nil {
					people[id].in = false
					model = append(model, said{text: "left"})
				}
			},
			"join": func(rt *rapid.T) {
				id := who.Draw(rt, "who")
				if _, err := db.Join(ctx, c.ID, chat.Member{Kind: "person", ID: id, Handle: "x", Role: "member"}, "", event("joined")); err != nil {
					rt.Fatal(err)
				}
				people[id].in = true
				model = append(model, said{text: "joined"})
			},
			"": func(rt *rapid.T) {
				list := storetest.Messages(t, db, c.ID)
				dense(rt, list)
				if len(list) != len(model) {
					rt.Fatalf("%d messages, %d were said", len(list), len(model))
				}
				var prev []byte
				for i, m := range list {
					if want := model[i]; m.Sender.ID != want.sender || task.PlainText(m.Parts) != task.PlainText([]task.Part{task.TextPart(want.text)}) {
						rt.Fatalf("message %d is %+v, %+v was said", i+1, m, want)
					}
					if bytes.Equal(m.Hash, prev) || len(m.Hash) != 32 {
						rt.Fatalf("message %d has hash %x", i+1, m.Hash)
					}
					prev = m.Hash
				}
			},
		})
	})
	storetest.Sound(t, db)
}

// Many writers, each of whom sends everything several times: every reader
// sees one order without gaps, and each thing once.
func TestAppend_Concurrently(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	c := storetest.Conversation(t, db, ada)
	if _, err := db.Join(t.Context(), c.ID, chat.Member{Kind: "person", ID: bob.ID, Handle: "bob", Role: "member"}, "", chat.Message{ID: ident.NewID(), Kind: chat.Event, CreatedAt: clock.Now()}); err != nil {
		t.Fatal(err)
	}
	const texts, retries = 100, 4
	var mu sync.Mutex // guards acked and firsts
	acked, firsts := map[said]chat.Message{}, 0
	var wg sync.WaitGroup
	for r := range retries {
		for _, who := range []string{ada.ID, bob.ID} {
			wg.Go(func() {
				for i := range texts {
					p := storetest.Post(c, ada, fmt.Sprint(i), fmt.Sprint(i, " try ", r))
					p.Message.Sender.ID = who
					got, err := db.Append(context.Background(), p)
					if err != nil {
						t.Error(err)
						return
					}
					key := said{sender: who, clientID: fmt.Sprint(i)}
					mu.Lock()
					if !got.Repeat {
						firsts++
					}
					if m, ok := acked[key]; ok && (m.Seq != got.Message.Seq || m.ID != got.Message.ID || !bytes.Equal(m.Hash, got.Message.Hash)) {
						t.Errorf("%v is message %d for one and %d for another", key, m.Seq, got.Message.Seq)
					}
					acked[key] = got.Message
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	list := storetest.Messages(t, db, c.ID)
	dense(t, list)
	if len(list) != 2*texts+1 || firsts != 2*texts {
		t.Errorf("%d messages, %d acknowledged as new, %d said", len(list), firsts, 2*texts)
	}
	for key, m := range acked {
		if got := list[m.Seq-1]; got.ID != m.ID || got.Sender.ID != key.sender {
			t.Errorf("%v was acknowledged as message %d, which is %+v", key, m.Seq, got)
		}
	}
	storetest.Sound(t, db)
}

func TestAppend_RepeatAsksNothing(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	helper := storetest.Agent(t, db, "helper", ada)
	c := storetest.Conversation(t, db, ada, helper)
	first, err := db.Append(t.Context(), storetest.Post(c, ada, "once", "hello", helper))
	if err != nil {
		t.Fatal(err)
	}
	again, err := db.Append(t.Context(), storetest.Post(c, ada, "once", "hello?", helper))
	if err != nil || !again.Repeat || again.Message.ID != first.Message.ID || len(again.Tasks) != 0 || task.PlainText(again.Message.Parts) != "hello" {
		t.Errorf("%+v %v", again, err)
	}
	active, err := db.ActiveTasks(t.Context(), c.ID, "")
	if err != nil || len(active) != 1 {
		t.Error(active, err)
	}
}

func TestAppend_NowhereAndNobody(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, eve := storetest.Account(t, db, "ada"), storetest.Account(t, db, "eve")
	c := storetest.Conversation(t, db, ada)
	gone := storetest.Conversation(t, db, ada)
	storetest.Say(t, db, gone, ada, "hello")
	if err := db.DeleteRoom(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	guest := storetest.Post(c, ada, "", "as a guest")
	guest.Message.Sender.Kind = "guest"
	unknown := storetest.Post(chat.Conversation{ID: ident.NewID()}, ada, "", "where?")
	unknown.MustBeMember = false
	for i, p := range []chat.Post{storetest.Post(c, eve, "", "psst"), storetest.Post(gone, ada, "", "hello?"), guest, unknown} {
		if _, err := db.Append(t.Context(), p); !fault.Is(err, fault.NotFound) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := db.Room(t.Context(), c.ID, "person", eve.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if list, err := db.RoomsOf(t.Context(), "person", eve.ID, chat.RoomFilter{Limit: 10}); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	if r := storetest.Sound(t, db); r.Conversations != 1 || r.Messages != 0 {
		t.Errorf("%+v", r)
	}
}

func TestMessages_Pages(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	for i := range 20 {
		storetest.Say(t, db, c, ada, fmt.Sprint(i))
	}
	for _, tt := range []struct {
		after, before int64
		limit         int
		newest        bool
		from, to      int64
	}{
		{0, 0, 100, false, 1, 20},
		{0, 0, 5, false, 1, 5},
		{0, 0, 5, true, 16, 20},
		{5, 0, 5, false, 6, 10},
		{0, 16, 5, true, 11, 15},
		{5, 8, 100, true, 6, 7},
		{20, 0, 5, false, 1, 0},
	} {
		list, _, err := db.Messages(t.Context(), c.ID,
			chat.Span{After: tt.after, Before: tt.before, Limit: tt.limit, Newest: tt.newest})
		if err != nil || int64(len(list)) != tt.to-tt.from+1 {
			t.Fatalf("%+v: %d messages, %v", tt, len(list), err)
		}
		for i, m := range list {
			if m.Seq != tt.from+int64(i) {
				t.Errorf("%+v: message %d at place %d", tt, m.Seq, i)
			}
		}
	}
}

var _ chat.Store = (*storetest.DB)(nil)

// A list has of each message what the message alone has, whatever its fields
// hold: they are read in different ways.
func TestMessages_AreThoseThatAreReadAlone(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	reasons := []string{"", "It was too long.", "a\x1fb\x1f", "\x1f", "two\nlines, ü"}
	for i, reason := range reasons {
		p := storetest.Post(c, ada, fmt.Sprint(i), "text\x1f"+reason)
		p.Message.Reason, p.Message.Target, p.Message.TaskState = reason, int64(i), task.Failed
		if i%2 == 0 {
			p.Message.TaskID = ident.NewID()
		}
		if _, err := db.Append(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	list := storetest.Messages(t, db, c.ID)
	if len(list) != len(reasons) {
		t.Fatalf("%d messages", len(list))
	}
	for i, m := range list {
		alone, err := db.Message(t.Context(), c.ID, m.Seq)
		if err != nil || !reflect.DeepEqual(m, alone) {
			t.Errorf("in a list %+v, alone %+v, %v", m, alone, err)
		}
		if m.Reason != reasons[i] {
			t.Errorf("reason %q, want %q", m.Reason, reasons[i])
		}
	}
}
