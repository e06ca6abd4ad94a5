package store_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"agentsite/bench/corpus"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// BenchmarkImport registers agents durably, a thousand a call: one call after
// the other, and two at a time, where one prepares while the other is written.
func BenchmarkImport(b *testing.B) {
	const each = 1000
	for _, at := range []int{1, 2} {
		b.Run(fmt.Sprintf("at-once-%d", at), func(b *testing.B) {
			db := storetest.New(b)
			ann := storetest.Account(b, db, "ann")
			lists := make(chan []hub.Agent, b.N)
			for n := range b.N {
				list := make([]hub.Agent, each)
				for i := range list {
					list[i] = corpus.Agent(n*each + i)
					list[i].ID, list[i].OwnerID, list[i].OwnerName = ident.NewID(), ann.ID, ann.Name
				}
				lists <- list
			}
			close(lists)
			b.ResetTimer()
			var wg sync.WaitGroup
			for range at {
				wg.Go(func() {
					for list := range lists {
						if err := db.CreateAgents(b.Context(), list); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(each*b.N)/b.Elapsed().Seconds(), "agents/s")
		})
	}
}

// BenchmarkAsk posts messages that each give an agent a task which then ends:
// one after the other, and so many at once that they share commits.
func BenchmarkAsk(b *testing.B) {
	for _, at := range []int{1, 256} {
		b.Run(fmt.Sprintf("at-once-%d", at), func(b *testing.B) {
			db := storetest.New(b)
			ann := storetest.Account(b, db, "ann")
			helper := storetest.Agent(b, db, "helper", ann)
			rooms := make([]chat.Conversation, 64)
			for i := range rooms {
				rooms[i] = storetest.Conversation(b, db, ann, helper)
			}
			var next atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(at)
			ask := func() error {
				done, err := db.Append(b.Context(), storetest.Post(rooms[next.Add(1)%64], ann, ident.NewID(), "An ordinary question of about sixty characters, no more.", helper))
				if err != nil {
					return err
				}
				k, m := storetest.Answer(done.Tasks[0], task.Completed, "An ordinary answer of about sixty characters, no more than that.")
				_, err = db.Finish(b.Context(), chat.Ended{Task: k, Message: m})
				return err
			}
			if at == 1 {
				for b.Loop() {
					if err := ask(); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := ask(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkPost posts messages without agents, 64 at once in as many rooms.
func BenchmarkPost(b *testing.B) {
	db := storetest.New(b)
	ann := storetest.Account(b, db, "ann")
	rooms := make([]chat.Conversation, 64)
	for i := range rooms {
		rooms[i] = storetest.Conversation(b, db, ann)
	}
	var next atomic.Int64
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p := storetest.Post(rooms[next.Add(1)%64], ann, ident.NewID(), "An ordinary message of about sixty characters, no more.")
			if _, err := db.Append(b.Context(), p); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkAllAgents reads every agent, as a start does to fill the index.
func BenchmarkAllAgents(b *testing.B) {
	db := storetest.New(b)
	ann := storetest.Account(b, db, "ann")
	const n = 20_000
	for k := range n / 1000 {
		list := make([]hub.Agent, 1000)
		for i := range list {
			list[i] = corpus.Agent(k*1000 + i)
			list[i].OwnerID = ann.ID
		}
		if err := db.CreateAgents(b.Context(), list); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for b.Loop() {
		seen := 0
		if err := db.AllAgents(b.Context(), func(hub.Agent) bool { seen++; return true }); err != nil || seen != n {
			b.Fatal(seen, err)
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "agents/s")
}
