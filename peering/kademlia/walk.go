package kademlia

import (
	"slices"
	"time"

	"agentsite/peering/kademlia/wire"
)

// walk asks nodes ever nearer to a target (section 2.3). It is what lookups,
// puts and upkeep have in common, and is driven by Node.
//
// It goes along one path. When that ends without what was looked for, another
// one begins at other contacts of the table and asks nobody whom the first has
// asked, as nodes that lie together lead to each other only (S/Kademlia,
// section 4.4); so a network without liars pays for one path.
type walk struct {
	node   *Node
	target ID
	want   int     // how many of the nearest nodes have to have answered
	region float64 // nodes nearer than this share of the space count beside them
	began  time.Time
	asked  map[ID]bool
	paths  []*path
	calls  int // in flight, soft ones too
	rpcs   int // ever
	// refills is how often contacts of the table were added.
	refills int
	// few, when set, is how many are asked at a time of those that are so near
	// that they have what is looked for, or know all that should.
	few int
	op  op // whose it is
	// request says what a node is asked.
	request func(*cand) Request
	// satisfied, when set, says that nothing more is needed.
	satisfied func() bool
	// again says whether another path is worth it.
	again func() bool
	ended bool
}

type path struct {
	cands []cand // nearest first
	// flight is how many requests are in flight that are not soft.
	flight int
	// trouble is that one of those that are near was late, or one of the region
	// had nothing.
	trouble bool
}

// cand is a node on a path.
type cand struct {
	*Contact
	far   uint64 // the first bits of its distance from the target
	depth uint8  // 1 for those of the table
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

// maxCands bounds what a path remembers: others are farther than all of them.
const maxCands = 128

func (n *Node) newWalk(target ID, want int, now time.Time) *walk {
	w := &walk{node: n, target: target, want: want, began: now, asked: make(map[ID]bool, 2*want)}
	w.fork()
	n.table.lookedIn(target, now)
	return w
}

// fork begins a path with contacts that were not asked yet, and reports whether
// there are any.
func (w *walk) fork() bool {
	n := w.node
	p := &path{}
	for _, c := range n.table.nearest(w.target, n.cfg.K, func(e *entry) bool { return !w.asked[e.ID] }) {
		p.add(w, c, 1)
	}
	if len(p.cands) < n.cfg.Alpha {
		// Whom it knew before it was started anew, or was told to begin with.
		for _, c := range n.remembered {
			if !w.asked[c.ID] {
				p.add(w, c, 1)
			}
		}
	}
	if len(p.cands) == 0 {
		return false
	}
	w.paths = append(w.paths, p)
	return true
}

// refill adds contacts of the table that were not asked, when fewer than wanted
// are left of those that were named, and reports whether there are any: a third
// of what others name may be dead.
func (w *walk) refill() bool {
	if w.refills >= maxRefills || len(w.paths) == 0 || len(w.nearest()) >= w.want {
		return false
	}
	w.refills++
	p, n := w.paths[0], w.node
	before := len(p.cands)
	for _, c := range n.table.nearest(w.target, n.cfg.K, func(e *entry) bool { return !w.asked[e.ID] }) {
		p.add(w, c, 1)
	}
	return len(p.cands) > before
}

// maxRefills bounds how often that is done.
const maxRefills = 2

// add notes a node that may be asked.
func (p *path) add(w *walk, c *Contact, depth uint8) {
	if c.ID == w.node.self.ID {
		return
	}
	i, found := p.search(w, c.ID) // first, as most were named before
	if found || i >= maxCands || !w.node.cfg.Admits(c) {
		return
	}
	p.cands = slices.Insert(p.cands, i, cand{Contact: c, far: lead(w.target) ^ lead(c.ID), depth: depth})
	if len(p.cands) > maxCands {
		p.cands = p.cands[:maxCands]
	}
}

// known returns the nearest nodes of a path.
func (p *path) known() []*Contact {
	out := make([]*Contact, min(len(p.cands), wire.MaxHave))
	for i := range out {
		out[i] = p.cands[i].Contact
	}
	return out
}

// next returns the nearest node of a path that is still to be asked, nil if all
// that count were: those wanted, and those in the region. Nodes that failed or
// are slow do not count, nor those asked on another path, which would end this
// one at once if that one was led astray; nor do more than a few of one group.
func (p *path) next(w *walk) *cand {
	live, most := 0, 3*w.node.cfg.K
	var groups groupCount
	for i := range p.cands {
		c := &p.cands[i]
		if c.state == failed || c.state == slow || c.state == fresh && w.asked[c.ID] {
			continue
		}
		if live >= most || live >= w.want && apart(w.target, c.ID) > w.region {
			return nil
		}
		if !groups.admit(c.Contact, w.node.cfg.GroupAnswer) {
			continue
		}
		if c.state == fresh {
			return c
		}
		live++
	}
	return nil
}

// step sends what may be sent.
func (w *walk) step(now time.Time) {
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
				c := p.next(w)
				if c == nil || w.few > 0 && !p.trouble && w.near(c.ID) && p.asking(w) >= w.few {
					break
				}
				c.state = asking
				w.asked[c.ID] = true
				p.flight++
				w.calls++
				w.rpcs++
				r := w.request(c)
				r.Known = p.known()
				w.node.send(&call{to: c.Contact, walk: w, path: p, depth: c.depth}, r, now)
			}
			idle = idle && p.flight == 0
		}
		if !idle {
			return
		}
		if w.refill() {
			continue
		}
		if len(w.paths) < w.node.cfg.Paths && w.again != nil && w.again() && w.fork() {
			continue
		}
		// Slow ones are absent for who only wants the nearest, and the last hope
		// of who has found nothing.
		w.ended = w.calls == 0 || w.again == nil || !w.again()
		return
	}
}

