package main

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/index"
	"agentsite/internal/meaning"
)

// crowdSize is the number of agents of the benchmark; each has two or three skills.
const crowdSize = 100_000

// loadCrowd fills an index with crowdSize agents and returns the heap that it holds.
func loadCrowd(x *index.Index, list []capability) (heap uint64) {
	var agents []hub.Agent
	seed, n := uint64(0), 0
	before := liveHeap()
	x.Load(func() (hub.Agent, bool) {
		if len(agents) == 0 {
			agents, _ = buildAgents(list, 100+seed)
			seed++
		}
		if n == crowdSize {
			agents = nil
			return hub.Agent{}, false
		}
		a := agents[0]
		agents = agents[1:]
		a.ID, a.Name = fmt.Sprintf("01K%023d", n), fmt.Sprintf("%s-%d", a.Name, seed)
		n++
		return a, true
	})
	return liveHeap() - before
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkCrowd loads 100,000 agents, encodes them and searches them in the mode auto for the needs, one after the
// other. It also reports the time until all agents have vectors, and the memory that vectors add for each agent.
func BenchmarkCrowd(b *testing.B) {
	list, err := readCapabilities()
	if err != nil {
		b.Fatal(err)
	}
	needs, _, _, err := readNeeds()
	if err != nil {
		b.Fatal(err)
	}
	model, err := meaning.Open()
	if err != nil {
		b.Fatal(err)
	}
	x := index.NewWithMeaning(model, meaning.Dims)
	start := time.Now()
	heap := loadCrowd(x, list)
	loaded, wordsOnly := time.Now(), liveHeap()
	x.EncodeAll(b.Context())
	encoded := time.Now()
	vectors := liveHeap() - wordsOnly
	for _, mode := range []string{hub.ModeAuto, hub.ModeWords} {
		b.Run(mode, func(b *testing.B) {
			var times []time.Duration
			for i := 0; b.Loop(); i++ {
				from := time.Now()
				if _, err := x.Search(hub.Query{Text: needs[i%len(needs)].Text, Mode: mode}); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(from))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "µs-p99")
			if mode == hub.ModeAuto {
				b.ReportMetric(loaded.Sub(start).Seconds(), "s-load")
				b.ReportMetric(encoded.Sub(loaded).Seconds(), "s-encode")
				b.ReportMetric(float64(heap)/crowdSize, "B/agent-words")
				b.ReportMetric(float64(vectors)/crowdSize, "B/agent-vectors")
			}
		})
	}
	runtime.KeepAlive(x)
}
