// Package sim runs thousands of kademlia.Nodes in one event loop with a virtual clock, latency, loss, dead
// and silent nodes, liars, churn and partitions. All randomness comes from one seed, so that each run can
// be repeated exactly. It simulates only the part that a Node leaves to its caller: the transport of
// requests.
package sim

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"agentsite/peering/kademlia"
)

// Config describes a network. A zero field means the default that its comment names.
type Config struct {
	Nodes int
	Seed  uint64
	// RTT is the median round trip of two nodes (80 ms), Spread the standard
	// deviation of its logarithm (0.45). Loss is the share of requests and
	// of answers that are lost.
	RTT    time.Duration
	Spread float64
	Loss   float64
	// Node is the configuration of the nodes. Rand and Values are set by the simulation.
	Node kademlia.Config
	// Joining is the time over which the nodes join, one after another (Nodes × 20 ms).
	Joining time.Duration
	// Settled starts the nodes with a table of random nodes for each bucket, as if they had joined long
	// ago. This makes networks of 100,000 nodes possible, which take too long to join.
	Settled bool
	// Keys is the number of keys that each node publishes.
	Keys int
}

// Net is a simulated network of nodes. It is not safe for concurrent use.
type Net struct {
	cfg  Config
	rand *rand.Rand
	// pair is the generator from which the round trip time of two nodes is derived: it is seeded with both.
	pair   rand.PCG
	ofPair *rand.Rand
	now    time.Time
	events queue
	seq    uint64
	nodes  []*node
	// liars are the lying nodes, sorted by id.
	liars []*kademlia.Contact
	// apart reports whether two nodes cannot reach each other; nil connects all.
	apart func(a, b int) bool
	index map[kademlia.ID]int

	// Delivered counts the requests that reached a node.
	Delivered int64
}

type node struct {
	*kademlia.Node
	at    int // index in Net.nodes
	state state
	// wake is the time of the scheduled Poll; zero for none.
	wake    time.Time
	watched []watched
	since   time.Time
	mine    *mine
}

type state uint8

