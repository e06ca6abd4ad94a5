package store_test

import (
	"context"
	"fmt"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/ident"
	"agentsite/internal/meaning"
	"agentsite/internal/memory"
	"agentsite/internal/testing/storetest"
	"agentsite/store/engine"
)

func remembered(who account.Account, agentID, text string) memory.Memory {
	now := clock.Now()
	return memory.Memory{ID: ident.NewID(), Place: memory.Place{PersonID: who.ID, AgentID: agentID}, Text: text,
		ConversationID: "c", Seq: 1, CreatedAt: now, UsedAt: now}
}

// A full place drops the memory that was not used for the longest time; equal texts are kept once.
func TestMemories_DropTheOldestUnused(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx, ada, bob := t.Context(), storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	agent := storetest.Agent(t, db, "minder", bob)
	bounds := memory.Bounds{Place: 2, Person: 100}
	var ids []string
	for i := range 2 {
		m := remembered(ada, agent.ID, fmt.Sprintf("fact %d", i))
		m.UsedAt = clock.FromMilli(int64(1000 + i))
		added, dropped, err := db.Memories.PutMemories(ctx, []memory.Memory{m}, bounds)
		if err != nil || len(added) != 1 || len(dropped) != 0 {
			t.Fatal(added, dropped, err)
		}
		ids = append(ids, m.ID)
	}
	if added, dropped, err := db.Memories.PutMemories(ctx, []memory.Memory{remembered(ada, agent.ID, "fact 0")}, bounds); err != nil ||
		len(added) != 0 || len(dropped) != 0 {
		t.Fatal("the same text again:", added, dropped, err)
	}
	// The repetition counted as a use, so the other one is the oldest.
	_, dropped, err := db.Memories.PutMemories(ctx, []memory.Memory{remembered(ada, agent.ID, "fact 2")}, bounds)
	if err != nil || len(dropped) != 1 || dropped[0] != ids[1] {
		t.Fatal(dropped, ids, err)
	}
	// Others neither change nor delete it.
	if err := db.Memories.SetMemoryText(ctx, bob.ID, ids[0], "x"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if n, err := db.Memories.DeleteMemories(ctx, bob.ID, ids); err != nil || n != 0 {
		t.Error(n, err)
	}
	list, err := db.Memories.MemoriesOf(ctx, ada.ID, memory.Filter{Agent: "minder", Limit: 10})
	if err != nil || len(list) != 2 || list[0].Text != "fact 2" || list[1].Text != "fact 0" || list[0].Agent != "minder" {
		t.Errorf("%+v, %v", list, err)
	}
	storetest.CheckStorage(t, db.DB)
}

// BenchmarkMemories_Recall recalls from 2,000 memories of a place and searches all of a person's 100,000.
func BenchmarkMemories_Recall(b *testing.B) {
	db := storetest.New(b)
	ctx, ada, bob := b.Context(), storetest.Account(b, db, "ada"), storetest.Account(b, db, "bob")
	words := []string{"garden", "violin", "train", "winter", "recipe", "doctor", "holiday", "budget", "bicycle", "language",
		"window", "meeting", "river", "camera", "teacher", "bread", "software", "history", "market", "island"}
	const agents, each = 50, 2000
	var first string
	for a := range agents {
		agent := storetest.Agent(b, db, fmt.Sprintf("minder-%d", a), bob)
		if a == 0 {
			first = agent.ID
		}
		rows := make([][]any, each)
		for i := range rows {
			n := a*each + i
			rows[i] = []any{ident.NewID(), ada.ID, agent.ID, "", "c", 1, fmt.Sprintf(
				"The person talked about the %s and the %s of number %d.", words[n%20], words[n/20%20], n), 0, "", 1, 1}
		}
		if err := db.Write(ctx, func(t engine.Tx) error { return t.InsertRows(`INSERT INTO memories VALUES `, rows) }); err != nil {
			b.Fatal(err)
		}
	}
	model, err := meaning.Open()
	if err != nil {
		b.Fatal(err)
	}
	s := memory.New(memory.Config{Store: db.Memories, Grants: grant.NewService(allowAll{}, nil), Encoder: model})
	use := memory.Use{Place: memory.Place{PersonID: ada.ID, AgentID: first}}
	actor := ident.Actor{Kind: ident.Person, ID: ada.ID, Name: "ada"}
	if _, err := s.Recall(ctx, use, "fill the shelf", 16); err != nil {
		b.Fatal(err)
	}
	queries := []string{"What did I say about music in the cold season?", "Which bike did I want to buy?", "the bread market"}
	b.Run("recall", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if list, err := s.Recall(ctx, use, queries[i%3], 16); err != nil || len(list) != 16 {
				b.Fatal(len(list), err)
			}
		}
	})
	b.Run("search", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if page, err := s.List(ctx, actor, memory.Filter{}, queries[i%3]); err != nil || len(page.Memories) == 0 {
				b.Fatal(len(page.Memories), err)
			}
		}
	})
}

// allowAll has one grant of memory for each person and agent.
type allowAll struct{ grant.Store }

func (allowAll) GrantsOf(_ context.Context, p grant.Person, agentID string) ([]grant.Grant, error) {
	return []grant.Grant{{Person: p, AgentID: agentID, Tool: grant.Memory, Allow: true}}, nil
}
