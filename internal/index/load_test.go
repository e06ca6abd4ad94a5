package index

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"agentsite/internal/hub"
	"agentsite/internal/testing/racetest"

	"pgregory.net/rapid"
)

// source returns the agents of a list one by one, as Load asks for them.
func source(list []hub.Agent) func() (hub.Agent, bool) {
	i := 0
	return func() (hub.Agent, bool) {
		if i++; i > len(list) {
			return hub.Agent{}, false
		}
		return list[i-1], true
	}
}

// sameIndex compares two indexes of the same agents by all that can be asked.
func sameIndex(t interface{ Fatalf(string, ...any) }, x, y *Index, queries []hub.Query) {
	if x.Len() != y.Len() {
		t.Fatalf("%d agents, want %d", x.Len(), y.Len())
	}
	for _, q := range queries {
		for pages := 0; pages < 3; pages++ {
			got, err := x.Search(q)
			want, err2 := y.Search(q)
			if err != nil || err2 != nil {
				t.Fatalf("%+v: %v, %v", q, err, err2)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v:\n got %+v\nwant %+v", q, got, want)
			}
			if q.Cursor = got.NextCursor; q.Cursor == "" {
				break
			}
		}
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	y.mu.RLock()
	defer y.mu.RUnlock()
	var keys [2][]string
	var values [2][]string
	for i, x := range []*Index{x, y} {
		x.words.Ascend("", func(id int) bool {
			keys[i] = append(keys[i], x.words.Key(id))
			if doc, ok := x.byID.Find(idOf(x.words.Key(id))); !ok || int(doc) != id {
				t.Fatalf("%s is at %d, not %d", x.words.Key(id), doc, id)
			}
			return true
		})
		for f := range facetCount {
			facet := x.facets[f]
			last := len(x.docs)
			for pos, number := range facet.order {
				v := &facet.values[number]
				n := v.docs.len()
				if n > last || n == 0 || int(v.pos) != pos {
					t.Fatalf("%q with %d is at %d, noted %d, behind %d", v.text, n, pos, v.pos, last)
				}
				last = n
				values[i] = append(values[i], fmt.Sprintf("%s %q %d", facetNames[f], v.text, n))
			}
			for n, above := range facet.above {
				count := 0
				for _, number := range facet.order {
					if facet.values[number].docs.len() > n {
						count++
					}
				}
				if int(above) != count {
					t.Fatalf("facet %d: %d values above %d, want %d", f, above, n, count)
				}
			}
		}
		slices.Sort(values[i])
	}
	if !slices.Equal(keys[0], keys[1]) {
		t.Fatalf("keys\n got %q\nwant %q", keys[0], keys[1])
	}
	if got, want := values[0], values[1]; !slices.Equal(got, want) {
		t.Fatalf("values\n got %q\nwant %q", got, want)
	}
}

// valueCount is the number of values of all facets.
func (x *Index) valueCount() (n int) {
	for _, facet := range x.facets {
		n += facet.byText.Len()
	}
	return n
}

// TestLoad_AgreesWithPut fills one index by loads with puts and removals
// before, between and after, and one with what is left, in any order.
func TestLoad_AgreesWithPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, left := New(), make(map[string]hub.Agent)
		note := func(a hub.Agent) {
			if delete(left, a.ID); isListable(&a) {
				left[a.ID] = a
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			var list []hub.Agent
			from := rapid.IntRange(0, 60).Draw(t, "from")
			for i := range rapid.IntRange(0, 80).Draw(t, "loaded") {
				list = append(list, drawAgent(t, from+i))
				note(list[i])
			}
			x.Load(source(list))
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				if a := drawAgent(t, rapid.IntRange(0, 150).Draw(t, "id")); rapid.Bool().Draw(t, "remove") {
					x.Remove(a.ID)
					delete(left, a.ID)
				} else {
					x.Put(a)
					note(a)
				}
			}
		}
		y := New()
		for _, a := range left { // a map's order
			y.Put(a)
		}
		var queries []hub.Query
		for range 5 {
			queries = append(queries, drawQuery(t))
		}
		sameIndex(t, x, y, queries)
		for _, w := range plainWords { // suggestions are of any agents when many are alike
			got, want := x.Suggest(w, 20), y.Suggest(w, 20)
			if len(got) != len(want) {
				t.Fatalf("%q suggests %v, want %v", w, got, want)
			}
		}
		for id := range left {
			x.Remove(id)
		}
		if x.Len() != 0 || x.words.Words() != 0 || x.valueCount() != 0 {
			t.Fatalf("%d agents, %d words and %d values are left", x.Len(), x.words.Words(), x.valueCount())
		}
	})
}

