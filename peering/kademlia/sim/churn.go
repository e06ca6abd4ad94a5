package sim

import (
	"fmt"
	"slices"
	"time"

	"agentsite/peering/kademlia"
)

// Churn describes a run in which nodes leave and join.
type Churn struct {
	Session time.Duration // mean lifetime of a node, exponentially distributed
	For     time.Duration
	Keys    int           // keys that each node publishes
	Probe   time.Duration // interval of the lookups
}

// Churned holds the results of a Churn run.
type Churned struct {
	Looks
	Worst   float64 // lowest success rate of an hour
	PerNode float64 // requests per second and node, for all purposes
	Stale   float64 // fraction of table contacts with a dead node
	Joined  int
}

func (c Churned) String() string {
	return fmt.Sprintf("%v; worst hour %.4f, %.3f RPC/s and node, stale %.3f, %d joined", c.Looks, c.Worst, c.PerNode, c.Stale, c.Joined)
}

// mine is the kademlia.Source of a simulated node: the keys that it publishes.
type mine struct {
	s    *Net
	id   kademlia.ID
	keys []kademlia.ID // sorted, as Next requires
}

// Next implements kademlia.Source. The values are signed at the virtual time of the call and live for 36
// hours.
func (m *mine) Next(from kademlia.ID, n int) []kademlia.Record {
	i, _ := slices.BinarySearchFunc(m.keys, from, func(a, b kademlia.ID) int { return slices.Compare(a[:], b[:]) })
	var out []kademlia.Record
	for _, k := range m.keys[i:min(len(m.keys), i+n)] {
		out = append(out, kademlia.Record{Key: k, Value: m.s.Value(m.id, m.s.now.UnixMilli(), 36*time.Hour)})
	}
	return out
}

// publishes returns a Source of the given number of random keys for the node with that id.
func (s *Net) publishes(id kademlia.ID, keys int) *mine {
	m := &mine{s: s, id: id, keys: make([]kademlia.ID, keys)}
	for i := range m.keys {
		m.keys[i] = s.ID()
	}
	slices.SortFunc(m.keys, func(a, b kademlia.ID) int { return slices.Compare(a[:], b[:]) })
	return m
}

// Churn stops random nodes and lets others join in their place, while random nodes look up keys that
// running nodes publish. It advances the virtual time by the duration of the run.
func (s *Net) Churn(c Churn) Churned {
	if s.cfg.Keys == 0 {
		panic("sim: nothing is published that could be looked for")
	}
	var (
		out    Churned
		looks  = s.begin()
		end    = s.now.Add(c.For)
		hours  []*tally
		up     float64 // node-seconds of running nodes, for PerNode
		before = s.sent()
	)
	var live func(i int)
	live = func(i int) {
		at := s.now.Add(time.Duration(s.rand.ExpFloat64() * float64(c.Session)))
		if at.After(end) {
			return
		}
		s.at(at, func() {
			s.Kill(i)
			out.Joined++
			live(s.Add(s.ID(), nil))
		})
	}
	for i, n := range s.nodes {
		if n.state == alive {
			live(i)
			up += c.For.Seconds()
		}
	}
	for at := time.Duration(0); at < c.For; at += c.Probe {
		hour := int(at / time.Hour)
		if hour == len(hours) {
			hours = append(hours, s.begin())
		}
		s.After(at, func() {
			of, by := s.settled(), s.settled()
			if of < 0 || by < 0 {
				return
			}
			keys := s.nodes[of].mine.keys
			s.look(by, keys[s.rand.IntN(len(keys))], looks, hours[hour])
		})
	}
	s.Run(c.For)
	s.RunUntil(func() bool { return looks.open == 0 }, time.Minute)
	out.Looks, out.Worst = looks.sum(), 1
	for _, h := range hours {
		out.Worst = min(out.Worst, h.sum().Success())
	}
	out.PerNode = float64(s.sent()-before) / up
	held, stale := 0, 0
	for _, n := range s.nodes {
		if n.state != alive {
			continue
		}
		for _, c := range n.Contacts() {
			held++
			if s.nodes[s.index[c.ID]].state != alive {
				stale++
			}
		}
	}
	out.Stale = float64(stale) / float64(max(held, 1))
	return out
}

// settled returns the index of a random node that joined at least a minute ago.
func (s *Net) settled() int {
	for range 100 {
		if i := s.Any(); i >= 0 && s.now.Sub(s.nodes[i].since) > time.Minute {
			return i
		}
	}
	return -1
}

// sent returns the number of requests that all nodes have sent.
func (s *Net) sent() (n int64) {
	for _, x := range s.nodes {
		n += x.Tally().Sent
	}
	return n
}
