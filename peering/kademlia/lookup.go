package kademlia

import (
	"slices"
	"time"
)

// Lookup searches the values under a key, or the nodes nearest to it.
type Lookup struct {
	walk
	values []Value
	// holders is the number of nodes that have to give a value before the lookup ends; 0 means all
	// nodes that should have one.
	holders int
	gave    int
	others  int // the part of gave that came from other nodes
	hops    int // to the node that gave the first value
	mode    mode
}

type mode uint8

const (
	forValues mode = iota
	forNodes
	forUpkeep
)

// Get starts a lookup of the values under a key. It ends when as many nodes as holders gave a
// genuine value, or when all nodes that should have one were asked. Each publisher may have one
// value; the newest of each is kept.
func (n *Node) Get(key ID, holders int, now time.Time) *Lookup {
	l := &Lookup{walk: *n.newWalk(key, n.cfg.K, now), holders: holders}
	l.region = n.regionShare()
	if holders > 0 {
		l.few = holders + 1
	}
	for _, v := range n.store.getValues(key, now, n.cfg.Rand) {
		l.keepNewest(v)
	}
	if len(l.values) > 0 {
		l.gave++
	}
	l.satisfied = func() bool { return l.holders > 0 && l.gave >= l.holders }
	l.again = func() bool { return l.gave == 0 }
	l.request = func(*cand) Request { return Request{Kind: Get, Targets: []ID{key}} }
	return n.beginLookup(l)
}

// Find starts a lookup of the nodes nearest to a target.
func (n *Node) Find(target ID, now time.Time) *Lookup {
	l := &Lookup{walk: *n.newWalk(target, n.cfg.K, now), mode: forNodes}
	l.request = findNode(target)
	return n.beginLookup(l)
}

func findNode(target ID) func(*cand) Request {
	return func(*cand) Request { return Request{Kind: FindNode, Targets: []ID{target}} }
}

func (n *Node) beginLookup(l *Lookup) *Lookup {
	l.op = l
	n.ops = append(n.ops, l)
	return l
}

// Over reports whether the lookup has ended.
func (l *Lookup) Over() bool { return l.ended }

// Values returns the values found so far.
func (l *Lookup) Values() []Value { return l.values }

// Nearest returns the nearest nodes that answered so far, nearest first.
func (l *Lookup) Nearest() []*Contact { return l.nearestAnswered() }

// Hops returns the number of steps to the node that gave the first value, that node included. RPCs
// returns the number of requests sent, Paths the number of paths used.
func (l *Lookup) Hops() int  { return l.hops }
func (l *Lookup) RPCs() int  { return l.rpcs }
func (l *Lookup) Paths() int { return len(l.paths) }

// Holders returns how many other nodes gave a value.
func (l *Lookup) Holders() int { return l.others }

// Cancel ends the lookup.
func (l *Lookup) Cancel() { l.ended = true }

func (l *Lookup) sendReady(now time.Time) {
	was := l.ended
	l.walk.stepWalk(now)
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
		n.addSizeGuess(&l.walk, now)
	}
}

// addSizeGuess adds a guess of the size of the network from a walk that found the nearest nodes.
func (n *Node) addSizeGuess(w *walk, now time.Time) {
	if near := w.nearestAnswered(); len(near) >= n.cfg.K {
		n.size.addGuess(guessSize(w.target, near[:n.cfg.K]), now)
	}
}

func (l *Lookup) handleAnswer(c *call, r *Response, now time.Time) {
	if l.ended {
		return
	}
	l.walk.takeAnswer(c, r.Nodes, now)
	if l.mode != forValues {
		return
	}
	gave := false
	defer func() { c.path.trouble = c.path.trouble || !gave && distanceShare(l.target, c.to.ID) <= l.region }()
	if len(r.Found) == 0 {
		return
	}
	for i, b := range r.Found[0] {
		if i >= l.node.cfg.Store.Answer {
			break
		}
		if i := slices.IndexFunc(l.values, func(v Value) bool { return string(v.Bytes) == string(b) }); i >= 0 {
			gave = true
			continue
		}
		e, err := l.node.validateValue(l.target, b)
		if err != nil || !e.Expires.After(now) {
			l.node.tally.Refuse[Invalid]++
			break // a node that gave one forged value is not trusted for the rest
		}
		gave = true
		l.keepNewest(Value{e, b})
	}
	if gave {
		l.others++
		if l.gave++; l.hops == 0 {
			l.hops = int(c.depth)
		}
	}
}

// keepNewest keeps a value unless a newer one of the same publisher is there.
func (l *Lookup) keepNewest(v Value) {
	i := slices.IndexFunc(l.values, func(h Value) bool { return h.Publisher == v.Publisher })
	switch {
	case i < 0:
		l.values = append(l.values, v)
	case v.isNewer(l.values[i].Entry):
		l.values[i] = v
	}
}

func (l *Lookup) handleFailure(c *call, _ time.Time) {
	if !l.ended {
		l.takeFailure(c)
	}
}

func (l *Lookup) until() time.Time { return l.began.Add(l.node.cfg.Whole) }

func (n *Node) validateValue(key ID, value []byte) (Entry, error) {
	if n.cfg.Values == nil {
		return Entry{}, errNothing
	}
	return n.cfg.Values.Validate(key, value)
}
