package demo

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Bars of BenchmarkSpread: the time from the registration of an agent until a
// search by words finds it.
const (
	spreadMedian = 3 * time.Second
	spreadMost   = 10 * time.Second // of 99 %
)

// Agents are registered one after the other, each at another portal, and a
// search by a word that only it has finds it at all portals.
func TestSpread_FoundByWordsEverywhere(t *testing.T) {
	t.Parallel()
	f := spreading(t, 4)
	for i := range 3 {
		f.spread(t, i, func(int) {})
	}
}

// BenchmarkSpread does the same with bars. AGENTSITE_HUNDRED=100 sets the number
// of portals.
func BenchmarkSpread(b *testing.B) {
	portals, err := strconv.Atoi(cmp.Or(os.Getenv("AGENTSITE_HUNDRED"), "4"))
	if err != nil {
		b.Fatal(err)
	}
	f := spreading(b, portals)
	var took []time.Duration
	n := 0
	for b.Loop() {
		began := b.Elapsed()
		each := make([]time.Duration, portals)
		f.spread(b, n, func(k int) { each[k] = b.Elapsed() - began })
		took = append(took, each...)
		n++
	}
	slices.Sort(took)
	median, most := took[len(took)/2], took[(len(took)*99+99)/100-1]
	b.ReportMetric(median.Seconds(), "p50-s")
	b.ReportMetric(most.Seconds(), "p99-s")
	if median > spreadMedian || most > spreadMost {
		b.Errorf("MISSED: p50 of at most %v, p99 of %v", spreadMedian, spreadMost)
	}
}

// spreading is a federation of which all portals started.
func spreading(t testing.TB, portals int) *federation {
	t.Helper()
	f, _, stderr := started(t, portals)
	if len(f.portals) != portals {
		t.Fatalf("%d of %d portals started: %s", len(f.portals), portals, stderr)
	}
	return f
}

// spread registers the i-th agent and waits until all portals find it. It calls
// found with the number of each portal that does.
func (f *federation) spread(t testing.TB, i int, found func(portal int)) {
	t.Helper()
	at := f.portals[i*7%len(f.portals)]
	word := fmt.Sprintf("zephyr%dq", i)
	draft := object{
		"name": "spread-" + strconv.Itoa(i), "title": "Spread", "description": "Knows " + word + ".", "kind": "a2a",
		"endpoint": at.shop.url + "/" + at.agents[0].Name, "visibility": "public", "languages": []string{"en"},
		"config": object{"binding": "JSONRPC", "version": "1.0"},
	}
	if err := at.clients[0].callAPI(t.Context(), http.MethodPost, "/agents", draft, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(4)
	for k, p := range f.portals {
		group.Go(func() error {
			for {
				n, err := p.knows(ctx, word)
				if err == nil && n == 1 {
					found(k)
					return nil
				}
				if pauseFor(ctx, foundPoll) != nil {
					return fmt.Errorf("%s finds %d agents by %s: %v", p.name, n, word, err)
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// knows counts the agents of all portals that a search by a word finds.
func (p *portal) knows(ctx context.Context, word string) (int, error) {
	var page struct{ Total int }
	err := p.clients[0].callAPI(ctx, http.MethodGet, "/search?limit=1&scope=federation&q="+word, nil, &page)
	return page.Total, err
}
