package main

import (
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"agentsite/bench/report"
	"agentsite/peering/kademlia"
	"agentsite/peering/kademlia/sim"
)

const (
	recordLife = 36 * time.Hour
	lookupGap  = 5 * time.Millisecond
)

// addLookups adds a line for lookups. Every stored record should be found, so the share of found ones
// is judged; the other figures are printed only.
func (b *bench) addLookups(name string, got sim.Looks, found float64) {
	b.Add(report.Line{What: name, Portal: got.String(), Bar: atLeastFound(found), Judged: true, Met: got.Success() >= found})
}

// addPuts adds a line for stored records. Each must have at least 15 copies.
func (b *bench) addPuts(name string, puts sim.Puts) {
	const copies = 15
	b.Add(report.Line{What: name, Portal: puts.String(), Bar: fmt.Sprintf("copies ≥ %d", copies), Judged: true, Met: puts.Fewest >= copies})
}

func atLeastFound(share float64) string { return fmt.Sprintf("found ≥ %.5g %%", share*100) }

// network returns a simulated network with 500 stored records.
func (b *bench) network(n int) (*sim.Net, []kademlia.ID, sim.Puts) {
	// With more garbage, a small network takes a third less time for half as much memory again. A large
	// one needs 3 GB, so the memory of the last one is returned first.
	debug.SetGCPercent(200)
	if n > 20_000 {
		debug.SetGCPercent(50)
		debug.FreeOSMemory()
	}
	s := sim.New(sim.Config{Nodes: n, Seed: b.seed, Settled: b.settled})
	if !b.settled {
		s.Run(time.Hour) // long enough for nodes to estimate the size of the network
	}
	keys, puts := s.Store(500, 20*time.Millisecond, recordLife)
	return s, keys, puts
}

// simulate runs one row on a new network.
func (b *bench) simulate(row string, n int) {
	s, keys, puts := b.network(n)
	if row == "up" {
		b.addPuts(fmt.Sprintf("%d nodes: a record is stored", n), puts)
		hops := math.Log2(float64(n)/20)/(1+math.Log2(20)) + .5
		b.addLookups(fmt.Sprintf("%d nodes, all are up (expected: at most %.2f hops)", n, hops), s.Look(keys, b.lookups, lookupGap), 1)
		return
	}
	c := map[string]struct {
		name  string
		share float64
		do    func(*sim.Net, int)
		found float64
	}{
		"half": {"50 % die at once", .5, (*sim.Net).Kill, .999},
		"mute": {"30 % are mute", .3, (*sim.Net).Mute, 1},
		"lie":  {"30 % lie together", .3, (*sim.Net).Corrupt, .999},
	}[row]
	s.Each(c.share, func(i int) { c.do(s, i) })
	b.addLookups(fmt.Sprintf("%d nodes, %s", n, c.name), s.Look(keys, b.lookups, lookupGap), c.found)
}

// churn measures 500 nodes that join and leave; session is their mean lifetime.
func (b *bench) churn(session time.Duration, found float64) {
	s := sim.New(sim.Config{Nodes: 500, Seed: b.seed, Keys: 2})
	s.Run(30 * time.Minute)
	got := s.Churn(sim.Churn{Session: session, For: b.churnFor, Probe: 3 * time.Second})
	b.Add(report.Line{What: fmt.Sprintf("500 nodes that live %v on average, for %v", session, b.churnFor), Portal: got.String(),
		Bar: atLeastFound(found), Judged: true, Met: got.Success() >= found})
}

// apart measures 500 nodes of which one half cannot reach the other for an hour. Records stored in one
// half must be found there meanwhile, and by the other half afterwards.
func (b *bench) apart() {
	const (
		long = time.Hour
		heal = 10 * time.Minute
	)
	s := sim.New(sim.Config{Nodes: 500, Seed: b.seed, Keys: 2})
	s.Run(30 * time.Minute)
	half := func(i int) bool { return i%2 == 0 }
	s.Part(func(x, y int) bool { return half(x) != half(y) })
	s.Run(long)
	keys, puts := s.StoreBy(half, 200, 100*time.Millisecond, recordLife)
	b.addPuts(fmt.Sprintf("500 nodes, halves apart for %v: a record is stored", long), puts)
	b.addLookups("the same half finds it", s.LookBy(half, keys, b.lookups, lookupGap), .9999)
	s.Part(nil)
	s.Run(heal)
	b.addLookups(fmt.Sprintf("the other half finds it, %v after it is back", heal), s.LookBy(func(i int) bool { return !half(i) }, keys, b.lookups, lookupGap), .999)
}
