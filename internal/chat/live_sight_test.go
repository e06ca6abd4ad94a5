package chat

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/task"
)

// batches is a Sink that keeps what it is handed.
type batches struct{ got []Update }

func (b *batches) Push(x *Batch) Taken { b.got = append(b.got, x.Updates...); return All }
func (b *batches) Behind()             {}
func (b *batches) End(error)           {}

func TestPump_AmendmentsOfThePastSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		s := New(store, nil, nil, Config{})
		id := store.open("ada", "bob")
		for range 3 {
			store.commit(id, Message{})
		}
		store.rooms[id].members[1].FromSeq = 2
		sinks := make(map[string]*batches)
		for _, name := range []string{"ada", "bob"} {
			sub := reader(t, s, name, id, 3)
			defer sub.Close()
			sinks[name] = new(batches)
			for !sub.Attach(sinks[name]) {
				if _, err := sub.Take(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, m := range []Message{
			{Kind: Edit, Target: 1, Parts: []task.Part{task.TextPart("of the past")}},
			{Kind: React, Target: 3, Parts: []task.Part{task.TextPart("👍")}},
		} {
			s.live.passMessage(store.commit(id, m))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for name, want := range map[string]int{"ada": 2, "bob": 1} {
			seqs, said := 0, 0
			for _, u := range sinks[name].got {
				if u.Message == nil {
					continue
				}
				seqs++
				if len(u.Message.Parts) > 0 {
					said++
				}
				_, err := s.Shown(t.Context(), u)
				if shown := err == nil; shown != (len(u.Message.Parts) > 0) {
					t.Errorf("%s: message %d shown: %v", name, u.Message.Seq, shown)
				}
			}
			if seqs != 2 || said != want {
				t.Errorf("%s is told of %d messages, %d with words", name, seqs, said)
			}
		}
	})
}
