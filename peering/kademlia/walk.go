package kademlia

import (
	"slices"
	"time"

	"agentsite/peering/kademlia/wire"
)

// walk asks nodes ever nearer to a target (section 2.3 of the Kademlia paper). It is the common part of
// lookups, puts and upkeep, and the Node drives it.
//
// It follows one path. If the path ends without a result, another one starts at other contacts of the table
// and avoids all nodes of the first, because colluding nodes name only each other (S/Kademlia, section
// 4.4). In a network without liars only one path is needed.
type walk struct {
	node   *Node
	target ID
	want   int     // number of nearest nodes that have to answer
	region float64 // nodes within this fraction of the id space have to answer too
	began  time.Time
	asked  map[ID]bool
	paths  []*path
	calls  int // requests in flight, including those past the soft limit
	rpcs   int // requests sent so far
	// refills counts the calls of refillPath that added contacts of the table.
	refills int
	// few, if not 0, bounds the concurrent requests to nodes that are near enough to have the value or to
	// know the nodes that have it. It avoids requests that are not needed if all goes well.
	few int
	op  op // the operation that the walk is part of
	// request returns the request to send to a node.
	request func(*cand) Request
	// satisfied reports whether the walk may end early; nil for never.
	satisfied func() bool
	// again reports whether a second path should be tried; nil for never.
	again func() bool
	ended bool
}

type path struct {
	cands []cand // known nodes, nearest to the target first
	// flight is the number of requests in flight that are not soft; at most Config.Alpha.
	flight int
	// trouble is set if a near node was late, or one in the region had no value. The limit few then no
	// longer applies.
	trouble bool
}

// cand is a node that a path may ask or has asked.
type cand struct {
	*Contact
	far   uint64 // first 64 bits of the distance from the target
	depth uint8  // steps from this node; 1 for contacts of the table
	state state
}

type state uint8

const (
	fresh  state = iota
	asking       // a request is in flight
	slow         // a request is in flight for longer than the soft limit
	answered
	failed
)

// maxCands bounds the candidates of a path to the nearest ones.
const maxCands = 128

func (n *Node) newWalk(target ID, want int, now time.Time) *walk {
	w := &walk{node: n, target: target, want: want, began: now, asked: make(map[ID]bool, 2*want)}
	w.forkPath()
	n.table.lookedIn(target, now)
	return w
}

// forkPath starts a new path from contacts that were not asked yet. It returns false if there are none.
func (w *walk) forkPath() bool {
	n := w.node
	p := &path{}
	for _, c := range n.table.nearestContacts(w.target, n.cfg.K, func(e *entry) bool { return !w.asked[e.ID] }) {
		p.addCandidate(w, c, 1)
	}
	if len(p.cands) < n.cfg.Alpha {
		// Use contacts from before a restart, or those given to Join.
		for _, c := range n.remembered {
			if !w.asked[c.ID] {
				p.addCandidate(w, c, 1)
			}
		}
	}
	if len(p.cands) == 0 {
		return false
	}
	w.paths = append(w.paths, p)
	return true
}

// refillPath adds contacts of the table to the first path when too few nodes have answered, because many of
// the nodes that others name may be gone. It returns false if nothing was added.
func (w *walk) refillPath() bool {
	if w.refills >= maxRefills || len(w.paths) == 0 || len(w.nearestAnswered()) >= w.want {
		return false
	}
	w.refills++
	p, n := w.paths[0], w.node
	before := len(p.cands)
	for _, c := range n.table.nearestContacts(w.target, n.cfg.K, func(e *entry) bool { return !w.asked[e.ID] }) {
		p.addCandidate(w, c, 1)
	}
	return len(p.cands) > before
}

// maxRefills bounds the calls of refillPath in one walk, so that a walk among dead nodes ends.
const maxRefills = 2

// addCandidate adds a node to a path in order of distance, unless it is this node, known, too far or not
// admitted.
func (p *path) addCandidate(w *walk, c *Contact, depth uint8) {
	if c.ID == w.node.self.ID {
		return
	}
	i, found := p.searchCandidate(w, c.ID) // searched first, because most nodes were named before
	if found || i >= maxCands || !w.node.cfg.Admits(c) {
		return
	}
	p.cands = slices.Insert(p.cands, i, cand{Contact: c, far: leadingBits(w.target) ^ leadingBits(c.ID), depth: depth})
	if len(p.cands) > maxCands {
		p.cands = p.cands[:maxCands]
	}
}

// knownContacts returns the nearest nodes of a path for Request.Known.
func (p *path) knownContacts() []*Contact {
	out := make([]*Contact, min(len(p.cands), wire.MaxHave))
	for i := range out {
		out[i] = p.cands[i].Contact
	}
	return out
}

// nextCandidate returns the nearest node of a path to ask next, nil if enough were asked: the nearest want
// ones, and all in the region. Failed and slow nodes do not count, nor do nodes asked only on another path:
// a path that an attacker controls could otherwise end this one. Of one group at most Config.GroupAnswer
// nodes are asked.
func (p *path) nextCandidate(w *walk) *cand {
	live, most := 0, 3*w.node.cfg.K
	var groups groupCount
	for i := range p.cands {
		c := &p.cands[i]
		if c.state == failed || c.state == slow || c.state == fresh && w.asked[c.ID] {
			continue
		}
		if live >= most || live >= w.want && distanceShare(w.target, c.ID) > w.region {
			return nil
		}
		if !groups.admitContact(c.Contact, w.node.cfg.GroupAnswer) {
			continue
		}
		if c.state == fresh {
			return c
		}
		live++
	}
	return nil
}

