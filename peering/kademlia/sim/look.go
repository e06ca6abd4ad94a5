package sim

import (
	"fmt"
	"slices"
	"time"

	"agentsite/peering/kademlia"
)

// Looks holds the results of a series of lookups.
type Looks struct {
	Count, Found      int
	Hops              float64 // mean number of steps of the successful lookups
	MaxHops           int
	RPCs              float64 // mean number of requests of all lookups
	P50, P99, Longest time.Duration
	Second            float64 // fraction of lookups that used a second path
}

// Success returns the fraction of lookups that found a value; 0 without lookups.
func (l Looks) Success() float64 { return float64(l.Found) / float64(max(l.Count, 1)) }

func (l Looks) String() string {
	return fmt.Sprintf("found %.5f of %d, hops %.2f (at most %d), %.2f RPC, p50 %d ms, p99 %d ms, longest %d ms, second path %.3f",
		l.Success(), l.Count, l.Hops, l.MaxHops, l.RPCs, l.P50.Milliseconds(), l.P99.Milliseconds(), l.Longest.Milliseconds(), l.Second)
}

// tally sums up the results of lookups while they run.
type tally struct {
	s                       *Net
	open, count, hops, most int
	rpcs, second            int
	took                    []time.Duration
}

func (s *Net) begin() *tally { return &tally{s: s} }

func (t *tally) add(l *kademlia.Lookup, took time.Duration) {
	t.count++
	t.rpcs += l.RPCs()
	if l.Paths() > 1 {
		t.second++
	}
	if len(l.Values()) > 0 {
		t.hops += l.Hops()
		t.most = max(t.most, l.Hops())
		t.took = append(t.took, took)
	}
}

func (t *tally) sum() Looks {
	slices.Sort(t.took)
	out := Looks{Count: t.count, Found: len(t.took), MaxHops: t.most}
	if n := len(t.took); n > 0 {
		out.Hops = float64(t.hops) / float64(n)
		out.P50, out.P99, out.Longest = t.took[n/2], t.took[n*99/100], t.took[n-1]
	}
	out.RPCs, out.Second = float64(t.rpcs)/float64(max(t.count, 1)), float64(t.second)/float64(max(t.count, 1))
	return out
}

// look starts a lookup at the node with index by and adds its result to the tallies when it ends.
func (s *Net) look(by int, key kademlia.ID, counts ...*tally) {
	n, began := s.nodes[by], s.now
	l := n.Get(key, 1, s.now)
	for _, t := range counts {
		t.open++
	}
	n.watch(l.Over, func() {
		for _, t := range counts {
			t.open--
			t.add(l, s.now.Sub(began))
		}
	})
	s.Poke(by)
}

// Look starts count lookups of random keys at random nodes, one after each gap, and runs until the last has
// ended.
func (s *Net) Look(keys []kademlia.ID, count int, gap time.Duration) Looks {
	return s.LookBy(nil, keys, count, gap)
}

// LookBy is Look by those nodes for which some returns true; nil selects all.
func (s *Net) LookBy(some func(i int) bool, keys []kademlia.ID, count int, gap time.Duration) Looks {
	t := s.begin()
	for i := range count {
		s.After(time.Duration(i)*gap, func() { s.look(s.anyOf(some), keys[s.rand.IntN(len(keys))], t) })
	}
	s.Run(time.Duration(count) * gap)
	s.RunUntil(func() bool { return t.open == 0 }, time.Minute)
	return t.sum()
}

// Puts holds the results of storing a series of records.
type Puts struct {
	Count    int
	Copies   float64 // mean number of nodes that stored a record
	Fewest   int
	RPCs     float64       // mean number of requests
	P50, P99 time.Duration // percentiles of the time until Put.Enough
}

func (p Puts) String() string {
	return fmt.Sprintf("%d stored at %.1f nodes each (at least %d), %.1f RPC, p50 %d ms, p99 %d ms", p.Count, p.Copies, p.Fewest, p.RPCs, p.P50.Milliseconds(), p.P99.Milliseconds())
}

// Store stores count values from random nodes, one after each gap, runs until all are stored, and returns
// their keys. Each value expires after life.
func (s *Net) Store(count int, gap, life time.Duration) ([]kademlia.ID, Puts) {
	return s.StoreBy(nil, count, gap, life)
}

// StoreBy is Store by those nodes for which some returns true; nil selects all.
func (s *Net) StoreBy(some func(i int) bool, count int, gap, life time.Duration) ([]kademlia.ID, Puts) {
	keys := make([]kademlia.ID, count)
	for i := range keys {
		keys[i] = s.ID()
	}
	return keys, s.storeAt(some, keys, gap, life)
}

// StoreAt is Store with given keys, one record for each.
func (s *Net) StoreAt(keys []kademlia.ID, gap, life time.Duration) Puts {
	return s.storeAt(nil, keys, gap, life)
}

func (s *Net) storeAt(some func(i int) bool, keys []kademlia.ID, gap, life time.Duration) Puts {
	out := Puts{Count: len(keys), Fewest: 1 << 30}
	var took []time.Duration
	open := len(keys)
	for i, key := range keys {
		s.After(time.Duration(i)*gap, func() {
			by, began := s.anyOf(some), s.now
			n := s.nodes[by]
			p := n.Put(kademlia.Record{Key: key, Value: s.Value(n.Self().ID, 1, life)}, s.now)
			n.watch(p.Enough, func() { took = append(took, s.now.Sub(began)) })
			n.watch(p.Over, func() {
				open--
				out.Copies += float64(p.Stored()) / float64(len(keys))
				out.RPCs += float64(p.RPCs()) / float64(len(keys))
				out.Fewest = min(out.Fewest, p.Stored())
			})
			s.Poke(by)
		})
	}
	s.Run(time.Duration(len(keys)) * gap)
	s.RunUntil(func() bool { return open == 0 }, time.Minute)
	slices.Sort(took)
	if n := len(took); n > 0 {
		out.P50, out.P99 = took[n/2], took[n*99/100]
	}
	return out
}

// watch calls then once, as soon as so returns true. It is checked after each step of the node.
func (n *node) watch(so func() bool, then func()) {
	n.watched = append(n.watched, watched{so, then})
}

type watched struct {
	so   func() bool
	then func()
}

func (n *node) look() {
	n.watched = slices.DeleteFunc(n.watched, func(w watched) bool {
		if !w.so() {
			return false
		}
		w.then()
		return true
	})
}
