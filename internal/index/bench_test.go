package index

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"agentsite/internal/hub"
)

var benchCorpus = sync.OnceValue(newCorpus)

var benchIndexes sync.Map // of size, *Index

func benchIndex(n int) *Index {
	if x, ok := benchIndexes.Load(n); ok {
		return x.(*Index)
	}
	x := New()
	i := 0
	x.Load(func() (hub.Agent, bool) { i++; return benchCorpus().agent(i - 1), i <= n })
	benchIndexes.Store(n, x)
	return x
}

// wordOfShare returns a word that about a share of the agents has.
func wordOfShare(x *Index, share float64) string {
	word, off := "", 1.0
	for _, w := range benchCorpus().words[:20000] {
		if p := float64(x.found(w)) / float64(x.Len()); max(p-share, share-p) < off {
			word, off = w, max(p-share, share-p)
		}
	}
	return word
}

// found is the number of agents that have exactly the word.
func (x *Index) found(word string) int {
	m := x.words.Match(`"` + word + `"`)
	defer m.Close()
	return m.Bits.Count()
}

// BenchmarkSearch measures a page of 20 with all facets.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		x := benchIndex(n)
		rare, typical, common := wordOfShare(x, 10/float64(n)), wordOfShare(x, 0.002), wordOfShare(x, 1)
		for _, c := range []struct {
			name string
			q    hub.Query
		}{
			{"rare", hub.Query{Text: rare}},
			{"typical", hub.Query{Text: typical}},
			{"common", hub.Query{Text: common}},
			{"two", hub.Query{Text: typical + " " + rare}},
			{"two-common", hub.Query{Text: common + " " + benchCorpus().words[1]}},
			{"prefix", hub.Query{Text: common[:2]}},
			{"typo", hub.Query{Text: typical[:2] + "x" + typical[2:]}},
			{"phrase", hub.Query{Text: fmt.Sprintf("%q", common+" "+benchCorpus().words[1])}},
			{"common-filtered", hub.Query{Text: common, Kinds: []string{"a2a"}, Live: []string{"alive"}, Tags: []string{benchCorpus().tags[0]}}},
			{"list", hub.Query{}},
			{"newest", hub.Query{Sort: hub.SortNewest}},
			{"list-filtered", hub.Query{Kinds: []string{"openai"}, Tags: []string{benchCorpus().tags[3]}}},
			{"nothing", hub.Query{Text: "qqqqqqqqqq"}},
		} {
			c.q.Limit = 20
			page, err := x.Search(c.q)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%dk/%s", n/1000, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					x.Search(c.q)
				}
				b.ReportMetric(float64(page.Total), "matches")
			})
		}
		b.Run(fmt.Sprintf("%dk/suggest", n/1000), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.Suggest(common[:3], 8)
			}
		})
	}
}

// BenchmarkPut measures a new text and a new verdict of liveness among
// 100,000 agents, and the memory of each, the agent included.
func BenchmarkPut(b *testing.B) {
	const n = 100_000
	agents := make([]hub.Agent, n)
	for i := range agents {
		agents[i] = benchCorpus().agent(i)
	}
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			x := New()
			i := 0
			x.Load(func() (hub.Agent, bool) {
				if i++; i > n {
					return hub.Agent{}, false
				}
				return agents[i-1], true
			})
			b.ReportMetric(float64(time.Since(start).Microseconds())/n, "µs/agent")
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/agent")
			runtime.KeepAlive(x)
		}
	})
	x := benchIndex(n)
	b.Run("liveness", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			a := agents[i%n]
			a.Liveness.State = []hub.Live{hub.Alive, hub.Unreachable}[i/n%2]
			x.Put(a)
		}
	})
	b.Run("text", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			a := agents[i%n]
			a.Description = agents[(i+1)%n].Description
			x.Put(a)
		}
	})
}

// BenchmarkSearchDuringPuts compares the search of a typical word in a quiet
// index with one into which 500 agents a second are put.
func BenchmarkSearchDuringPuts(b *testing.B) {
	x := benchIndex(100_000)
	q := hub.Query{Text: wordOfShare(x, 0.002), Limit: 20}
	for _, writes := range []int{0, 500} {
		b.Run(fmt.Sprintf("%d-a-second", writes), func(b *testing.B) {
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				if writes == 0 {
					return
				}
				tick := time.NewTicker(time.Second / time.Duration(writes))
				defer tick.Stop()
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-tick.C:
						x.Put(benchCorpus().agent(100_000 + i%20_000))
					}
				}
			}()
			for b.Loop() {
				x.Search(q)
			}
			close(stop)
			<-done
		})
	}
}
