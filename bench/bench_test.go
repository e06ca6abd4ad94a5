// Package bench_test holds the benchmarks of single operations, without HTTP
// and without a floor beside them: what bench/load measures whole.
//
//	go test -run - -bench . -benchmem ./bench
package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"agentsite/bench/corpus"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/task"
	"agentsite/store/storetest"
	"agentsite/templates"
)

// BenchmarkAppend says messages in one conversation, on disk with FULL: one
// after the other, and so many at once that they share commits.
func BenchmarkAppend(b *testing.B) {
	for _, at := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("at-once-%d", at), func(b *testing.B) {
			db := storetest.New(b)
			ann := storetest.Account(b, db, "ann")
			room := storetest.Conversation(b, db, ann)
			b.ReportAllocs()
			b.SetParallelism(at)
			if at == 1 {
				for b.Loop() {
					storetest.Say(b, db, room, ann, "An ordinary message of about sixty characters, no more than that.")
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p := storetest.Post(room, ann, ident.NewID(), "An ordinary message of about sixty characters, no more than that.")
					if _, err := db.Append(context.Background(), p); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkMessages reads the newest 50 and 50 from the middle of a
// conversation of 10,000.
func BenchmarkMessages(b *testing.B) {
	db := storetest.New(b)
	ann := storetest.Account(b, db, "ann")
	room := storetest.Conversation(b, db, ann)
	const n = 10_000
	done := make(chan error)
	for w := range 100 {
		go func() {
			for range n / 100 {
				if _, err := db.Append(context.Background(), chat.Post{Message: chat.Message{ConversationID: room.ID, ID: ident.NewID(), Sender: chat.Sender{Kind: "person", ID: ann.ID, Handle: ann.Name},
					Kind: chat.Text, Parts: []task.Part{task.TextPart(corpus.Text(w, 120))}, CreatedAt: room.CreatedAt}}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 100 {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		before int64
	}{{"newest", 0}, {"middle", n / 2}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				list, err := db.Messages(context.Background(), room.ID, 0, c.before, 50, true)
				if err != nil || len(list) != 50 {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}

// BenchmarkSearch finds 20 of 10,000 agents by two words, with all facets.
func BenchmarkSearch(b *testing.B) {
	x := index.New()
	for i := range 10_000 {
		x.Put(corpus.Agent(i))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if _, err := x.Search(hub.Query{Text: corpus.Query(i), Limit: 20}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPage renders the page of 20 cards from its view.
func BenchmarkPage(b *testing.B) {
	v := templates.AgentsView{Total: 20}
	for i := range 20 {
		a := corpus.Agent(i)
		v.Results = append(v.Results, templates.AgentCard{Ref: a.Name, Title: a.Title, Handle: a.Name, Description: a.Description, Kind: string(a.Kind),
			Provenance: templates.Provenance{Verified: true, Live: "alive"}, Tags: a.Tags(), Examples: a.Skills[0].Examples})
	}
	p := templates.Page{Title: "Agents", Path: "/agents", PortalName: "bench"}
	var buf bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		buf.Reset()
		if err := templates.Agents(p, v).Render(context.Background(), &buf); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(buf.Len()), "B/page")
}
