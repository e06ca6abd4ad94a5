package api

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/bench/corpus"
	"agentsite/handlers/address"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
)

// shownPortals is a hub.Network of portals by their hosts, as the Catalog has
// them in memory.
type shownPortals struct {
	hub.Network
	list map[string]hub.Source
}

func (n shownPortals) Source(a hub.Agent) hub.Source {
	s := n.list[a.Portal]
	s.Verified, s.Record, s.Also = a.Verified, a.Record, a.Also
	return s
}

func (n shownPortals) Coverage([]string) federation.Coverage {
	c := len(n.list) + 1
	return federation.Coverage{Known: c, Asked: c, Answered: c, Silent: []string{}, OldestHead: 60, Tier: "replica"}
}

// BenchmarkSearchFederated is the whole of a search by the API, from the text
// to the bytes of the answer with the source, the proof and the age of each
// result. It compares the processor time for agents of other portals with that
// for the same agents here, as the benchmark of this name in internal/index
// does; cpu/local is to be 1.15 at most.
func BenchmarkSearchFederated(b *testing.B) {
	const n, texts, few = 50_000, 200, 10
	door := func(portals int) *agentAPI {
		net := shownPortals{list: make(map[string]hub.Source)}
		d := &agentAPI{portal: address.Portal{Host: "here.example", URL: "https://here.example"}}
		x := index.New()
		i := 0
		x.Load(func() (hub.Agent, bool) {
			if i++; i > n {
				return hub.Agent{}, false
			}
			a := corpus.Agent(i)
			if portals > 0 {
				a.Portal = fmt.Sprintf("portal-%04d.example", i%portals)
				a.ID = fmt.Sprintf("p1%s%04d/%s", strings.Repeat("a", 48), i%portals, strings.ToLower(a.ID))
				a.Verified, a.Record = true, "leRWh7iGgHka1TIkabuBF5cSalszfuvP2-cCZ6I_f5c"
				net.list[a.Portal] = hub.Source{Portal: a.Portal, URL: "https://" + a.Portal, Name: a.Portal, ID: a.ID[:54], HeadIssued: time.Now()}
			}
			return a, true
		})
		d.hub = hub.New(hub.Ports{Index: x, Network: net}, hub.Config{})
		return d
	}
	used := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	actor := ident.Actor{Scopes: []ident.Scope{ident.AgentsRead}}
	search := func(d *agentAPI, text string) {
		page, err := d.hub.Search(b.Context(), actor, hub.Query{Text: text, Limit: 20})
		if err == nil {
			err = d.writeSearch(httptest.NewRecorder(), &page)
		}
		if err != nil || len(page.Results) == 0 {
			b.Fatal(len(page.Results), err)
		}
	}
	local := door(0)
	for _, portals := range []int{10, 1000} {
		d := door(portals)
		for name, text := range map[string]func(int) string{"hard": corpus.Hard, "two": corpus.Query} {
			b.Run(fmt.Sprintf("%d/%s", portals, name), func(b *testing.B) {
				var ratios []float64
				var each [2]time.Duration
				for round := range b.N {
					var took [2]time.Duration
					for from := 0; from < texts; from += few {
						for turn := range 2 {
							k := (turn + round + from/few) % 2
							began := used()
							for i := from; i < from+few; i++ {
								search([]*agentAPI{local, d}[k], text(round*texts+i))
							}
							took[k] += used() - began
						}
					}
					ratios = append(ratios, float64(took[1])/float64(max(took[0], 1)))
					each[0] += took[0] / time.Duration(texts*b.N)
					each[1] += took[1] / time.Duration(texts*b.N)
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "cpu/local")
				b.ReportMetric(float64(each[0].Nanoseconds())/1e3, "local-µs")
				b.ReportMetric(float64(each[1].Nanoseconds())/1e3, "µs")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