// nearby is how many regions away a node is near: whom it names is in the region.
const nearby = 8

func (w *walk) near(id ID) bool { return apart(w.target, id) <= nearby*w.region }

// asking returns how many of those that are near are asked now and not late.
func (p *path) asking(w *walk) (n int) {
	for i := range p.cands {
		c := &p.cands[i]
		if !w.near(c.ID) {
			break
		}
		if c.state == asking {
			n++
		}
	}
	return n
}

// soft notes that an answer is late.
func (w *walk) soft(c *call) {
	c.land()
	c.path.trouble = c.path.trouble || w.near(c.to.ID)
	if x := c.path.of(w, c.to.ID); x != nil && x.state == asking {
		x.state = slow
	}
}

// over notes that a request ended, and how.
func (w *walk) over(c *call, st state) {
	w.calls--
	c.land()
	if x := c.path.of(w, c.to.ID); x != nil {
		x.state = st
	}
}

// land gives the place of a request on its path free, once: the node may have
// been crowded out of the path by nearer ones meanwhile.
func (c *call) land() {
	if !c.landed {
		c.landed = true
		c.path.flight--
	}
}

func (p *path) of(w *walk, id ID) *cand {
	i, found := p.search(w, id)
	if !found {
		return nil
	}
	return &p.cands[i]
}

// search returns where a node is on a path, or would be.
func (p *path) search(w *walk, id ID) (at int, found bool) {
	far := lead(w.target) ^ lead(id)
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

// answer takes in whom a node named.
func (w *walk) answer(c *call, nodes []*Contact, now time.Time) {
	w.over(c, answered)
	var groups groupCount
	for i, n := range nodes {
		if i >= w.node.cfg.K {
			break
		}
		// An honest node names no more of a group.
		if groups.admit(n, w.node.cfg.GroupAnswer) {
			c.path.add(w, n, c.depth+1)
			w.node.Hear(n, now)
		}
	}
}

func (w *walk) fail(c *call) { w.over(c, failed) }

// nearest returns the nearest nodes that answered, on whatever path, nearest
// first: at least want of them, if so many did, and all of the region.
func (w *walk) nearest() []*Contact {
	var all []*Contact
	for _, p := range w.paths {
		for i := range p.cands {
			if c := &p.cands[i]; c.state == answered {
				all = append(all, c.Contact)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Contact) int { return compare(w.target, a.ID, b.ID) })
	all = slices.CompactFunc(all, func(a, b *Contact) bool { return a.ID == b.ID })
	var groups groupCount
	out, most := all[:0], 3*w.node.cfg.K
	for _, c := range all {
		if len(out) >= most || len(out) >= w.want && apart(w.target, c.ID) > w.region {
			break
		}
		if groups.admit(c, w.node.cfg.GroupAnswer) {
			out = append(out, c)
		}
	}
	return out
}

// groupCount counts contacts by group: all groups of those that were admitted,
// in a list, as they are few.
type groupCount []Group

// admit counts a contact unless it is of a group that has as many as it may.
func (g *groupCount) admit(c *Contact, most int) bool {
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
		*g = make(groupCount, 0, 32) // of one answer, mostly
	}
	*g = append(*g, c.Groups...)
	return true
}
