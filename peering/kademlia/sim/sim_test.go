package sim_test

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"agentsite/internal/testing/racetest"
	"agentsite/peering/kademlia"
	"agentsite/peering/kademlia/sim"
)

// The acceptance numbers 1 to 5 of the design, at a size that takes seconds;
// bench/dht has them for 1,000 to 100,000 nodes.
const (
	life = 36 * time.Hour
	gap  = 5 * time.Millisecond
)

var nodes = pick(300, 150)

// pick returns the size of a simulation: the whole one where
// AGENTSITE_TEST_FULL is set, and one that takes a second elsewhere.
func pick[N int | time.Duration](whole, reduced N) N {
	if os.Getenv("AGENTSITE_TEST_FULL") != "" {
		return whole
	}
	return reduced
}

func network(t *testing.T, seed uint64) (*sim.Net, []kademlia.ID) {
	t.Helper()
	if racetest.Enabled {
		t.Skip("one goroutine")
	}
	t.Parallel()
	s := sim.New(sim.Config{Nodes: nodes, Seed: seed})
	keys, puts := s.Store(100, 50*time.Millisecond, life)
	if puts.Fewest < 15 || puts.RPCs > 32 {
		t.Fatalf("stored: %v", puts)
	}
	return s, keys
}

func TestLook_FindsAllInFewHops(t *testing.T) {
	s, keys := network(t, 1)
	got := s.Look(keys, pick(2000, 1000), gap)
	hops := math.Log2(float64(nodes)/20)/(1+math.Log2(20)) + .5
	if got.Success() != 1 || got.Hops > hops || got.MaxHops > 4 || got.RPCs > 5 || got.P99 > 400*time.Millisecond {
		t.Errorf("%v; at most %.2f hops on average", got, hops)
	}
}

func TestLook_SurvivesDeathAndLies(t *testing.T) {
	for _, c := range []struct {
		name    string
		share   float64
		do      func(*sim.Net, int)
		success float64
		rpcs    float64
		p99     time.Duration
	}{
		{"dead 30", .3, (*sim.Net).Kill, .9999, 6, 700 * time.Millisecond},
		{"dead 50", .5, (*sim.Net).Kill, .999, 8, 1500 * time.Millisecond},
		{"mute 30", .3, (*sim.Net).Mute, .9999, 6, 700 * time.Millisecond},
		{"liars 30", .3, (*sim.Net).Corrupt, .999, 13, 850 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, keys := network(t, 2)
			s.Each(c.share, func(i int) { c.do(s, i) })
			got := s.Look(keys, pick(2000, 1000), gap)
			if got.Success() < c.success || got.RPCs > c.rpcs || got.P99 > c.p99 {
				t.Error(got)
			}
		})
	}
}

// TestLook_IsQuickBesideTheDead is the second acceptance number where it is
// hardest, with more steps to go: of 4,000 nodes (800 in the reduced form) a
// third is dead, and each step may meet three of them. Beside it stands what an own table is for: one that is
// built at once is as good as one that was joined for.
func TestLook_IsQuickBesideTheDead(t *testing.T) {
	if racetest.Enabled {
		t.Skip("one goroutine")
	}
	t.Parallel()
	many, looks := pick(4000, 800), pick(3000, 1000)
	s := sim.New(sim.Config{Nodes: many, Seed: 6, Settled: true})
	keys, puts := s.Store(100, 50*time.Millisecond, life)
	if puts.Fewest < 15 || puts.RPCs > 32 {
		t.Errorf("stored: %v", puts)
	}
	hops := math.Log2(float64(many)/20)/(1+math.Log2(20)) + .5
	if got := s.Look(keys, looks, gap); got.Success() != 1 || got.Hops > hops || got.MaxHops > 4 || got.RPCs > 3.7 {
		t.Errorf("all are up: %v; at most %.2f hops on average", got, hops)
	}
	s.Each(.3, s.Kill)
	if got := s.Look(keys, looks, gap); got.Success() != 1 || got.RPCs > 4.1 || got.P99 > 520*time.Millisecond {
		t.Error("a third is dead:", got)
	}
}

