package store_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func asked(t *testing.T) (*storetest.DB, account.Account, hub.Agent, chat.Conversation, task.Task) {
	t.Helper()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	helper := storetest.Agent(t, db, "helper", ada)
	c := storetest.Conversation(t, db, ada, helper)
	return db, ada, helper, c, storetest.Say(t, db, c, ada, "help", helper).Tasks[0]
}

func claim(t *testing.T, db *storetest.DB, fence int64) []task.Task {
	t.Helper()
	queued, err := db.Queued(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var list []task.Task
	for _, q := range queued {
		k, err := db.Begin(t.Context(), q.ID, fence)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, k)
	}
	return list
}

func TestFinish_ExactlyOnce(t *testing.T) {
	t.Parallel()
	db, _, _, c, k := asked(t)
	claim(t, db, 1)
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			state := []task.State{task.Completed, task.Failed, task.Canceled, task.Rejected}[i%4]
			k, m := storetest.Answer(k, state, string(state))
			if i%2 == 0 {
				m.ClientID = "" // the task itself says that it has ended
			}
			_, err := db.Finish(context.Background(), chat.Ended{Task: k, Message: m})
			switch {
			case err == nil:
				won.Add(1)
			case !fault.Is(err, fault.Conflict):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := db.TaskByID(t.Context(), k.ID)
	if err != nil || won.Load() != 1 || !got.State.Terminal() || got.AnswerSeq != 2 {
		t.Errorf("%d finished; %+v %v", won.Load(), got, err)
	}
	list := storetest.Messages(t, db, c.ID)
	if len(list) != 2 || list[1].TaskState != got.State || task.PlainText(list[1].Parts) != string(got.State) {
		t.Errorf("%+v", list)
	}
	if left := claim(t, db, 2); len(left) != 0 {
		t.Errorf("an ended task is handed out: %+v", left)
	}
	if err := db.SaveCheckpoint(t.Context(), k.ID, json.RawMessage(`{}`)); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

// The queue lists tasks oldest first until they end. An attempt counts when its driver starts, and a
// process with an older number starts none.
func TestQueue_CountsAttemptsAtTheStart(t *testing.T) {
	t.Parallel()
	db, ada, helper, c, _ := asked(t)
	for range 19 {
		storetest.Say(t, db, c, ada, "and", helper)
	}
	old, err := db.NextFence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fence, err := db.NextFence(t.Context())
	if err != nil || fence <= old {
		t.Fatalf("%d after %d, %v", fence, old, err)
	}
	var listed []string
	for at := int64(0); ; {
		page, err := db.Queued(t.Context(), at, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, q := range page {
			if q.ConversationID != c.ID || q.AgentID != helper.ID || q.CallerID != ada.ID {
				t.Errorf("%+v", q)
			}
			k, err := db.TaskByID(t.Context(), q.ID)
			if err != nil || k.State != task.Submitted || k.Attempt != 0 || k.MessageSeq != int64(len(listed)+1) {
				t.Errorf("listed: %+v, %v", k, err)
			}
			listed, at = append(listed, q.ID), q.Position
		}
	}
	if len(listed) != 20 {
		t.Errorf("%d tasks listed", len(listed))
	}
	first := listed[0]
	for attempt := 1; attempt <= 2; attempt++ {
		if k, err := db.Begin(t.Context(), first, fence); err != nil || k.State != task.Working || k.Attempt != attempt {
			t.Errorf("%+v, %v", k, err)
		}
	}
	if _, err := db.Begin(t.Context(), first, old); !fault.Is(err, fault.Conflict) {
		t.Errorf("a process of an older number: %v", err)
	}
	if k, err := db.TaskByID(t.Context(), first); err != nil || k.Attempt != 2 {
		t.Errorf("%+v, %v", k, err)
	}
	storetest.Finish(t, db, claim(t, db, fence)[0], task.Completed, "done")
	if _, err := db.Begin(t.Context(), first, fence); !fault.Is(err, fault.Conflict) {
		t.Errorf("an ended task: %v", err)
	}
	if again := claim(t, db, fence+1); len(again) != 19 || again[0].ID != listed[1] {
		t.Errorf("%d tasks", len(again))
	}
	storetest.Sound(t, db)
}

// The address group of a guest is stored only while the task waits or runs.
func TestFinish_DropsTheAddressGroup(t *testing.T) {
	t.Parallel()
	db, ada, helper, c, _ := asked(t)
	p := storetest.Post(c, ada, "", "", helper)
	p.Ask[0].CallerGroup = "192.0.2.0/24"
	done, err := db.Append(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	queued, err := db.Queued(t.Context(), 0, 10)
	if err != nil || len(queued) != 2 || queued[1].CallerGroup != "192.0.2.0/24" {
		t.Fatalf("%+v, %v", queued, err)
	}
	storetest.Finish(t, db, done.Tasks[0], task.Completed, "done")
	if k, err := db.TaskByID(t.Context(), done.Tasks[0].ID); err != nil || k.CallerGroup != "" {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestAsk_ContinuesWaitingTask(t *testing.T) {
	t.Parallel()
	db, ada, helper, c, k := asked(t)
	bob := storetest.Account(t, db, "bob")
	claim(t, db, 1)
	if err := db.SaveCheckpoint(t.Context(), k.ID, json.RawMessage(`{"at":1}`)); err != nil {
		t.Fatal(err)
	}
	storetest.Finish(t, db, k, task.InputRequired, "which one?")
	storetest.Sound(t, db)
	if got, err := db.TaskByID(t.Context(), k.ID); err != nil || got.State != task.InputRequired || got.AnswerSeq != 2 {
		t.Errorf("%+v %v", got, err)
	}
	if left := claim(t, db, 2); len(left) != 0 {
		t.Errorf("a waiting task is handed out: %+v", left)
	}
	// Somebody else's message is a task of its own.
	other := storetest.Post(c, bob, "", "me too", helper)
	other.MustBeMember = false
	if done, err := db.Append(t.Context(), other); err != nil || done.Tasks[0].ID == k.ID {
		t.Errorf("%+v %v", done, err)
	}
	done := storetest.Say(t, db, c, ada, "this one", helper)
	if len(done.Tasks) != 1 || done.Tasks[0].ID != k.ID || done.Tasks[0].State != task.Submitted || done.Tasks[0].MessageSeq != done.Message.Seq {
		t.Fatalf("%+v", done.Tasks)
	}
	storetest.Sound(t, db)
	list := claim(t, db, 2)
	if len(list) != 2 || list[1].ID != k.ID || list[1].Attempt != 1 || string(list[1].Checkpoint) != `{"at":1}` {
		t.Fatalf("%+v", list)
	}
	storetest.Finish(t, db, k, task.Completed, "done")
	if next := storetest.Say(t, db, c, ada, "another", helper); next.Tasks[0].ID == k.ID {
		t.Error("an ended task goes on")
	}
	storetest.Sound(t, db)
}

func TestLeave_EndsPosting(t *testing.T) {
	t.Parallel()
	db, ada, helper, c, _ := asked(t)
	event := storetest.Post(c, ada, "", "left").Message
	event.Kind = chat.Event
	if _, err := db.Leave(t.Context(), c.ID, "person", ada.ID, event.CreatedAt, event); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Append(t.Context(), storetest.Post(c, ada, "x", "still here", helper)); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if _, err := db.Leave(t.Context(), c.ID, "person", ada.ID, event.CreatedAt, event); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if list := storetest.Messages(t, db, c.ID); len(list) != 2 {
		t.Errorf("%d messages", len(list))
	}
	storetest.Sound(t, db)
}

func TestDeleteRoom_TakesItsTasks(t *testing.T) {
	t.Parallel()
	db, ada, _, c, k := asked(t)
	if err := db.DeleteRoom(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	storetest.Sound(t, db)
	if left := claim(t, db, 1); len(left) != 0 {
		t.Errorf("%+v", left)
	}
	k, m := storetest.Answer(k, task.Completed, "too late")
	if _, err := db.Finish(t.Context(), chat.Ended{Task: k, Message: m}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if _, err := db.Room(t.Context(), c.ID, "person", ada.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if r := storetest.Sound(t, db); r.Messages != 0 || r.Tasks != 0 {
		t.Errorf("%+v", r)
	}
}

func TestFindTasks_PagesByLastChange(t *testing.T) {
	t.Parallel()
	db, ada, helper, c, first := asked(t)
	other := storetest.Agent(t, db, "other", ada)
	d := storetest.Conversation(t, db, ada, helper, other)
	second := storetest.Say(t, db, d, ada, "more", helper).Tasks[0]
	third := storetest.Say(t, db, d, ada, "again", helper).Tasks[0]
	storetest.Say(t, db, d, ada, "you", other)
	claim(t, db, 1)
	k, m := storetest.Answer(first, task.Completed, "done")
	k.UpdatedAt = third.UpdatedAt.Add(time.Hour) // last changed, though first asked
	if _, err := db.Finish(t.Context(), chat.Ended{Task: k, Message: m}); err != nil {
		t.Fatal(err)
	}
	var got []string
	q := task.Query{AgentID: helper.ID, Limit: 1}
	for range 4 {
		page, err := db.FindTasks(t.Context(), ada.ID, q)
		if err != nil || page.Total != 3 {
			t.Fatal(page.Total, err)
		}
		list := page.Tasks
		if len(list) == 0 {
			break
		}
		got = append(got, list[0].ID)
		q.From = task.Point{At: list[0].UpdatedAt, ID: list[0].ID}
	}
	if len(got) != 3 || got[0] != first.ID || !slices.Contains(got[1:], second.ID) || !slices.Contains(got[1:], third.ID) {
		t.Errorf("%v", got)
	}
	for name, is := range map[string]struct {
		who   string
		q     task.Query
		total int
	}{
		"of a conversation": {ada.ID, task.Query{AgentID: helper.ID, ConversationID: c.ID, Limit: 10}, 1},
		"of a state":        {ada.ID, task.Query{AgentID: helper.ID, State: task.Completed, Limit: 10}, 1},
		"since":             {ada.ID, task.Query{AgentID: helper.ID, After: k.UpdatedAt, Limit: 10}, 1},
		"since later":       {ada.ID, task.Query{AgentID: helper.ID, After: k.UpdatedAt.Add(time.Second), Limit: 10}, 0},
		"of somebody else":  {"bob", task.Query{AgentID: helper.ID, Limit: 10}, 0},
	} {
		if p, err := db.FindTasks(t.Context(), is.who, is.q); err != nil || p.Total != is.total || len(p.Tasks) != is.total {
			t.Errorf("%s: %d of %d, %v", name, len(p.Tasks), p.Total, err)
		}
	}
}
