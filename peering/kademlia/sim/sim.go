// Package sim runs thousands of the product's own kademlia.Nodes in one event loop with a virtual
// clock, latency, loss, dead and silent nodes, liars, churn and partitions. All chance comes from
// one seed, so that each run can be repeated byte for byte. It replaces only the part that a Node
// leaves to its caller: carrying the calls.
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
	// Node is the configuration of the nodes, except Rand and Values.
	Node kademlia.Config
	// Joining is the time in which the nodes join, one after another (Nodes × 20 ms).
	Joining time.Duration
	// Settled starts the nodes with a table of random nodes for each bucket, as if they had joined
	// long ago, instead of a join: 100,000 nodes in a minute.
	Settled bool
	// Keys is the number of keys that each node publishes.
	Keys int
}

// Net is a network of nodes. It is not safe for concurrent use.
type Net struct {
	cfg  Config
	rand *rand.Rand
	// pair is seeded by two nodes to derive their round trip time.
	pair   rand.PCG
	ofPair *rand.Rand
	now    time.Time
	events queue
	seq    uint64
	nodes  []*node
	// liars in order of id.
	liars []*kademlia.Contact
	// apart, if set, reports whether two nodes cannot reach each other.
	apart func(a, b int) bool
	index map[kademlia.ID]int

	// Delivered counts requests that reached a node.
	Delivered int64
}

type node struct {
	*kademlia.Node
	at    int // in nodes
	state state
	// wake is the time of the next Poll, zero for never.
	wake    time.Time
	watched []watched
	since   time.Time
	mine    *mine
}

type state uint8

const (
	alive state = iota
	dead
	mute // takes requests and does not answer
	liar // names only liars, stores nothing and claims to store it
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// New returns a network of nodes that have joined.
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

// settle creates all nodes at once. Each node gets 2k random contacts for each bucket, or all that
// exist: k for the bucket, some to wait.
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
		from, to := 0, len(sorted) // nodes that share so many bits
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

// ID returns a random id.
func (s *Net) ID() (id kademlia.ID) {
	for i := 0; i < len(id); i += 8 {
		binary.BigEndian.PutUint64(id[i:], s.rand.Uint64())
	}
	return id
}

// Now returns the virtual time.
func (s *Net) Now() time.Time { return s.now }

// Len returns the number of nodes ever created.
func (s *Net) Len() int { return len(s.nodes) }

// Node returns a node, to start an operation; call Poke afterwards.
func (s *Net) Node(i int) *kademlia.Node { return s.nodes[i].Node }

// Add lets one more node join through a random living one, and returns its number.
func (s *Net) Add(id kademlia.ID, groups []kademlia.Group) int {
	through := s.Any()
	n := s.make(id, groups)
	if through >= 0 {
		n.Join([]*kademlia.Contact{s.nodes[through].Self()})
	}
	s.Poke(n.at)
	return n.at
}

// make adds a node without contacts that was not polled yet.
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
		// Once it has contacts.
		s.After(5*time.Second, func() { n.Publish(); s.Poke(n.at) })
	}
	return n
}

// Any returns a random node that is alive and honest, -1 if there is none.
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

// Kill ends a node without notice, Mute lets it take requests and answer none, and Corrupt makes it
// lie.
func (s *Net) Kill(i int) { s.nodes[i].state = dead }
func (s *Net) Mute(i int) { s.nodes[i].state = mute }
func (s *Net) Corrupt(i int) {
	s.nodes[i].state = liar
	c := s.nodes[i].Self()
	at, _ := slices.BinarySearchFunc(s.liars, c, byID)
	s.liars = slices.Insert(s.liars, at, c)
}

// Each calls do for a random share of the living nodes.
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

// Part separates nodes from each other; nil connects all again.
func (s *Net) Part(apart func(a, b int) bool) { s.apart = apart }

func byID(a, b *kademlia.Contact) int { return slices.Compare(a.ID[:], b.ID[:]) }

// Run advances the time by d.
func (s *Net) Run(d time.Duration) {
	end := s.now.Add(d)
	for len(s.events) > 0 && s.events[0].at <= end.Sub(start) {
		s.next()
	}
	s.now = end
}

// RunUntil advances the time until so holds, at most by most. so is checked after each event.
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

// After calls do after d.
func (s *Net) After(d time.Duration, do func()) { s.at(s.now.Add(d), do) }

// Poke polls a node after an operation was started.
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
		return // an earlier poll is planned
	}
	n.wake = w
	s.at(w, func() {
		if n.wake.Equal(w) {
			n.wake = time.Time{}
			s.Poke(n.at)
		}
	})
}

// carry delivers a request to its node, and the answer back.
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

// rtt returns the round trip time of two nodes, which is constant.
func (s *Net) rtt(a, b int) time.Duration {
	if a > b {
		a, b = b, a
	}
	s.pair.Seed(s.cfg.Seed^uint64(a)<<32, uint64(b))
	return time.Duration(float64(s.cfg.RTT) * math.Exp(s.ofPair.NormFloat64()*s.cfg.Spread))
}

// lie returns a liar's answer: the liars nearest to the target, no value found, all records stored.
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

// nearestLiars searches in both directions from the target's place: the liars that share most bits
// with it are there.
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

// values defines the genuine values of this network: publisher (32 bytes), version and expiry in
// Unix seconds (8 bytes each), then any bytes.
type values struct{ s *Net }

// Validate implements kademlia.Validator.
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

// Value returns a genuine value of a publisher that expires after life.
func (s *Net) Value(publisher kademlia.ID, version int64, life time.Duration) []byte {
	b := binary.BigEndian.AppendUint64(slices.Clone(publisher[:]), uint64(version))
	return binary.BigEndian.AppendUint64(b, uint64(s.now.Add(life).Unix()))
}

type event struct {
	at  time.Duration // since start
	seq uint64
	do  func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// queue is a binary heap of events.
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
