package main

import (
	"slices"
	"testing"

	"agentsite/bench/ranking"
	"agentsite/internal/hub"
)

func TestBuildAgents_MakesSixOfEachCapability(t *testing.T) {
	list, err := readCapabilities()
	if err != nil {
		t.Fatal(err)
	}
	agents, owns := buildAgents(list, agentSeed)
	if len(list) != 250 || len(agents) != 1500 {
		t.Fatalf("%d capabilities, %d agents", len(list), len(agents))
	}
	counts := make([]int, len(list))
	for i, c := range owns {
		counts[c]++
		if n := len(agents[i].Skills); n < 2 || n > 3 {
			t.Errorf("%s has %d skills", agents[i].Title, n)
		}
	}
	if slices.Min(counts) != agentsEach || slices.Max(counts) != agentsEach {
		t.Errorf("between %d and %d agents of a capability", slices.Min(counts), slices.Max(counts))
	}
	for i := range list {
		texts := make(map[string]bool)
		for n, c := range owns {
			if c == i {
				texts[agents[n].Title+agents[n].Description] = true
			}
		}
		if len(texts) != agentsEach {
			t.Errorf("%s: agents have %d texts", list[i].label, len(texts))
		}
	}
}

// readData returns the data of the benchmark.
func readData(t *testing.T) (list []capability, needs []need, goals []goal, unfit []string) {
	t.Helper()
	list, err := readCapabilities()
	if err != nil {
		t.Fatal(err)
	}
	needs, goals, unfit, err = readNeeds()
	if err != nil {
		t.Fatal(err)
	}
	return list, needs, goals, unfit
}

// TestNeeds_HalfShareNoWord proves that the benchmark asks for more than equal words: half of the regular needs,
// and two fifths of the parts of nested ones, have no distinctive word in common with any agent that can answer
// them.
func TestNeeds_HalfShareNoWord(t *testing.T) {
	list, needs, goals, unfit := readData(t)
	agents, owns := buildAgents(list, agentSeed)
	right := make(map[string][]int)
	for i, c := range owns {
		right[list[c].id] = append(right[list[c].id], i)
	}
	dull := commonWords(agents, owns)
	var parts []need
	for _, g := range goals {
		parts = append(parts, g.Parts...)
	}
	for _, c := range []struct {
		name  string
		needs []need
		least float64
	}{{"regular", needs, 0.5}, {"nested", parts, 0.4}} {
		apart := 0
		for _, n := range c.needs {
			if len(right[n.Capability]) == 0 {
				t.Fatalf("%q asks for %q, which no agent has", n.Text, n.Capability)
			}
			words := 0
			for _, i := range right[n.Capability] {
				list := shared(n.Text, &agents[i], dull)
				words += len(list)
				if n.Plain && len(list) > 0 {
					t.Logf("%s: %q shares %q", n.Capability, n.Text, list)
				}
			}
			if words == 0 {
				apart++
			}
		}
		t.Logf("%s: %d of %d share no distinctive word with an agent", c.name, apart, len(c.needs))
		if float64(apart) < c.least*float64(len(c.needs)) {
			t.Errorf("only %d of %d %s needs share no distinctive word", apart, len(c.needs), c.name)
		}
	}
	if len(needs) != 625 || len(unfit) < 50 {
		t.Errorf("%d needs, %d that nothing fits", len(needs), len(unfit))
	}
}

// TestRecruit_HoldsItsFigures fails if the portal recruits worse than it did, or finds something for more of the
// queries that no agent can answer. The needs are those of the held-out half.
func TestRecruit_HoldsItsFigures(t *testing.T) {
	list, needs, goals, unfit := readData(t)
	agents, owns := buildAgents(list, agentSeed)
	x, err := ranking.Index(agents)
	if err != nil {
		t.Fatal(err)
	}
	v := &world{right: make(map[string]string)}
	for i, a := range agents {
		v.right[a.ID] = list[owns[i]].id
	}
	var regular, nested []need
	for i := range needs {
		if !isDevelopment(i) {
			regular = append(regular, needs[i])
		}
	}
	for i := range goals {
		if !isDevelopment(i) {
			nested = append(nested, goals[i].Parts...)
		}
	}
	for _, c := range []struct {
		name       string
		needs      []need
		first, ten float64
	}{{"regular", regular, 0.62, 0.73}, {"nested", nested, 0.59, 0.69}} {
		s, err := v.measure(ranking.Recruiter(x), c.needs)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: first %.3f, among ten %.3f", c.name, s.first, s.ten)
		if s.first < c.first || s.ten < c.ten {
			t.Errorf("%s: first %.3f, among ten %.3f, want %.2f and %.2f", c.name, s.first, s.ten, c.first, c.ten)
		}
	}
	none := 0
	for _, text := range unfit {
		ids, err := ranking.Portal(x, hub.ModeAuto).Top(text)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) == 0 {
			none++
		}
	}
	if none < 66 {
		t.Errorf("nothing fits %d of %d queries that no agent can answer", none, len(unfit))
	}
}
