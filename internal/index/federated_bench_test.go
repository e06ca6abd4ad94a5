package index

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/internal/hub"
)

// spread is an index of n agents on some other portals, as a replica shows
// them; of this one alone with 0.
func spread(n, portals int) *Index {
	x := New()
	i := 0
	x.Load(func() (hub.Agent, bool) {
		if i++; i > n {
			return hub.Agent{}, false
		}
		a := benchCorpus().agent(i - 1)
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

// BenchmarkSearchFederated compares the CPU of searches over agents of other
// portals with that over the same agents here: cpu/local is the ratio that is
// to be 1.15 at most. The texts are all different, because facets are kept.
func BenchmarkSearchFederated(b *testing.B) {
	const n, texts = 100_000, 400
	local := spread(n, 0)
	words := benchCorpus().words
	for _, portals := range []int{10, 1000} {
		x := spread(n, portals)
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
				var took [2]time.Duration
				for b.Loop() {
					for k, in := range []*Index{local, x} {
						in.state.Add(1) // forget what was counted
						from := cpu()
						for i := range texts {
							in.Search(hub.Query{Text: c.text(i), Limit: 20})
						}
						took[k] += cpu() - from
					}
				}
				b.ReportMetric(float64(took[1])/float64(max(took[0], 1)), "cpu/local")
				b.ReportMetric(float64(took[1].Microseconds())/float64(texts*b.N), "µs-cpu/search")
			})
		}
	}
}