// queriesOf are searches for a corpus: common and rare words, phrases of common
// ones, near spellings, filters, orders.
func queriesOf(c *corpus, r *rand.Rand) []hub.Query {
	var queries []hub.Query
	word := func() string { return c.words[zipf(r, len(c.words))] }
	for i := range 40 {
		a, b := word(), word()
		queries = append(queries, hub.Query{Text: a}, hub.Query{Text: a + " " + b}, hub.Query{Text: `"` + c.words[i%6] + " " + c.words[i/6] + `"`},
			hub.Query{Text: a[:2]}, hub.Query{Text: a[:len(a)-1] + "x" + a[len(a)-1:]}, hub.Query{Text: a + " -" + c.words[i%3]},
			hub.Query{Tags: []string{c.tags[zipf(r, 50)]}}, hub.Query{Text: b, Kinds: []string{"a2a"}, Sort: hub.SortName})
	}
	for _, sort := range hub.Sorts {
		queries = append(queries, hub.Query{Sort: sort, Limit: 100})
	}
	return queries
}

// TestLoad_OfManyAgreesWithPut is of so many that words become common, values
// frequent and chunks full within a segment; a few are put, changed and removed
// before and after.
func TestLoad_OfManyAgreesWithPut(t *testing.T) {
	racetest.Skip(t)
	if testing.Short() {
		t.Skip("seconds")
	}
	const n = 9000
	c, r := newCorpus(), rand.New(rand.NewPCG(3, 4))
	agents := make([]hub.Agent, n)
	for i := range agents {
		agents[i] = c.agent(i)
	}
	x, y := New(), New()
	for i := range 700 {
		x.Put(c.agent(i + 3000)) // known to Load
	}
	for i := range 300 {
		x.Remove(agents[i+3100].ID) // free numbers
	}
	x.Load(source(agents[:6000]))
	x.Load(source(agents[6000:]))
	for i := 0; i < n; i += 7 {
		agents[i].Description, agents[i].Skills = agents[(i+1)%n].Description, agents[(i+2)%n].Skills
		x.Put(agents[i])
	}
	for i := 3; i < n; i += 5 {
		x.Remove(agents[i].ID)
	}
	for _, i := range r.Perm(n) {
		if i%5 != 3 {
			y.Put(agents[i])
		}
	}
	sameIndex(t, x, y, queriesOf(c, r))
	for i := range 200 {
		w := c.words[zipf(r, 3000)]
		if got, want := x.words.Suggest(w[:len(w)/2]+"qx"+w[len(w)/2:], 5), y.words.Suggest(w[:len(w)/2]+"qx"+w[len(w)/2:], 5); !slices.Equal(got, want) {
			t.Fatalf("%d: %s suggests %q, want %q", i, w, got, want)
		}
	}
	for i := range agents {
		x.Remove(agents[i].ID)
	}
	if x.Len() != 0 || x.words.Words() != 0 || x.words.Pairs() != 0 || x.valueCount() != 0 {
		t.Fatalf("%d agents, %d words, %d pairs, %d values are left", x.Len(), x.words.Words(), x.words.Pairs(), x.valueCount())
	}
}

// TestLoad_AmongOthers loads while the same agents and others are put, removed
// and searched, and then twice the same; at the end all is as it was said last.
func TestLoad_AmongOthers(t *testing.T) {
	const n = 1500
	c := newCorpus()
	agents := make([]hub.Agent, n)
	for i := range agents {
		agents[i] = c.agent(i)
	}
	x := New()
	var wg sync.WaitGroup
	loaded := make(chan struct{})
	for w := range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-loaded:
					return
				default:
				}
				a := c.agent((i*37 + w*5) % n)
				switch i % 4 {
				case 0:
					x.Put(a) // as Load brings it, before or after
				case 1:
					x.Put(c.agent(n + i%50))
				case 2:
					x.Remove(c.agent(n + i%50).ID)
				case 3:
					if _, err := x.Search(hub.Query{Text: c.words[i%60] + " " + c.words[i%7]}); err != nil {
						t.Error(err)
					}
					x.Suggest(c.words[i%60][:2], 8)
				}
			}
		})
	}
	var loads sync.WaitGroup
	for range 2 {
		loads.Go(func() { x.Load(source(agents)) })
	}
	loads.Wait()
	close(loaded)
	wg.Wait()
	for i := range 50 {
		x.Remove(c.agent(n + i).ID)
	}
	y := New()
	for _, a := range agents {
		y.Put(a)
	}
	sameIndex(t, x, y, queriesOf(c, rand.New(rand.NewPCG(7, 8))))
}
