package kademlia

import (
	"slices"
	"time"
)

// Lookup looks for the values under a key, or for the nodes nearest to it.
type Lookup struct {
	walk
	values []Value
	// holders is how many nodes have to give a value before it ends, 0 for all
	// that should have one.
	holders int
	gave    int
	others  int // of gave, without this node
	hops    int // of the first value
	mode    mode
}

type mode uint8

const (
	forValues mode = iota
	forNodes
	forUpkeep
)

// Get begins to look for the values under a key. It ends with the first
// genuine one of holders nodes, or when all nodes that should have one were
// asked. Publishers may have one each; of one publisher the newest is kept.
func (n *Node) Get(key ID, holders int, now time.Time) *Lookup {
	l := &Lookup{walk: *n.newWalk(key, n.cfg.K, now), holders: holders}
	l.region = n.region()
	if holders > 0 {
		l.few = holders + 1
	}
	for _, v := range n.shelf.get(key, now, n.cfg.Rand) {
		l.take(v)
	}
	if len(l.values) > 0 {
		l.gave++
	}
	l.satisfied = func() bool { return l.holders > 0 && l.gave >= l.holders }
	l.again = func() bool { return l.gave == 0 }
	l.request = func(*cand) Request { return Request{Kind: Get, Targets: []ID{key}} }
	return n.begin(l)
}

// Find begins to look for the nodes nearest to a target.
func (n *Node) Find(target ID, now time.Time) *Lookup {
	l := &Lookup{walk: *n.newWalk(target, n.cfg.K, now), mode: forNodes}
	l.request = findNode(target)
	return n.begin(l)
}

func findNode(target ID) func(*cand) Request {
	return func(*cand) Request { return Request{Kind: FindNode, Targets: []ID{target}} }
}

func (n *Node) begin(l *Lookup) *Lookup {
	l.op = l
	n.ops = append(n.ops, l)
	return l
}

// Over reports whether it has ended.
func (l *Lookup) Over() bool { return l.ended }

// Values returns what was found so far.
func (l *Lookup) Values() []Value { return l.values }

// Nearest returns the nearest nodes that answered so far, nearest first.
func (l *Lookup) Nearest() []*Contact { return l.nearest() }

// Hops returns how many nodes stood between this one and the first value, that
// which gave it included; RPCs how many requests were sent, Paths along how
// many paths.
func (l *Lookup) Hops() int  { return l.hops }
func (l *Lookup) RPCs() int  { return l.rpcs }
func (l *Lookup) Paths() int { return len(l.paths) }

// Holders returns how many other nodes gave a value.
func (l *Lookup) Holders() int { return l.others }

// Cancel ends it.
func (l *Lookup) Cancel() { l.ended = true }

func (l *Lookup) step(now time.Time) {
	was := l.ended
	l.walk.step(now)
	if was || !l.ended {
		return
	}
	n := l.node
	switch l.mode {
	case forValues:
		if len(l.values) > 0 {
			n.tally.Found++
		} else {
			n.tally.Missed++
		}
		if len(l.paths) > 1 {
			n.tally.Second++
		}
		n.tally.RPCs += int64(l.rpcs)
		n.tally.Hops += int64(l.hops)
	case forNodes:
		n.learn(&l.walk, now)
	}
}

// learn takes a guess at the size of the network from a walk that found the
// nearest nodes.
func (n *Node) learn(w *walk, now time.Time) {
	if near := w.nearest(); len(near) >= n.cfg.K {
		n.size.add(guess(w.target, near[:n.cfg.K]), now)
	}
}

func (l *Lookup) answered(c *call, r *Response, now time.Time) {
	if l.ended {
		return
	}
	l.walk.answer(c, r.Nodes, now)
	if l.mode != forValues {
		return
	}
	gave := false
	defer func() { c.path.trouble = c.path.trouble || !gave && apart(l.target, c.to.ID) <= l.region }()
	if len(r.Found) == 0 {
		return
	}
	for i, b := range r.Found[0] {
		if i >= l.node.cfg.Shelf.Answer {
			break
		}
		if i := slices.IndexFunc(l.values, func(v Value) bool { return string(v.Bytes) == string(b) }); i >= 0 {
			gave = true
			continue
		}
		e, err := l.node.validate(l.target, b)
		if err != nil || !e.Expires.After(now) {
			l.node.tally.Refuse[Invalid]++
			break // who gives one that is not genuine is not believed the rest
		}
		gave = true
		l.take(Value{e, b})
	}
	if gave {
		l.others++
		if l.gave++; l.hops == 0 {
			l.hops = int(c.depth)
		}
	}
}

// take keeps a value unless a newer one of its publisher is there.
func (l *Lookup) take(v Value) {
	i := slices.IndexFunc(l.values, func(h Value) bool { return h.Publisher == v.Publisher })
	switch {
	case i < 0:
		l.values = append(l.values, v)
	case v.newer(l.values[i].Entry):
		l.values[i] = v
	}
}

func (l *Lookup) failed(c *call, _ time.Time) {
	if !l.ended {
		l.fail(c)
	}
}

func (l *Lookup) until() time.Time { return l.began.Add(l.node.cfg.Whole) }

func (n *Node) validate(key ID, value []byte) (Entry, error) {
	if n.cfg.Values == nil {
		return Entry{}, errNothing
	}
	return n.cfg.Values.Validate(key, value)
}