// TestNet_SettlesAsItJoins compares the tables of nodes that joined with those
// of nodes that began with one.
func TestNet_SettlesAsItJoins(t *testing.T) {
	if racetest.Enabled {
		t.Skip("one goroutine")
	}
	t.Parallel()
	known := func(settled bool) (contacts, size float64) {
		s := sim.New(sim.Config{Nodes: nodes, Seed: 8, Settled: settled})
		s.Run(5 * time.Minute)
		for i := range nodes {
			contacts += float64(s.Node(i).Known()) / float64(nodes)
			size += s.Node(i).Size() / float64(nodes)
		}
		return contacts, size
	}
	joined, guess := known(false)
	settled, other := known(true)
	if math.Abs(settled-joined) > joined/20 || math.Abs(other-guess) > guess/5 {
		t.Errorf("%.1f contacts and a guess of %.0f nodes, want %.1f and %.0f as of those that joined", settled, other, joined, guess)
	}
}

// TestNet_SmallOnesKnowEverybody is of networks in which one bucket would
// otherwise be too small.
func TestNet_SmallOnesKnowEverybody(t *testing.T) {
	if racetest.Enabled {
		t.Skip("one goroutine")
	}
	for _, n := range []int{1, 2, 3, 10, 40} {
		s := sim.New(sim.Config{Nodes: n, Seed: uint64(n), Keys: 3})
		s.Run(15 * time.Minute)
		for i := range n {
			if got := s.Node(i).Known(); got != n-1 {
				t.Errorf("of %d nodes, %d knows %d", n, i, got)
			}
			if got, want := s.Node(i).Held(), 3*min(n, 20); n > 1 && n <= 20 && got != 3*n {
				t.Errorf("of %d nodes, %d holds %d of %d", n, i, got, want)
			}
		}
	}
}

// TestNet_TellsNewcomersWhatTheyShouldHold lets some join minutes after the
// others have published: they hold what is near them without waiting half a day
// for its next turn.
func TestNet_TellsNewcomersWhatTheyShouldHold(t *testing.T) {
	if racetest.Enabled {
		t.Skip("one goroutine")
	}
	s := sim.New(sim.Config{Nodes: 8, Seed: 11, Keys: 3, Joining: 16 * time.Minute})
	s.Run(5 * time.Minute)
	for i := range 8 {
		if got := s.Node(i).Held(); got != 8*3 {
			t.Errorf("%d holds %d of %d", i, got, 8*3)
		}
	}
}

// TestNet_HealsAfterAPartition splits a network for an hour. Each half finds
// what its own publish, and afterwards all find all.
func TestNet_HealsAfterAPartition(t *testing.T) {
	if racetest.Enabled {
		t.Skip("one goroutine")
	}
	t.Parallel()
	s := sim.New(sim.Config{Nodes: pick(200, 60), Seed: 4, Keys: 2})
	s.Run(10 * time.Minute)
	s.Part(func(a, b int) bool { return a%2 != b%2 })
	s.Run(time.Hour)
	keys, _ := s.Store(50, 100*time.Millisecond, life)
	s.Part(nil)
	s.Run(20 * time.Minute)
	if got := s.Look(keys, 1000, gap); got.Success() < .999 {
		t.Error(got)
	}
}

// TestNet_LivesThroughChurn is the fifth acceptance number, for some hours.
func TestNet_LivesThroughChurn(t *testing.T) {
	if racetest.Enabled {
		t.Skip("one goroutine")
	}
	t.Parallel()
	for _, c := range []struct {
		session, long time.Duration
		found, rpcs   float64
	}{
		{8 * time.Hour, pick(4*time.Hour, time.Hour), .9999, .15},
		{time.Hour, pick(3*time.Hour, time.Hour), .9995, .3},
	} {
		s := sim.New(sim.Config{Nodes: pick(200, 60), Seed: 5, Keys: 2})
		s.Run(10 * time.Minute)
		got := s.Churn(sim.Churn{Session: c.session, For: c.long, Probe: 5 * time.Second})
		if got.Success() < c.found || got.PerNode > c.rpcs {
			t.Errorf("nodes live %v: %v", c.session, got)
		}
	}
}

// TestNet_IsTheSameFromItsSeed runs one network twice.
func TestNet_IsTheSameFromItsSeed(t *testing.T) {
	if racetest.Enabled {
		t.Skip("one goroutine")
	}
	run := func() string {
		s := sim.New(sim.Config{Nodes: pick(60, 30), Seed: 9, Keys: 2, Loss: .05})
		keys, puts := s.Store(20, gap, life)
		s.Each(.3, s.Kill)
		churned := s.Churn(sim.Churn{Session: time.Hour, For: pick(time.Hour, 20*time.Minute), Probe: time.Minute})
		return fmt.Sprint(puts, s.Look(keys, 200, gap), churned, s.Delivered)
	}
	if a, b := run(), run(); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}
