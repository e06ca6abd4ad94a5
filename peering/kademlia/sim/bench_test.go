package sim_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"agentsite/peering/kademlia/sim"
)

// BenchmarkNet_Memory is what a node takes that has settled and keeps nothing for
// others: table, estimates and its share of the simulator. Contacts, of some 400
// bytes, are shared by those who know them.
func BenchmarkNet_Memory(b *testing.B) {
	live := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				before := live()
				s := sim.New(sim.Config{Nodes: n, Seed: 1, Settled: true})
				s.Run(15 * time.Minute)
				b.ReportMetric((live()-before)/float64(n), "B/node")
				known := 0
				for i := range n {
					known += s.Node(i).Known()
				}
				b.ReportMetric(float64(known)/float64(n), "contacts/node")
			}
		})
	}
}
