package kademlia

import (
	"slices"
	"time"
)

// Lookup searches for the values under a key, or for the nodes nearest to a target. The Node drives it;
// results may be read at any time and are final once Over returns true.
type Lookup struct {
	walk
	values []Value
	// holders is the number of nodes that must return a value before the lookup ends early; 0 asks all
	// nodes that should have one.
	holders int
	gave    int
	others  int // number of other nodes that returned a value
	hops    int // steps to the node that gave the first value; 0 if none did
	mode    mode
}

type mode uint8

const (
	forValues mode = iota
	forNodes
	forUpkeep
)

// Get starts a lookup of the values under a key. It ends when holders nodes have returned a valid value (0:
// no such limit), when all nodes that should have one were asked, or after Config.Whole. Of each publisher
// only the newest value is returned.
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

// Find starts a lookup of the k nodes nearest to a target.
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

// Values returns the values found so far, at most one for each publisher.
func (l *Lookup) Values() []Value { return l.values }

// Nearest returns the nearest nodes that answered so far, nearest first.
func (l *Lookup) Nearest() []*Contact { return l.nearestAnswered() }

// Hops returns the number of steps to the node that returned the first value, counting that node; 0 if none
// did. RPCs returns the number of requests sent, Paths the number of paths used.
func (l *Lookup) Hops() int  { return l.hops }
func (l *Lookup) RPCs() int  { return l.rpcs }
func (l *Lookup) Paths() int { return len(l.paths) }

// Holders returns how many nodes other than this one returned a value.
func (l *Lookup) Holders() int { return l.others }

// Cancel ends the lookup. Answers to its requests are then ignored.
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

// addSizeGuess adds an estimate of the network's size from a finished walk, if at least k nodes answered.
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
			break // ignore the rest of an answer with one invalid value
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

// keepNewest adds a value, or replaces the one of the same publisher if that is older.
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
