package index

import (
	"fmt"
	"strings"
	"testing"

	"agentsite/internal/hub"

	"pgregory.net/rapid"
)

// crowd is an index with agents of some portals, "" for this one, whose
// descriptions say a word so many times as their number asks for.
func crowd(counts map[string]int) *Index {
	x := New()
	for portal, n := range counts {
		for i := range n {
			id := fmt.Sprintf("%s-%03d", portal, i)
			text := "stuff"
			if strings.HasPrefix(portal, "stuffed") {
				text = "stuff stuff stuff stuff"
			}
			x.Put(hub.Agent{ID: id, Name: fmt.Sprintf("n%03d", i), Portal: portal, Title: "agent", Description: text, Kind: hub.A2A, Visibility: hub.Public,
				Status: hub.Status{State: hub.Active}, Liveness: hub.Liveness{State: hub.Alive}})
		}
	}
	return x
}

// pages are the agents of all pages, as portals.
func pages(t testing.TB, x *Index, q hub.Query) (out [][]string) {
	t.Helper()
	for {
		page, err := x.Search(q)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, r := range page.Results {
			list = append(list, r.Agent.Portal+"/"+r.Agent.ID)
		}
		out = append(out, list)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return out
		}
	}
}

func ofPortal(list []string, portal string) (n int) {
	for _, s := range list {
		if strings.HasPrefix(s, portal+"/") {
			n++
		}
	}
	return n
}

func TestSearch_NoPortalTakesOverAPage(t *testing.T) {
	t.Parallel()
	x := crowd(map[string]int{"": 40, "stuffed.example": 300, "fair.example": 40})
	list := pages(t, x, hub.Query{Text: "stuff", Limit: 20})
	seen := make(map[string]bool)
	for i, page := range list {
		for _, s := range page {
			if seen[s] {
				t.Fatalf("%s comes twice", s)
			}
			seen[s] = true
		}
		others := ofPortal(page, "") + ofPortal(page, "fair.example")
		if n := ofPortal(page, "stuffed.example"); others == 20-4 && n != 4 || others > 20-4 && n > 4 {
			t.Errorf("page %d: %d of the stuffed portal beside %d", i, n, others)
		}
	}
	if first := list[0]; ofPortal(first, "stuffed.example") != 4 || ofPortal(first, "fair.example") != 4 || ofPortal(first, "") != 12 {
		t.Errorf("the first page: %q", first)
	}
	if len(seen) != 380 || len(list) != 19 {
		t.Errorf("%d agents on %d pages", len(seen), len(list))
	}
	// Whoever asks for it gets it, and so does who finds nothing else.
	if list := pages(t, x, hub.Query{Text: "stuff", Limit: 20, Portals: []string{"stuffed.example"}}); len(list) != 15 || ofPortal(list[0], "stuffed.example") != 20 {
		t.Errorf("asked for: %q", list[0])
	}
	alone := crowd(map[string]int{"": 2, "stuffed.example": 30})
	if list := pages(t, alone, hub.Query{Text: "stuff", Limit: 20}); len(list) != 2 || ofPortal(list[0], "stuffed.example") != 18 || ofPortal(list[0], "") != 2 {
		t.Errorf("nothing else matches: %q", list)
	}
}

func TestSearch_HoldsBackManyPortals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		counts := map[string]int{"": rapid.IntRange(0, 30).Draw(t, "own")}
		total := counts[""]
		for i := range rapid.IntRange(0, 14).Draw(t, "portals") {
			portal := fmt.Sprintf("%s%d.example", rapid.SampledFrom([]string{"stuffed", "plain"}).Draw(t, "kind"), i)
			counts[portal] = rapid.IntRange(1, 25).Draw(t, "agents")
			total += counts[portal]
		}
		x := crowd(counts)
		q := hub.Query{Text: "stuff", Limit: rapid.IntRange(1, 25).Draw(t, "limit")}
		seen := make(map[string]bool)
		for {
			page, err := x.Search(q)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Results {
				if seen[r.Agent.ID] {
					t.Fatalf("%s comes twice", r.Agent.ID)
				}
				seen[r.Agent.ID] = true
			}
			if page.NextCursor == "" {
				break
			}
			if len(page.Results) != q.Limit {
				t.Fatalf("%d on a page of %d that is not the last", len(page.Results), q.Limit)
			}
			q.Cursor = page.NextCursor
			if len(q.Cursor) > maxCursorBytes {
				t.Fatal("the cursor is too long")
			}
		}
		if len(seen) != total {
			t.Fatalf("%d of %d", len(seen), total)
		}
	})
}

func TestCursor_BehindIsBounded(t *testing.T) {
	t.Parallel()
	for _, b := range [][]byte{{}, {0}, {9}, {1}, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'p'}, 255, 255),
		{1, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1, 0, 1, 'p', 0, 0}, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}} {
		if list, _, ok := decodeBehind(b, false); ok {
			t.Errorf("%x is taken for %+v", b, list)
		}
	}
}
