package index

import (
	"context"
	"fmt"
	"math"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/internal/hub"
)

// scatter is an index of n agents on some other portals, as a replica shows
// them; of this one alone with 0.
func scatter(n, portals int) *Index {
	x := New()
	i := 0
	x.Load(func() (hub.Agent, bool) {
		if i++; i > n {
			return hub.Agent{}, false
		}
		a := benchCorpus().agent(i - 1)
		a.Portal = ""
		if portals > 0 {
			host := fmt.Sprintf("portal-%04d.example", i%portals)
			a.ID = fmt.Sprintf("p1%s%04d/%s", strings.Repeat("a", 48), i%portals, a.ID)
			a.Portal, a.Verified, a.Record = host, true, "leRWh7iGgHka1TIkabuBF5cSalszfuvP2-cCZ6I_f5c"
		}
		return a, true
	})
	return x
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ratios are what rounds of two sides cost to each other.
type ratios []float64

func (r ratios) at(share float64) float64 {
	list := slices.Sorted(slices.Values(r))
	return list[int(share*float64(len(list)-1))]
}

// sideBySide runs both sides in turn, a few steps each, and returns the
// processor time that the second took in each round to that of the first, and
// what a step of each took: whatever else the machine does is done to both.
func sideBySide(rounds, steps, few int, sides [2]func(i int)) (list ratios, each [2]time.Duration) {
	for round := range rounds {
		var took [2]time.Duration
		for from := 0; from < steps; from += few {
			for turn := range sides {
				k := (turn + round + from/few) % 2
				// go tool pprof -tagfocus side=of1
				pprof.Do(context.Background(), pprof.Labels("side", "of"+strconv.Itoa(k)), func(context.Context) {
					began := cpu()
					for i := from; i < min(from+few, steps); i++ {
						sides[k](i)
					}
					took[k] += cpu() - began
				})
			}
		}
		list = append(list, float64(took[1])/math.Max(float64(took[0]), 1))
		for k := range each {
			each[k] += took[k] / time.Duration(rounds*steps)
		}
	}
	return list, each
}

// BenchmarkSearchFederated compares the CPU of searches over agents of other
// portals with that over the same agents here: cpu/local is the median of the
// ratios of rounds in which they take turns, which is to be 1.15 at most. The
// texts are all different, because facets are kept; -benchtime 25x says how
// many rounds.
func BenchmarkSearchFederated(b *testing.B) {
	const n, texts = 100_000, 400
	local := scatter(n, 0)
	words := benchCorpus().words
	for _, portals := range []int{10, 1000} {
		x := scatter(n, portals)
		for _, c := range []struct {
			name string
			text func(i int) string
		}{
			{"frequent", func(i int) string { return words[i] }},
			{"typical", func(i int) string { return words[1000+i] }},
			{"rare", func(i int) string { return words[15_000+i] }},
			{"two", func(i int) string { return words[i] + " " + words[1000+i] }},
		} {
			b.Run(fmt.Sprintf("%d/%s", portals, c.name), func(b *testing.B) {
				var sides [2]func(int)
				for k, in := range []*Index{local, x} {
					sides[k] = func(i int) {
						if i%200 == 0 {
							in.state.Add(1) // forget what was counted
						}
						in.Search(hub.Query{Text: c.text(i), Limit: 20})
					}
				}
				list, each := sideBySide(b.N, texts, 20, sides)
				b.ReportMetric(list.at(0.5), "cpu/local")
				b.ReportMetric(list.at(0.1), "p10")
				b.ReportMetric(list.at(0.9), "p90")
				b.ReportMetric(float64(each[0].Nanoseconds())/1e3, "local-µs")
				b.ReportMetric(float64(each[1].Nanoseconds())/1e3, "µs")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
