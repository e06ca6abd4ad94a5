package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
)

// TestSearch_PagesStayWhileAgentsComeAndGo walks through every order while
// others are put between the pages, so many that every word changes its
// weight: who was there from the start comes once.
func TestSearch_PagesStayWhileAgentsComeAndGo(t *testing.T) {
	c := newCorpus()
	for _, q := range []hub.Query{
		{Text: c.words[0] + " " + c.words[1]}, {Text: c.words[0]}, {Text: c.words[0][:2]}, {Text: c.words[3] + " " + c.words[900] + "x"}, {},
		{Text: c.words[2], Sort: hub.SortName}, {Sort: hub.SortName}, {Sort: hub.SortNewest}, {Text: c.words[1], Sort: hub.SortNewest}, {Sort: hub.SortUpdated},
	} {
		x, r := New(), rand.New(rand.NewPCG(1, 1))
		put := func(i int) {
			a := c.agent(i)
			a.CreatedAt, a.UpdatedAt = time.Unix(int64(r.IntN(50)), 0), time.Unix(int64(r.IntN(50)), 0)
			x.Put(a)
		}
		for i := range 300 {
			put(i)
		}
		q.Limit = 100
		want := make(map[string]bool)
		for first := q; ; {
			page := mustSearch(t, x, first)
			for _, r := range page.Results {
				want[r.Agent.ID] = true
			}
			if first.Cursor = page.NextCursor; first.Cursor == "" {
				break
			}
		}
		q.Limit = 40
		seen := make(map[string]int)
		for next := 300; ; next += 15 {
			page := mustSearch(t, x, q)
			for _, r := range page.Results {
				seen[r.Agent.ID]++
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
			for i := range 15 {
				put(next + i)
			}
			x.Remove(c.agent(next).ID)
		}
		for id, n := range seen {
			if n > 1 {
				t.Errorf("%+v: %s came %d times", q, id, n)
			}
		}
		for id := range want {
			if seen[id] == 0 {
				t.Errorf("%q %s: %s was skipped", q.Text, q.Sort, id)
			}
		}
	}
}

func TestSearch_RefusesACursorOfAnotherOrderAndUnknownOrders(t *testing.T) {
	x := filled(agent("a"), agent("b"))
	cursor := mustSearch(t, x, hub.Query{Limit: 1, Sort: hub.SortName}).NextCursor
	for _, c := range []struct {
		q     hub.Query
		field string
	}{{hub.Query{Sort: hub.SortNewest, Cursor: cursor}, "cursor"}, {hub.Query{Cursor: cursor}, "cursor"}, {hub.Query{Sort: "best"}, "sort"}} {
		if _, err := x.Search(c.q); !fault.Is(err, fault.Invalid) || fault.As(err).Fields[c.field] == "" {
			t.Errorf("%+v: %v", c.q, err)
		}
	}
}

func TestSearch_SinksOnlyWhereRelevanceRules(t *testing.T) {
	old := func(a *hub.Agent) { a.Status.State = hub.Deprecated }
	x := filled(agent("b"), agent("a", old), agent("c", live(hub.Unreachable)))
	for sort, want := range map[string]string{"": "b a c", hub.SortRelevance: "b a c", hub.SortName: "a b c", hub.SortNewest: "a b c"} {
		if got := names(mustSearch(t, x, hub.Query{Sort: sort})); got != want {
			t.Errorf("%q: %q, want %q", sort, got, want)
		}
	}
	x.Put(agent("a"))
	if got := names(mustSearch(t, x, hub.Query{})); got != "a b c" {
		t.Errorf("no longer deprecated: %q", got)
	}
}

func TestSearch_OrdersTimesOfAllKinds(t *testing.T) {
	x := New()
	times := []time.Time{{}, time.Unix(0, 0), time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(5, 1), time.Unix(5, 2)}
	for i, at := range times {
		x.Put(agent(fmt.Sprint("a", i), func(a *hub.Agent) { a.CreatedAt = at }))
	}
	page := mustSearch(t, x, hub.Query{Sort: hub.SortNewest})
	if got := names(page); got != "a3 a5 a4 a1 a2 a0" {
		t.Errorf("listed %q", got)
	}
	if !page.Results[5].Agent.CreatedAt.IsZero() || !page.Results[1].Agent.CreatedAt.Equal(times[5]) {
		t.Error("times are not what they were")
	}
}

func TestSearch_SaysWhy(t *testing.T) {
	x := filled(agent("polyglot", describe("Translates pull requests."), skill("Translate text", "language")), agent("weather", describe("Forecasts.")))
	for text, want := range map[string]string{
		"polyglot":             "[{polyglot polyglot exact name}]",
		"translation":          "[{translation translate form skills}]",
		"languages":            "[{languages language form tags}]",
		"transl":               "[{transl translate prefix skills}]",
		"polyglto":             "[{polyglto polyglot typo name}]",
		`"pull request"`:       "[{pull pull phrase description} {request requests phrase description}]",
		"weather storm":        "[{weather weather exact name}]",
		"of polyglot language": "[{polyglot polyglot exact name} {language language exact tags}]",
	} {
		page := mustSearch(t, x, hub.Query{Text: text})
		if got := fmt.Sprint(page.Results[0].Why); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		for _, sort := range hub.Sorts { // the same in every order
			i := slices.IndexFunc(mustSearch(t, x, hub.Query{Text: text, Sort: sort}).Results, func(r hub.Result) bool { return r.Agent.ID == page.Results[0].Agent.ID })
			r := mustSearch(t, x, hub.Query{Text: text, Sort: sort}).Results[i]
			if fmt.Sprint(r.Why) != want || r.Score != page.Results[0].Score || fmt.Sprint(r.Matched) != fmt.Sprint(page.Results[0].Matched) {
				t.Errorf("%s by %s: %+v", text, sort, r)
			}
		}
	}
	if why := mustSearch(t, x, hub.Query{}).Results[0].Why; len(why) > 0 {
		t.Errorf("a listing says %v", why)
	}
}