// stepWalk queues the requests that may be sent now, and ends the walk when no more are needed or
// Config.Whole is over.
func (w *walk) stepWalk(now time.Time) {
	if w.ended {
		return
	}
	if w.satisfied != nil && w.satisfied() || now.Sub(w.began) >= w.node.cfg.Whole {
		w.ended = true
		return
	}
	for {
		idle := true
		for _, p := range w.paths {
			for p.flight < w.node.cfg.Alpha {
				c := p.nextCandidate(w)
				if c == nil || w.few > 0 && !p.trouble && w.isNear(c.ID) && p.countAsked(w) >= w.few {
					break
				}
				c.state = asking
				w.asked[c.ID] = true
				p.flight++
				w.calls++
				w.rpcs++
				r := w.request(c)
				r.Known = p.knownContacts()
				w.node.sendRequest(&call{to: c.Contact, walk: w, path: p, depth: c.depth}, r, now)
			}
			idle = idle && p.flight == 0
		}
		if !idle {
			return
		}
		if w.refillPath() {
			continue
		}
		if len(w.paths) < w.node.cfg.Paths && w.again != nil && w.again() && w.forkPath() {
			continue
		}
		// A walk with a result does not wait for slow nodes; one without still does.
		w.ended = w.calls == 0 || w.again == nil || !w.again()
		return
	}
}

// nearby is the distance, in multiples of the region, within which a node counts as near: the nodes that it
// names are probably in the region.
const nearby = 8

func (w *walk) isNear(id ID) bool { return distanceShare(w.target, id) <= nearby*w.region }

// countAsked returns the number of near nodes with a request in flight that is not soft.
func (p *path) countAsked(w *walk) (n int) {
	for i := range p.cands {
		c := &p.cands[i]
		if !w.isNear(c.ID) {
			break
		}
		if c.state == asking {
			n++
		}
	}
	return n
}

// markSlow records that a request has become soft, so that another may be sent.
func (w *walk) markSlow(c *call) {
	c.freePlace()
	c.path.trouble = c.path.trouble || w.isNear(c.to.ID)
	if x := c.path.candidateOf(w, c.to.ID); x != nil && x.state == asking {
		x.state = slow
	}
}

// endRequest records that a request ended in the state answered or failed.
func (w *walk) endRequest(c *call, st state) {
	w.calls--
	c.freePlace()
	if x := c.path.candidateOf(w, c.to.ID); x != nil {
		x.state = st
	}
}

// freePlace stops counting a request in path.flight; a second call has no effect. The state of the
// candidate cannot be used for this, because nearer nodes may have displaced it from the path.
func (c *call) freePlace() {
	if !c.landed {
		c.landed = true
		c.path.flight--
	}
}

func (p *path) candidateOf(w *walk, id ID) *cand {
	i, found := p.searchCandidate(w, id)
	if !found {
		return nil
	}
	return &p.cands[i]
}

// searchCandidate returns the index of a node on a path; if it is not there, the index at which it belongs.
func (p *path) searchCandidate(w *walk, id ID) (at int, found bool) {
	far := leadingBits(w.target) ^ leadingBits(id)
	from, to := 0, len(p.cands)
	for from < to {
		mid := (from + to) / 2
		if c := &p.cands[mid]; c.far < far || c.far == far && Nearer(w.target, c.ID, id) {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from, from < len(p.cands) && p.cands[from].far == far && p.cands[from].ID == id
}

// takeAnswer records the answer to a request and adds the nodes that it names, at most k.
func (w *walk) takeAnswer(c *call, nodes []*Contact, now time.Time) {
	w.endRequest(c, answered)
	var groups groupCount
	for i, n := range nodes {
		if i >= w.node.cfg.K {
			break
		}
		// an honest node names no more than this of one group
		if groups.admitContact(n, w.node.cfg.GroupAnswer) {
			c.path.addCandidate(w, n, c.depth+1)
			w.node.Hear(n, now)
		}
	}
}

func (w *walk) takeFailure(c *call) { w.endRequest(c, failed) }

// nearestAnswered returns the nodes that answered on any path, nearest first: the nearest want ones and all
// in the region, at most 3k, and at most Config.GroupAnswer of one group.
func (w *walk) nearestAnswered() []*Contact {
	var all []*Contact
	for _, p := range w.paths {
		for i := range p.cands {
			if c := &p.cands[i]; c.state == answered {
				all = append(all, c.Contact)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Contact) int { return compareDistance(w.target, a.ID, b.ID) })
	all = slices.CompactFunc(all, func(a, b *Contact) bool { return a.ID == b.ID })
	var groups groupCount
	out, most := all[:0], 3*w.node.cfg.K
	for _, c := range all {
		if len(out) >= most || len(out) >= w.want && distanceShare(w.target, c.ID) > w.region {
			break
		}
		if groups.admitContact(c, w.node.cfg.GroupAnswer) {
			out = append(out, c)
		}
	}
	return out
}

// groupCount counts contacts by group. It is a list with one element for each group of each counted
// contact, because there are few.
type groupCount []Group

// admitContact counts a contact and returns true, unless one of its groups has reached the limit most.
func (g *groupCount) admitContact(c *Contact, most int) bool {
	for _, x := range c.Groups {
		n := 0
		for _, have := range *g {
			if have == x {
				n++
			}
		}
		if n >= most {
			return false
		}
	}
	if *g == nil && len(c.Groups) > 0 {
		*g = make(groupCount, 0, 32) // enough for most answers
	}
	*g = append(*g, c.Groups...)
	return true
}
