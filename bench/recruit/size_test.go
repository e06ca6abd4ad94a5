package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/index"
	"agentsite/internal/meaning"
)

// crowdSize is the number of agents of the benchmark, and crowdSkills the number of skills of each.
const (
	crowdSize   = 100_000
	crowdSkills = 3
)

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
		a, other := agents[0], agents[len(agents)-1]
		agents = agents[1:]
		a.Skills = append(a.Skills, other.Skills[:crowdSkills-len(a.Skills)]...)
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

// openRate is the number of searches that begin in a second in the benchmark's open loop, whether or not earlier ones
// have ended.
const openRate = 200

// usedCPU returns the processor time of this process.
func usedCPU() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkCrowd searches 100,000 agents for the needs: by words and meaning and by words alone, one search at a time,
// and then by words and meaning openRate times a second. It reports the processor time of a search, the collector's
// share included, the time until all agents have vectors, and the bytes of vectors for each agent.
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
			used := usedCPU()
			for i := 0; b.Loop(); i++ {
				from := time.Now()
				if _, err := x.Search(hub.Query{Text: needs[i%len(needs)].Text, Mode: mode}); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(from))
			}
			b.ReportMetric(float64((usedCPU()-used).Microseconds())/float64(len(times)), "µs-CPU")
			reportP99(b, times)
			if mode == hub.ModeAuto {
				b.ReportMetric(loaded.Sub(start).Seconds(), "s-load")
				b.ReportMetric(encoded.Sub(loaded).Seconds(), "s-encode")
				b.ReportMetric(float64(heap)/crowdSize, "B/agent-words")
				b.ReportMetric(float64(vectors)/crowdSize, "B/agent-vectors")
			}
		})
	}
	b.Run("open", func(b *testing.B) {
		times := make([]time.Duration, b.N)
		var wg sync.WaitGroup
		start := time.Now()
		for i := range times {
			begin := start.Add(time.Duration(i) * time.Second / openRate)
			time.Sleep(time.Until(begin))
			wg.Go(func() {
				if _, err := x.Search(hub.Query{Text: needs[i%len(needs)].Text}); err != nil {
					b.Error(err)
				}
				times[i] = time.Since(begin)
			})
		}
		wg.Wait()
		reportP99(b, times)
	})
	runtime.KeepAlive(x)
}

// reportP99 sorts times and reports the one that 99 % of them do not exceed.
func reportP99(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "µs-p99")
}
