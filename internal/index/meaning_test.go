package index

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"agentsite/internal/hub"
)

// concepts is an encoder of a few words: those of one line mean the same.
type concepts map[string]int

const conceptDims = 64

func newConcepts(lines ...string) concepts {
	c := make(concepts)
	for i, line := range lines {
		for w := range strings.FieldsSeq(line) {
			c[w] = i
		}
	}
	return c
}

// Encode implements Encoder: the mean of the axes of the known words.
func (c concepts) Encode(text string) []float32 {
	v := make([]float32, conceptDims)
	sum := 0.0
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if axis, ok := c[w]; ok {
			v[axis]++
		}
	}
	for _, f := range v {
		sum += float64(f * f)
	}
	if sum == 0 {
		return nil
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// Knows implements Encoder.
func (c concepts) Knows(text string) bool {
	for w := range strings.FieldsSeq(text) {
		if _, ok := c[w]; !ok {
			return false
		}
	}
	return true
}

// care is a small world: two vets, a plumber, an accountant.
var care = newConcepts("puppy dog canine", "fever illness disease", "water drip leak plumbing", "tax money", "poem verse")

func careIndex(more ...hub.Agent) *Index {
	x := NewWithMeaning(care, conceptDims)
	for _, a := range append([]hub.Agent{
		agent("vetta", describe("Cares for animals."), skill("Canine illness"), skill("Poem writing")),
		agent("pipes", describe("Plumbing, and every leak.")),
		agent("ledger", describe("Tax advice."), skill("Money matters")),
	}, more...) {
		x.Put(a)
	}
	return x
}

func TestSearch_FindsByMeaning(t *testing.T) {
	x := careIndex()
	page := mustSearch(t, x, hub.Query{Text: "my puppy has a fever"})
	if names(page) != "vetta" || page.Total != 1 {
		t.Fatalf("found %s, %d", names(page), page.Total)
	}
	r := page.Results[0]
	want := hub.Match{Found: "Canine illness", How: hub.ByMeaning, Field: "skills"}
	if !slices.Contains(r.Why, want) || !slices.Contains(r.Matched, hub.ByMeaning) || r.Score <= 0 {
		t.Errorf("why: %+v, matched %q, score %v", r.Why, r.Matched, r.Score)
	}
	if got := names(mustSearch(t, x, hub.Query{Text: "my puppy has a fever", Mode: hub.ModeWords})); got != "" {
		t.Errorf("by words it finds %s", got)
	}
	if got := names(mustSearch(t, New(), hub.Query{Text: "my puppy has a fever"})); got != "" {
		t.Errorf("an empty index finds %s", got)
	}
}

func TestSearch_ChangesAreFoundByMeaningAtOnce(t *testing.T) {
	x := careIndex()
	q := hub.Query{Text: "verse"}
	if got := names(mustSearch(t, x, q)); got != "vetta" {
		t.Fatalf("found %s", got)
	}
	x.Put(agent("vetta", describe("Cares for animals."), skill("Canine illness")))
	if got := names(mustSearch(t, x, q)); got != "" {
		t.Errorf("a skill that was deleted finds %s", got)
	}
	x.Put(agent("bard", describe("A poem for each day.")))
	if got := names(mustSearch(t, x, q)); got != "bard" {
		t.Errorf("a new agent is not found, but %q", got)
	}
	x.Remove("id-bard")
	if got := names(mustSearch(t, x, q)); got != "" {
		t.Errorf("a removed agent finds %s", got)
	}
}

func TestSearch_MeaningKeepsFiltersPhrasesAndExclusions(t *testing.T) {
	x := careIndex(agent("rex", describe("Canine disease."), kind(hub.OpenAI)))
	for _, c := range []struct {
		q    hub.Query
		want string
	}{
		{hub.Query{Text: "puppy fever"}, "rex vetta"},
		{hub.Query{Text: "puppy fever", Kinds: []string{"openai"}}, "rex"},
		{hub.Query{Text: "puppy fever", Kinds: []string{"builtin"}}, ""},
		{hub.Query{Text: "puppy fever -disease"}, "vetta"},
		{hub.Query{Text: `"puppy fever"`}, ""},
		{hub.Query{Text: `"canine illness"`}, "vetta"},
		{hub.Query{Text: "puppy fever canine", Mode: hub.ModeMeaning, Sort: hub.SortName}, "rex vetta"},
		{hub.Query{Text: "leak", Mode: hub.ModeMeaning}, "pipes"},
		{hub.Query{Text: "the of and"}, ""},
		{hub.Query{Text: "pipes"}, "pipes"}, // a word without a meaning
	} {
		page := mustSearch(t, x, c.q)
		got := strings.Fields(names(page))
		slices.Sort(got)
		if strings.Join(got, " ") != c.want || page.Total != len(got) {
			t.Errorf("%+v finds %q of %d, want %q", c.q, got, page.Total, c.want)
		}
		if n := page.Facets["kind"]; len(c.q.Kinds) == 0 && page.Total > 0 {
			sum := 0
			for _, f := range n {
				sum += f.Count
			}
			if sum != page.Total {
				t.Errorf("%+v: the facet counts %d of %d", c.q, sum, page.Total)
			}
		}
	}
}

func TestSearch_ExactNameIsFirst(t *testing.T) {
	x := careIndex(agent("puppy"), agent("dogs", describe("Dog, puppy, canine, dog.")))
	if got := names(mustSearch(t, x, hub.Query{Text: "puppy"})); !strings.HasPrefix(got, "puppy ") {
		t.Errorf("found %s", got)
	}
}

func TestSearch_FillerWordsFindNothing(t *testing.T) {
	x := careIndex(agent("chatty", describe("Has a word with my friend.")))
	for _, mode := range []string{hub.ModeAuto, hub.ModeWords} {
		if got := names(mustSearch(t, x, hub.Query{Text: "my zebra has a mouse", Mode: mode})); got != "" {
			t.Errorf("%s: found %s", mode, got)
		}
	}
}

// TestSearch_PagesOfMeaningsAreWhole reads all pages of a ranking in which words and meanings alternate, among
// agents of several portals: each agent comes once, in the order of the scores of one large page.
func TestSearch_PagesOfMeaningsAreWhole(t *testing.T) {
	x := careIndex()
	for i := range 120 {
		text := []string{"Canine disease.", "Puppy matters", "Fever.", "Dog dog fever", "Puppy of illness", "Nothing at all"}[i%6]
		a := agent(fmt.Sprintf("n%03d", i), describe(text))
		if i%3 > 0 {
			portal(fmt.Sprintf("p%d.example", i%3))(&a)
		}
		x.Put(a)
	}
	for _, portals := range [][]string{nil, {"local", "p1.example", "p2.example"}} {
		q := hub.Query{Text: "puppy fever", Portals: portals, Limit: 100}
		seen := make(map[string]bool)
		total := 0
		for q.Limit = 7; ; {
			page := mustSearch(t, x, q)
			total = page.Total
			for i, r := range page.Results {
				if seen[r.Agent.ID] {
					t.Fatalf("%s comes twice", r.Agent.ID)
				}
				if seen[r.Agent.ID] = true; i > 0 && r.Score > page.Results[i-1].Score {
					t.Errorf("%s has a greater score than the one before", r.Agent.ID)
				}
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
		if len(seen) != total || total < 100 {
			t.Errorf("the pages have %d agents of %d", len(seen), total)
		}
	}
}

func TestRun_EncodesWhatLoadAdded(t *testing.T) {
	x := NewWithMeaning(care, conceptDims)
	list := []hub.Agent{agent("vetta", skill("Canine illness")), agent("ledger", skill("Money matters"))}
	x.Load(func() (hub.Agent, bool) {
		if len(list) == 0 {
			return hub.Agent{}, false
		}
		a := list[0]
		list = list[1:]
		return a, true
	})
	q := hub.Query{Text: "puppy fever"}
	if got := names(mustSearch(t, x, q)); got != "" {
		t.Fatalf("found %s before it was encoded", got)
	}
	x.Put(agent("ledger", skill("Dog fever"))) // changed before Run reaches it
	x.EncodeAll(context.Background())
	if got := names(mustSearch(t, x, q)); got != "ledger vetta" {
		t.Errorf("found %q", got)
	}
	if x.senses.store.Rows() != 4 {
		t.Errorf("%d vectors, want 4", x.senses.store.Rows())
	}
}

func TestBeside_ScoresMeaningsAlike(t *testing.T) {
	x := careIndex()
	far := agent("far", portal("q.example"), describe("Cares for animals."), skill("Canine illness"), skill("Poem writing"))
	page, err := x.Beside([]hub.Agent{far}, hub.Query{Text: "puppy fever"})
	if err != nil {
		t.Fatal(err)
	}
	here := mustSearch(t, x, hub.Query{Text: "puppy fever"})
	if names(page) != "far@q.example" || math.Abs(page.Results[0].Score-here.Results[0].Score) > 0.5 {
		t.Errorf("found %s with %+v, here %+v", names(page), page.Results, here.Results)
	}
}

func TestSearch_UnfitListsTheBest(t *testing.T) {
	mixed := newConcepts("puppy dog", "fever", "water", "tax", "poem", "storm", "bread", "stone")
	x := NewWithMeaning(mixed, conceptDims)
	x.Put(agent("baker", describe("Bread water tax poem stone dog.")))
	x.Put(agent("mason", describe("Stone.")))
	q := hub.Query{Text: "storm fever puppy"}
	if got := names(mustSearch(t, x, q)); got != "" {
		t.Fatalf("a query that none fits finds %s", got)
	}
	q.Unfit = true
	page := mustSearch(t, x, q)
	if got := names(page); got != "baker" {
		t.Errorf("found %q, want the nearest agent", got)
	}
	if f := page.Facets["kind"]; len(f) != 1 || f[0].Count != 1 {
		t.Errorf("the facets are those of another search: %+v", f)
	}
}

func TestSearch_SpecialistIsFirst(t *testing.T) {
	x := careIndex()
	x.Put(agent("aide", skill("Canine illness"), skill("Tax"), skill("Money"), skill("Leak"), skill("Verse")))
	if got := names(mustSearch(t, x, hub.Query{Text: "puppy fever"})); got != "vetta aide" {
		t.Errorf("found %q", got)
	}
}

// stoppable is an encoder that ends a context after some texts.
type stoppable struct {
	concepts
	left atomic.Int64
	stop context.CancelFunc
}

func (s *stoppable) Encode(text string) []float32 {
	if s.left.Add(-1) == 0 {
		s.stop()
	}
	return s.concepts.Encode(text)
}

// TestSearch_PagesStayWholeWhileAgentsGetVectors reads pages while EncodeAll works and other agents come and go: each
// agent that the first page counted comes once, in the order that one large page had.
func TestSearch_PagesStayWholeWhileAgentsGetVectors(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 11))
		e := &stoppable{concepts: care}
		x := NewWithMeaning(e, conceptDims)
		text := func() string {
			words := strings.Fields("puppy dog canine fever illness water leak money verse and")
			list := make([]string, 1+r.IntN(5))
			for i := range list {
				list[i] = words[r.IntN(len(words))]
			}
			return strings.Join(list, " ")
		}
		n := 0
		x.Load(func() (hub.Agent, bool) {
			n++
			return agent(fmt.Sprintf("n%03d", n), describe(text())), n <= 400
		})
		encodeSome := func() {
			ctx, cancel := context.WithCancel(t.Context())
			e.stop = cancel
			e.left.Store(int64(1 + r.IntN(60)))
			x.EncodeAll(ctx)
			cancel()
		}
		encodeSome()
		q := hub.Query{Text: "puppy fever", Limit: 100}
		whole := mustSearch(t, x, q)
		want := strings.Fields(names(whole))
		var got []string
		for q.Limit = 7; ; {
			page := mustSearch(t, x, q)
			for _, res := range page.Results {
				if !strings.HasPrefix(res.Agent.Name, "new") {
					got = append(got, res.Agent.Name)
				}
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
			encodeSome()
			for range r.IntN(8) {
				a := agent(fmt.Sprintf("new%d", r.IntN(10)), describe("Puppy fever "+text()))
				if x.Put(a); r.IntN(3) == 0 {
					x.Remove(a.ID)
				}
			}
		}
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) || len(got) != whole.Total {
			t.Fatalf("seed %d: the pages have %d agents of %d\n%s\nwant\n%s", seed, len(got), whole.Total, got, want)
		}
	}
}
