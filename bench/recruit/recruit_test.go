package main

import (
	"slices"
	"testing"
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
