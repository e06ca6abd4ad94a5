package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/catalog"
)

// crowd is simulated portals, each with a summary of some words that many have.
func crowd(rng *rand.Rand, portals, words int) []askable {
	list := make([]askable, portals)
	for i := range list {
		terms := record.NewBloom(words)
		for range words - 10 {
			terms.Add(fmt.Sprint("w", rng.IntN(20*words)))
		}
		list[i] = askable{id: recordtest.NewPortal(fmt.Sprint("p", i)).ID, rtt: time.Duration(1+rng.IntN(500)) * time.Millisecond, trust: rng.IntN(2),
			summary: &catalog.Summary{Terms: terms, FalsePositives: terms.Wrong(), Capabilities: map[string]int64{"common": 3}}}
	}
	return list
}

func add(s *catalog.Summary, text string) {
	bm25.Terms([]string{text}, func(t string) { s.Terms.Add(t) })
}

// falsely counts the portals that have the word by chance.
func falsely(list []askable, w sought, holders []int) (n int) {
	for i, p := range list {
		if !slices.Contains(holders, i) && slices.ContainsFunc(w.words[0], p.summary.Terms.HasTerm) {
			n++
		}
	}
	return n
}

func TestChoose_FindsHoldersOfRareWords(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	list := crowd(rng, 1000, 500)
	for _, p := range list {
		add(p.summary, "translate")
	}
	missed := 0
	for n := range 50 {
		word := fmt.Sprintf("zyzzyva%dx", n)
		holders := rng.Perm(len(list))[:3]
		for _, h := range holders {
			add(list[h].summary, word)
		}
		w := soughtOf(hub.Query{Text: word})
		got := choose(list, w, 20)
		if len(got) != 20 {
			t.Fatal(len(got))
		}
		wrong := falsely(list, w, holders)
		// A frequent word beside the rare one changes nothing.
		both := choose(list, soughtOf(hub.Query{Text: "translates " + word}), 20)
		for _, h := range holders {
			if wrong+len(holders) > 20 {
				missed++ // chance decides
				continue
			}
			if !slices.Contains(got, h) || !slices.Contains(both, h) {
				t.Errorf("%s: portal %d has it and is not asked; %d others seem to", word, h, wrong)
			}
		}
	}
	if missed > 15 {
		t.Errorf("of 150 holders %d stand behind too many that seem to have the word", missed)
	}
}

func TestChoose_OrdersByWhatIsKnown(t *testing.T) {
	t.Parallel()
	sum := func(words ...string) *catalog.Summary {
		s := &catalog.Summary{Terms: record.NewBloom(50), Capabilities: map[string]int64{}, Languages: map[string]bool{}}
		for _, w := range words {
			add(s, w)
		}
		return s
	}
	full := sum()
	for i := range full.Terms {
		full.Terms[i] = 0xff
	}
	full.FalsePositives = full.Terms.Wrong()
	tagged := sum()
	tagged.Capabilities["nlp/translation"] = 4
	id := func(n int) record.PortalID { return record.PortalID(fmt.Sprint("p", n)) }
	for name, c := range map[string]struct {
		q    hub.Query
		list []askable
		want []int
	}{
		"affirms, unknown, affirms but silent, denies": {hub.Query{Text: "zebra"},
			[]askable{{id: id(0), summary: sum("horse")}, {id: id(1), summary: sum("zebra"), silent: true}, {id: id(2)}, {id: id(3), summary: sum("zebra")}, {id: id(4), silent: true}}, []int{3, 2, 1, 0, 4}},
		"another ending": {hub.Query{Text: "translations"}, []askable{{id: id(0), summary: sum("horse")}, {id: id(1), summary: sum("translating")}}, []int{1, 0}},
		"who affirms everything says nothing": {hub.Query{Text: "zebra"},
			[]askable{{id: id(0), summary: full}, {id: id(1), summary: sum("zebra")}, {id: id(2)}}, []int{1, 2, 0}},
		"the rare word counts more": {hub.Query{Text: "zebra horse cat"},
			[]askable{{id: id(0), summary: sum("horse")}, {id: id(1), summary: sum("zebra")}, {id: id(2), summary: sum("horse")}, {id: id(3), summary: sum("horse")}}, []int{1}},
		"what is excluded is not sought": {hub.Query{Text: "zebra -horse"}, []askable{{id: id(0), summary: sum("horse")}, {id: id(1), summary: sum("zebra")}}, []int{1, 0}},
		"tags":                           {hub.Query{Tags: []string{"NLP/Translation"}}, []askable{{id: id(0), summary: sum("horse")}, {id: id(1), summary: tagged}}, []int{1, 0}},
		"trust, then pace": {hub.Query{Text: "zebra"},
			[]askable{{id: id(0), summary: sum("zebra"), rtt: time.Millisecond}, {id: id(1), summary: sum("zebra"), trust: 1, rtt: time.Second}, {id: id(2), summary: sum("zebra"), trust: 1, rtt: time.Millisecond}}, []int{2, 1, 0}},
	} {
		if got := choose(c.list, soughtOf(c.q), len(c.list)); !slices.Equal(got[:len(c.want)], c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	// Those that are alike take turns.
	var alike []askable
	for i := range 200 {
		alike = append(alike, askable{id: id(i), summary: sum("zebra", "horse", "cat")})
	}
	a, b := choose(alike, soughtOf(hub.Query{Text: "zebra"}), 20), choose(alike, soughtOf(hub.Query{Text: "horse"}), 20)
	same := 0
	for _, n := range a {
		if slices.Contains(b, n) {
			same++
		}
	}
	if same > 10 || !slices.Equal(a, choose(alike, soughtOf(hub.Query{Text: "zebra"}), 20)) {
		t.Errorf("%d of 20 are asked for both", same)
	}
}

func BenchmarkChoose(b *testing.B) {
	list := crowd(rand.New(rand.NewPCG(1, 2)), 1000, 2000)
	for b.Loop() {
		choose(list, soughtOf(hub.Query{Text: "three words here"}), 20)
	}
}
