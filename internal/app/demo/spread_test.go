package demo

import (
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

// Bars of the hundred: registered, then found by words at all.
const (
	spreadMedian = 3 * time.Second
	spreadMost   = 10 * time.Second // of 99 %
)

// Agents are registered one after the other, each at another portal, and a
// search by a word that only it has finds it at all. AGENTSITE_HUNDRED=100 says
// at how many portals, and has the bars count; four are enough to see it.
func TestSpread_FoundByWordsEverywhere(t *testing.T) {
	portals, agents := 4, 3
	hundred, _ := strconv.Atoi(os.Getenv("AGENTSITE_HUNDRED"))
	if hundred > 0 {
		portals, agents = hundred, 40
	}
	began := time.Now()
	f, _, stderr := started(t, portals)
	if len(f.portals) != portals {
		t.Fatalf("%d of %d portals started: %s", len(f.portals), portals, stderr)
	}
	t.Logf("%d portals find what all have after %.1f s", portals, time.Since(began).Seconds())

	var took []time.Duration
	for i := range agents {
		at := f.portals[i*7%portals]
		word := fmt.Sprintf("zephyr%dq", i)
		began := time.Now()
		err := at.clients[0].call(t.Context(), http.MethodPost, "/agents", object{"name": "spread-" + strconv.Itoa(i), "title": "Spread", "description": "Knows " + word + ".",
			"kind": "a2a", "endpoint": at.shop.url + "/" + at.agents[0].name, "visibility": "public", "languages": []string{"en"}, "config": object{"binding": "JSONRPC", "version": "1.0"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		each := make([]time.Duration, portals)
		ctx, cancel := context.WithTimeout(t.Context(), foundWait)
		var group errgroup.Group
		group.SetLimit(4)
		for k, p := range f.portals {
			group.Go(func() error {
				for {
					n, err := p.knows(ctx, word)
					if err == nil && n == 1 {
						each[k] = time.Since(began)
						return nil
					}
					if pause(ctx, foundPoll) != nil {
						return fmt.Errorf("%s finds %d agents by %s: %v", p.name, n, word, err)
					}
				}
			})
		}
		err = group.Wait()
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, each...)
	}
	slices.Sort(took)
	median, most := took[len(took)/2], took[(len(took)*99+99)/100-1]
	t.Logf("registered, then found by a word: p50 %.2f s, p99 %.2f s, at most %.2f s, of %d agents at %d portals", median.Seconds(), most.Seconds(), took[len(took)-1].Seconds(), agents, portals)
	if hundred > 0 && (median > spreadMedian || most > spreadMost) {
		t.Errorf("MISSED: p50 of at most %v, p99 of %v", spreadMedian, spreadMost)
	}
}

// knows counts the agents of all portals that a search by a word finds.
func (p *portal) knows(ctx context.Context, word string) (int, error) {
	var page struct{ Total int }
	err := p.clients[0].call(ctx, http.MethodGet, "/search?limit=1&scope=federation&q="+word, nil, &page)
	return page.Total, err
}
