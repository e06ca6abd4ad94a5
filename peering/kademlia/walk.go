package kademlia

import (
	"slices"
	"time"

	"agentsite/peering/kademlia/wire"
)

// walk asks nodes ever nearer to a target (section 2.3). It is the common part of lookups, puts and
// upkeep, and Node drives it.
//
// It follows one path. If the path ends without a result, another one starts at other contacts of
// the table and avoids all nodes of the first, because colluding nodes name only each other
// (S/Kademlia, section 4.4). So a network without liars pays for one path only.
type walk struct {
	node   *Node
	target ID
	want   int     // number of nearest nodes that have to answer
	region float64 // nodes within this share of the space have to answer too
	began  time.Time
	asked  map[ID]bool
	paths  []*path
	calls  int // in flight, including soft ones
	rpcs   int // requests so far
	// refills is the number of times that contacts of the table were added.
	refills int
	// few, if set, bounds the requests in flight to nodes so near that they should have the value
	// or know the nodes that do.
	few int
	op  op // operation that the walk belongs to
	// request returns the request for a node.
	request func(*cand) Request
	// satisfied, if set, reports that the walk may end.
	satisfied func() bool
	// again reports whether another path is worth its cost.
	again func() bool
	ended bool
}

type path struct {
	cands []cand // nearest first
	// flight is the number of requests in flight that are not soft.
	flight int
	// trouble is set if a near node was late, or a node of the region had no value.
	trouble bool
}

// cand is a node on a path.
type cand struct {
	*Contact
	far   uint64 // the first bits of its distance from the target
	depth uint8  // 1 for contacts of the table
	state state
}

type state uint8

const (
	fresh  state = iota
	asking       // in flight
	slow         // in flight, and soft
	answered
	failed
)

// maxCands bounds the candidates of a path; those beyond are farther than all others.
const maxCands = 128

func (n *Node) newWalk(target ID, want int, now time.Time) *walk {
	w := &walk{node: n, target: target, want: want, began: now, asked: make(map[ID]bool, 2*want)}
	w.forkPath()
	n.table.lookedIn(target, now)
	return w
}

// forkPath starts a path at contacts that were not asked yet, and reports whether there are any.
func (w *walk) forkPath() bool {
	n := w.node
	p := &path{}
	for _, c := range n.table.nearestContacts(w.target, n.cfg.K, func(e *entry) bool { return !w.asked[e.ID] }) {
		p.addCandidate(w, c, 1)
	}
	if len(p.cands) < n.cfg.Alpha {
		// Contacts of an earlier run, or those given to Join.
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

// refillPath adds contacts of the table that were not asked, if fewer candidates are left than
// needed, and reports whether there are any: a third of the nodes that others name may be dead.
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

// maxRefills bounds the refills of a walk.
const maxRefills = 2

// addCandidate adds a node that may be asked.
func (p *path) addCandidate(w *walk, c *Contact, depth uint8) {
	if c.ID == w.node.self.ID {
		return
	}
	i, found := p.searchCandidate(w, c.ID) // first, because most nodes were named before
	if found || i >= maxCands || !w.node.cfg.Admits(c) {
		return
	}
	p.cands = slices.Insert(p.cands, i, cand{Contact: c, far: leadingBits(w.target) ^ leadingBits(c.ID), depth: depth})
	if len(p.cands) > maxCands {
		p.cands = p.cands[:maxCands]
	}
}

// knownContacts returns the nearest nodes of a path.
func (p *path) knownContacts() []*Contact {
	out := make([]*Contact, min(len(p.cands), wire.MaxHave))
	for i := range out {
		out[i] = p.cands[i].Contact
	}
	return out
}

// nextCandidate returns the nearest node of a path that is still to be asked, nil if all that count
// were asked: the wanted number, and those in the region. Failed and slow nodes do not count. Nodes
// asked on another path do not count either, because a path that was led astray would end this one
// at once. Only few nodes of one group count.
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

// stepWalk sends the requests that may be sent now.
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
		// For the nearest nodes slow ones count as absent; a walk that has found nothing still
		// waits for them.
		w.ended = w.calls == 0 || w.again == nil || !w.again()
		return
	}
}

// nearby is the number of region sizes within which a node counts as near: the nodes that it names
// are in the region.
const nearby = 8

func (w *walk) isNear(id ID) bool { return distanceShare(w.target, id) <= nearby*w.region }

// countAsked returns the number of near nodes with a request in flight that is not late.
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

// markSlow notes that an answer is late.
func (w *walk) markSlow(c *call) {
	c.freePlace()
	c.path.trouble = c.path.trouble || w.isNear(c.to.ID)
	if x := c.path.candidateOf(w, c.to.ID); x != nil && x.state == asking {
		x.state = slow
	}
}

// endRequest notes the result of a request.
func (w *walk) endRequest(c *call, st state) {
	w.calls--
	c.freePlace()
	if x := c.path.candidateOf(w, c.to.ID); x != nil {
		x.state = st
	}
}

// freePlace frees the place of a request on its path, once: nearer nodes may have pushed the node
// itself out of the path.
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

// searchCandidate returns the index of a node on a path, or the index where it would be inserted.
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

// takeAnswer adds the nodes that another node named.
func (w *walk) takeAnswer(c *call, nodes []*Contact, now time.Time) {
	w.endRequest(c, answered)
	var groups groupCount
	for i, n := range nodes {
		if i >= w.node.cfg.K {
			break
		}
		// An honest node does not name more of one group.
		if groups.admitContact(n, w.node.cfg.GroupAnswer) {
			c.path.addCandidate(w, n, c.depth+1)
			w.node.Hear(n, now)
		}
	}
}

func (w *walk) takeFailure(c *call) { w.endRequest(c, failed) }

// nearestAnswered returns the nearest nodes that answered on any path, nearest first: at least the
// wanted number, if so many answered, and all of the region.
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

// groupCount counts contacts by group. It lists all groups of the admitted contacts, because they
// are few.
type groupCount []Group

// admitContact counts a contact, unless one of its groups has reached the limit.
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
		*g = make(groupCount, 0, 32) // mostly enough for one answer
	}
	*g = append(*g, c.Groups...)
	return true
}