const (
	alive state = iota
	dead
	mute // receives requests but does not answer
	liar // names only other liars, and claims to store records
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// New returns a network of nodes that have joined. It runs the event loop for the time of the joins.
func New(cfg Config) *Net {
	if cfg.RTT == 0 {
		cfg.RTT = 80 * time.Millisecond
	}
	if cfg.Spread == 0 {
		cfg.Spread = 0.45
	}
	if cfg.Joining == 0 {
		cfg.Joining = time.Duration(cfg.Nodes) * 20 * time.Millisecond
	}
	s := &Net{cfg: cfg, rand: rand.New(rand.NewPCG(cfg.Seed, 1)), now: start, index: make(map[kademlia.ID]int)}
	s.ofPair = rand.New(&s.pair)
	if cfg.Settled {
		s.settle()
		return s
	}
	for i := range cfg.Nodes {
		s.at(start.Add(time.Duration(int64(cfg.Joining)*int64(i)/int64(cfg.Nodes))), func() { s.Add(s.ID(), nil) })
	}
	s.Run(cfg.Joining + 2*time.Minute)
	return s
}

// settle creates all nodes at once, for Config.Settled. Each node gets 2k random contacts for each bucket
// (or all that exist): k for the bucket and the rest as spares.
func (s *Net) settle() {
	for range s.cfg.Nodes {
		s.make(s.ID(), nil)
	}
	sorted := make([]int, len(s.nodes))
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortFunc(sorted, func(a, b int) int { return byID(s.nodes[a].Self(), s.nodes[b].Self()) })
	k := s.cfg.Node.K
	if k == 0 {
		k = 20
	}
	var known []*kademlia.Contact
	for _, n := range s.nodes {
		known = known[:0]
		id := n.Self().ID
		from, to := 0, len(sorted) // range of the nodes that share the leading bits of this bucket
		for bit := 0; to-from > 1; bit++ {
			mid := from + sort.Search(to-from, func(i int) bool {
				return s.nodes[sorted[from+i]].Self().ID[bit/8]>>(7-bit%8)&1 == 1
			})
			others := sorted[mid:to]
			if id[bit/8]>>(7-bit%8)&1 == 1 {
				others = sorted[from:mid]
				from = mid
			} else {
				to = mid
			}
			if len(others) <= 2*k {
				for _, x := range others {
					known = append(known, s.nodes[x].Self())
				}
				continue
			}
			had := make(map[int]bool, 2*k)
			for len(had) < 2*k {
				x := others[s.rand.IntN(len(others))]
				if !had[x] {
					had[x] = true
					known = append(known, s.nodes[x].Self())
				}
			}
		}
		s.rand.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
		n.Settle(known, func(c *kademlia.Contact) time.Duration { return s.rtt(n.at, s.index[c.ID]) }, s.now)
		s.Poke(n.at)
	}
}

// ID returns a random id from the seed of the network.
func (s *Net) ID() (id kademlia.ID) {
	for i := 0; i < len(id); i += 8 {
		binary.BigEndian.PutUint64(id[i:], s.rand.Uint64())
	}
	return id
}

// Now returns the virtual time, which only Run, RunUntil and methods that call them advance.
func (s *Net) Now() time.Time { return s.now }

// Len returns the number of nodes created so far, dead ones included.
func (s *Net) Len() int { return len(s.nodes) }

// Node returns a node by its index. After an operation was started on it, Poke must be called.
func (s *Net) Node(i int) *kademlia.Node { return s.nodes[i].Node }

// Add creates a node, lets it join through a random running one, and returns its index.
func (s *Net) Add(id kademlia.ID, groups []kademlia.Group) int {
	through := s.Any()
	n := s.make(id, groups)
	if through >= 0 {
		n.Join([]*kademlia.Contact{s.nodes[through].Self()})
	}
	s.Poke(n.at)
	return n.at
}

// make adds a node without contacts; the caller must let it join and poke it.
func (s *Net) make(id kademlia.ID, groups []kademlia.Group) *node {
	cfg := s.cfg.Node
	cfg.Rand = rand.New(rand.NewPCG(s.rand.Uint64(), s.rand.Uint64()))
	cfg.Values = values{s}
	var own *mine
	if s.cfg.Keys > 0 {
		own = s.publishes(id, s.cfg.Keys)
		cfg.Mine = own
	}
	self := &kademlia.Contact{ID: id, Groups: groups}
	n := &node{Node: kademlia.New(self, cfg), at: len(s.nodes), since: s.now, mine: own}
	s.nodes = append(s.nodes, n)
	s.index[id] = n.at
	if own != nil {
		// Publish only when the node has contacts.
		s.After(5*time.Second, func() { n.Publish(); s.Poke(n.at) })
	}
	return n
}

// Any returns the index of a random running and honest node, -1 if there is none.
func (s *Net) Any() int { return s.anyOf(nil) }

func (s *Net) anyOf(some func(i int) bool) int {
	if len(s.nodes) == 0 {
		return -1
	}
	for range 10_000 {
		if i := s.rand.IntN(len(s.nodes)); s.nodes[i].state == alive && (some == nil || some(i)) {
			return i
		}
	}
	return -1
}

// Kill stops a node without notice. Mute makes it receive requests without answering, Corrupt makes it lie.
func (s *Net) Kill(i int) { s.nodes[i].state = dead }
func (s *Net) Mute(i int) { s.nodes[i].state = mute }
func (s *Net) Corrupt(i int) {
	s.nodes[i].state = liar
	c := s.nodes[i].Self()
	at, _ := slices.BinarySearchFunc(s.liars, c, byID)
	s.liars = slices.Insert(s.liars, at, c)
}

// Each calls do with the index of each node of a random fraction (0 to 1) of the running nodes.
func (s *Net) Each(share float64, do func(i int)) {
	var up []int
	for i, n := range s.nodes {
		if n.state == alive {
			up = append(up, i)
		}
	}
	s.rand.Shuffle(len(up), func(i, j int) { up[i], up[j] = up[j], up[i] })
	for _, i := range up[:int(share*float64(len(up)))] {
		do(i)
	}
}

// Part separates those pairs of nodes for which apart returns true; nil connects all again.
func (s *Net) Part(apart func(a, b int) bool) { s.apart = apart }

func byID(a, b *kademlia.Contact) int { return slices.Compare(a.ID[:], b.ID[:]) }

// Run advances the virtual time by d and processes all events until then.
func (s *Net) Run(d time.Duration) {
	end := s.now.Add(d)
	for len(s.events) > 0 && s.events[0].at <= end.Sub(start) {
		s.next()
	}
	s.now = end
}

// RunUntil advances the virtual time until so returns true, and at most by most. so is checked after each
// event; its last result is returned.
func (s *Net) RunUntil(so func() bool, most time.Duration) bool {
	end := s.now.Add(most)
	for !so() {
		if len(s.events) == 0 || s.events[0].at > end.Sub(start) {
			s.now = end
			return so()
		}
		s.next()
	}
	return true
}

func (s *Net) next() {
	e := s.events.pop()
	s.now = start.Add(e.at)
	e.do()
}

func (s *Net) at(t time.Time, do func()) {
	s.seq++
	s.events.push(event{t.Sub(start), s.seq, do})
}

// After schedules do to be called after the virtual time d.
func (s *Net) After(d time.Duration, do func()) { s.at(s.now.Add(d), do) }

// Poke polls a node and carries its requests. It must be called after an operation was started on the node.
func (s *Net) Poke(i int) {
	n := s.nodes[i]
	if n.state == dead || n.state == mute {
		return
	}
	for _, c := range n.Poll(s.now) {
		s.carry(n, c)
	}
	n.look()
	w := n.Wake(s.now)
	if w.Before(s.now) {
		w = s.now
	}
	if !n.wake.IsZero() && !w.Before(n.wake) {
		return // an earlier poll is scheduled already
	}
	n.wake = w
	s.at(w, func() {
		if n.wake.Equal(w) {
			n.wake = time.Time{}
			s.Poke(n.at)
		}
	})
}

// carry schedules the delivery of a request and of its answer, with latency and loss.
func (s *Net) carry(from *node, c kademlia.Call) {
	at, known := s.index[c.To.ID]
	if !known || s.lost() {
		return
	}
	to := s.nodes[at]
	if s.apart != nil && s.apart(from.at, to.at) {
		return
	}
	way := s.rtt(from.at, to.at) / 2
	s.After(way, func() {
		s.Delivered++
		var r *kademlia.Response
		switch to.state {
		case dead, mute:
			return
		case liar:
			r = s.lie(&c.Request)
		default:
			r = to.Serve(from.Self(), &c.Request, s.now)
			s.Poke(to.at)
		}
		if s.lost() {
			return
		}
		s.After(way, func() {
			if from.state == dead || from.state == mute {
				return
			}
			from.Answer(c.ID, r, nil, s.now)
			s.Poke(from.at)
		})
	})
}

func (s *Net) lost() bool { return s.cfg.Loss > 0 && s.rand.Float64() < s.cfg.Loss }

// rtt returns the round trip time of two nodes, always the same for one pair.
func (s *Net) rtt(a, b int) time.Duration {
	if a > b {
		a, b = b, a
	}
	s.pair.Seed(s.cfg.Seed^uint64(a)<<32, uint64(b))
	return time.Duration(float64(s.cfg.RTT) * math.Exp(s.ofPair.NormFloat64()*s.cfg.Spread))
}

// lie returns the answer of a liar: the liars nearest to the target, no values, and success for all records
// to be stored.
func (s *Net) lie(r *kademlia.Request) *kademlia.Response {
	out := &kademlia.Response{}
	if len(r.Targets) > 0 {
		out.Nodes = s.nearestLiars(r.Targets[0], 20)
		out.Found = make([][][]byte, len(r.Targets))
	}
	for range r.Records {
		out.Codes = append(out.Codes, kademlia.Stored)
	}
	return out
}

// nearestLiars returns the k liars nearest to a target. In the sorted list, those that share the most bits
// with the target are around its position, so it searches from there in both directions.
func (s *Net) nearestLiars(target kademlia.ID, k int) []*kademlia.Contact {
	i, _ := slices.BinarySearchFunc(s.liars, &kademlia.Contact{ID: target}, byID)
	near := slices.Clone(s.liars[max(0, i-2*k):min(len(s.liars), i+2*k)])
	slices.SortFunc(near, func(a, b *kademlia.Contact) int {
		switch {
		case kademlia.Nearer(target, a.ID, b.ID):
			return -1
		case kademlia.Nearer(target, b.ID, a.ID):
			return 1
		}
		return 0
	})
	return near[:min(k, len(near))]
}

// values implements kademlia.Validator for the simulation. A valid value is the publisher's id (32 bytes),
// a version and an expiry in Unix seconds (8 bytes each), then any bytes.
type values struct{ s *Net }

// Validate implements kademlia.Validator for the values that Net.Value makes; others are invalid.
func (v values) Validate(_ kademlia.ID, b []byte) (kademlia.Entry, error) {
	if len(b) < 48 {
		return kademlia.Entry{}, errors.New("it is cut short")
	}
	e := kademlia.Entry{
		Publisher: kademlia.ID(b[:32]),
		Minor:     int64(binary.BigEndian.Uint64(b[32:])),
		Expires:   time.Unix(int64(binary.BigEndian.Uint64(b[40:])), 0),
	}
	if !e.Expires.After(v.s.now) {
		return e, errors.New("it is over")
	}
	return e, nil
}

// Value returns a valid value of a publisher that expires after the virtual time life.
func (s *Net) Value(publisher kademlia.ID, version int64, life time.Duration) []byte {
	b := binary.BigEndian.AppendUint64(slices.Clone(publisher[:]), uint64(version))
	return binary.BigEndian.AppendUint64(b, uint64(s.now.Add(life).Unix()))
}

type event struct {
	at  time.Duration // time since the start of the simulation
	seq uint64
	do  func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// queue is a binary heap of events, the earliest first.
type queue []event

func (q *queue) push(e event) {
	h := append(*q, e)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	*q = h
}

func (q *queue) pop() event {
	h := *q
	top, n := h[0], len(h)-1
	h[0] = h[n]
	h[n] = event{}
	h = h[:n]
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < n && h[c].before(&h[least]) {
				least = c
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*q = h
	return top
}
