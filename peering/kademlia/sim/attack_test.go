package sim_test

import (
	"fmt"
	"testing"
	"time"

	"agentsite/internal/testing/racetest"
	"agentsite/peering/kademlia"
	"agentsite/peering/kademlia/sim"
)

// TestLook_FindsBesideGroundIDs puts ids that somebody ground beside a key,
// nearer to it than all honest nodes, before a record is stored or when it has
// been (arXiv 2307.12212). They take what is stored and answer with each other.
func TestLook_FindsBesideGroundIDs(t *testing.T) {
	if racetest.Enabled {
		t.Skip("one goroutine")
	}
	for _, c := range []struct {
		ids, operators int
		before         bool
	}{
		{20, 4, true}, {40, 4, true}, {100, 4, true}, {20, 20, true}, {40, 40, true},
		{20, 4, false}, {40, 4, false}, {20, 20, false}, {40, 40, false},
	} {
		when := map[bool]string{true: "before", false: "after"}[c.before]
		t.Run(fmt.Sprintf("%d of %d operators %s", c.ids, c.operators, when), func(t *testing.T) {
			t.Parallel()
			s := sim.New(sim.Config{Nodes: nodes, Seed: 3, Settled: true})
			key := s.ID()
			store := func() {
				if puts := s.StoreAt([]kademlia.ID{key}, gap, life); puts.Fewest < 15 {
					t.Errorf("%v", puts)
				}
			}
			if !c.before {
				store()
			}
			var evil []int
			for i := range c.ids {
				id := s.ID()
				copy(id[:4], key[:4]) // 2³² tries for each
				evil = append(evil, s.Add(id, []kademlia.Group{kademlia.Group(1 + i%c.operators)}))
			}
			s.Run(3 * time.Minute)
			for _, i := range evil {
				s.Corrupt(i)
			}
			if c.before {
				store()
			}
			if got := s.Look([]kademlia.ID{key}, pick(500, 200), gap); got.Success() != 1 {
				t.Error(got)
			}
		})
	}
}

// TestNet_BoundsAFloodOfFewHosts lets three operators start as many nodes as
// there are honest ones (Marcus 2018), and honest ones join in the midst of them:
// no table has more than a few of the flood, and when it begins to lie
// everything is found.
func TestNet_BoundsAFloodOfFewHosts(t *testing.T) {
	if racetest.Enabled {
		t.Skip("one goroutine")
	}
	t.Parallel()
	honest, hosts, newcomers := pick(300, 100), 3, pick(30, 10)
	s := sim.New(sim.Config{Nodes: honest, Seed: 12, Settled: true})
	keys, _ := s.Store(100, 50*time.Millisecond, life)
	for i := range honest {
		s.After(time.Duration(i)*100*time.Millisecond, func() { s.Add(s.ID(), []kademlia.Group{kademlia.Group(1 + i%hosts)}) })
	}
	s.Run(10 * time.Minute)
	for range newcomers {
		s.Add(s.ID(), nil)
	}
	s.Run(10 * time.Minute)
	flood := func(i int) bool { return i >= honest && i < 2*honest }
	worst := 0
	for i := range s.Len() {
		if flood(i) {
			continue
		}
		of := make(map[kademlia.Group]int)
		for _, c := range s.Node(i).Contacts() {
			for _, g := range c.Groups {
				of[g]++
				worst = max(worst, of[g])
			}
		}
	}
	if worst > 6 {
		t.Errorf("a table has %d of one operator", worst)
	}
	for i := range s.Len() {
		if flood(i) {
			s.Corrupt(i)
		}
	}
	if got := s.LookBy(func(i int) bool { return i >= 2*honest }, keys, 1000, gap); got.Success() != 1 || got.RPCs > 6 {
		t.Errorf("newcomers look: %v", got)
	}
}
