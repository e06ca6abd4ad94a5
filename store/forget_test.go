package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
	"agentsite/store/engine"
)

// Where work stood may hold the conversation: once it has ended, only what
// leads to an agent elsewhere stays.
func TestFinish_ForgetsWhereTheWorkStood(t *testing.T) {
	t.Parallel()
	db, ada, far, c, _ := asked(t)
	near := storetest.Agent(t, db, "near", ada)
	if err := db.Write(t.Context(), func(tx engine.Tx) error {
		_, err := tx.Exec(`UPDATE agents SET kind = 'openai' WHERE id = ?`, near.ID)
		if err == nil {
			_, err = tx.Exec(`UPDATE agent_versions SET kind = 'openai' WHERE agent_id = ?`, near.ID)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{`{"said":"x"}`, `"` + strings.Repeat("x", 70_000) + `"`} {
		storetest.Say(t, db, c, ada, "again", far, near)
		for _, k := range claim(t, db, 1) {
			if err := db.SaveCheckpoint(t.Context(), k.ID, json.RawMessage(state)); err != nil {
				t.Fatal(err)
			}
			storetest.Finish(t, db, k, task.Completed, "done")
			got, err := db.TaskByID(t.Context(), k.ID)
			if err != nil {
				t.Fatal(err)
			}
			if kept := len(got.Checkpoint) > 0; kept != (k.AgentID == far.ID && len(state) < 1000) {
				t.Errorf("%s: %d bytes are kept", k.AgentHandle, len(got.Checkpoint))
			}
		}
	}
	storetest.Sound(t, db)
}

func TestLastCheckpoint_OfOneCaller(t *testing.T) {
	t.Parallel()
	db, ada, far, c, _ := asked(t)
	bob := storetest.Account(t, db, "bob")
	claim(t, db, 1)
	for i, who := range []account.Account{ada, bob} {
		p := storetest.Post(c, who, ident.NewID(), "hi", far)
		p.MustBeMember = false
		if _, err := db.Append(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		for _, k := range claim(t, db, 1) {
			if err := db.SaveCheckpoint(t.Context(), k.ID, fmt.Appendf(nil, "%d", i)); err != nil {
				t.Fatal(err)
			}
			storetest.Finish(t, db, k, task.Completed, "done")
		}
	}
	for caller, want := range map[string]string{"": "1", ada.ID: "0", bob.ID: "1", "nobody": ""} {
		if got, err := db.LastCheckpoint(t.Context(), c.ID, far.ID, caller, "~"); err != nil || string(got) != want {
			t.Errorf("of %q: %s, %v", caller, got, err)
		}
	}
}

// What an owner may look up of a call goes with the message that asked for it.
func TestUnsay_TakesTheTracesAway(t *testing.T) {
	t.Parallel()
	db, ada, far, c, k := asked(t)
	if err := db.AddTraces(t.Context(), far.ID, k.ID, []hub.Trace{{At: clock.Now(), Sent: true, Head: "POST", Body: "help", Size: 4}}); err != nil {
		t.Fatal(err)
	}
	claim(t, db, 1)
	storetest.Finish(t, db, k, task.Completed, "done")
	if list, err := db.Traces(t.Context(), far.ID, k.ID, ada.ID); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err := db.Amend(t.Context(), chat.Message{ConversationID: c.ID, ID: ident.NewID(), Sender: chat.Sender{Kind: "person", ID: ada.ID, Handle: "ada"},
		Kind: chat.Unsaid, Target: k.MessageSeq, CreatedAt: clock.Now()}, true); err != nil {
		t.Fatal(err)
	}
	if list, err := db.Traces(t.Context(), far.ID, k.ID, ada.ID); err == nil && len(list) > 0 {
		t.Errorf("%+v", list)
	}
}

// However many come at once, a room has at most so many members.
func TestJoin_IsBounded(t *testing.T) {
	t.Parallel()
	db, _, _, c, _ := asked(t) // two are in it
	var wg sync.WaitGroup
	var in atomic.Int32
	for i := range chat.MaxMembers + 5 {
		m := chat.Member{Kind: "person", ID: ident.NewID(), Handle: fmt.Sprint("p", i), Role: chat.RoleMember}
		e := chat.Message{ID: ident.NewID(), Sender: chat.Sender{Kind: "person", ID: m.ID, Handle: m.Handle}, Kind: chat.Event, CreatedAt: clock.Now()}
		wg.Go(func() {
			switch _, err := db.Join(t.Context(), c.ID, m, "", e); {
			case err == nil:
				in.Add(1)
			case !fault.Is(err, fault.Conflict):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := db.Members(t.Context(), c.ID); err != nil || len(list) != chat.MaxMembers || int(in.Load()) != chat.MaxMembers-2 {
		t.Errorf("%d members, %d came, %v", len(list), in.Load(), err)
	}
	storetest.Sound(t, db)
}
