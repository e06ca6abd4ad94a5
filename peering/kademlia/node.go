package kademlia

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
	"time"
)

// Node is one node of the DHT: a state machine, see the package comment. It is
// not safe for concurrent use.
type Node struct {
	cfg   Config
	self  *Contact
	table *table
	shelf shelf
	size  estimate
	rtts  times
	lives lives

	// remembered are contacts that have not answered since the start, to begin
	// with while the table is small.
	remembered []*Contact
	heard      []*Contact // to be asked whether they are there
	probing    map[ID]bool
	doubted    []doubt // in order of time
	absent     absent

	ops    []op
	calls  []*call // in the order they were sent
	lastID uint64
	out    []Call

	upkeep upkeep
	tally  Tally
}

// op is something that takes several requests.
type op interface {
	// step sends what may be sent.
	step(now time.Time)
	Over() bool
	answered(c *call, r *Response, now time.Time)
	failed(c *call, now time.Time)
}

// call is a request in flight.
type call struct {
	id    uint64
	to    *Contact
	op    op
	sent  time.Time
	limit time.Time // when it becomes soft; then, when it failed
	soft  bool

	// Of a walk:
	walk  *walk
	path  *path
	depth uint8
	// landed is that it no longer holds a place on the path.
	landed bool
	// Of records: which of the op's are in it.
	records []int
}

// Call is a request to send.
type Call struct {
	// ID is what Answer and Fail want back.
	ID      uint64
	To      *Contact
	Request Request
}

// New returns a node that is self and knows nobody.
func New(self *Contact, cfg Config) *Node {
	n := &Node{cfg: cfg.withDefaults(), self: self, probing: make(map[ID]bool)}
	n.table = newTable(self.ID, &n.cfg)
	n.shelf.cfg = n.cfg.Shelf
	return n
}

// Self returns the node's own contact, Renew replaces it.
func (n *Node) Self() *Contact      { return n.self }
func (n *Node) Renew(self *Contact) { n.self = self }
func (n *Node) Tally() Tally        { return n.tally }
func (n *Node) Held() (records int) { return n.shelf.count }
func (n *Node) HeldBytes() int64    { return n.shelf.bytes }
func (n *Node) Known() (nodes int)  { return n.table.size }

// Size guesses how many nodes there are, this one included.
func (n *Node) Size() float64 {
	if n.table.size < n.cfg.K {
		return float64(n.table.size + 1)
	}
	if guess, ok := n.size.nodes(); ok {
		return max(guess, float64(n.cfg.K))
	}
	return max(guess(n.self.ID, n.table.nearest(n.self.ID, n.cfg.K, nil)), float64(n.cfg.K))
}

// region is the share of the space that is expected to hold k nodes around any
// place of it.
func (n *Node) region() float64 { return min(1, float64(n.cfg.K)/n.Size()) }

// send queues a request.
func (n *Node) send(c *call, r Request, now time.Time) {
	n.lastID++
	c.id, c.sent, c.limit = n.lastID, now, now.Add(n.rtts.soft(&n.cfg))
	if c.walk == nil {
		// Nobody waits for it beside others.
		c.soft, c.limit = true, now.Add(n.cfg.Hard)
	} else {
		c.op = c.walk.op
	}
	n.calls = append(n.calls, c)
	n.out = append(n.out, Call{c.id, c.to, r})
	n.tally.Sent++
}

// Poll returns what is to be sent now; it is the caller's.
func (n *Node) Poll(now time.Time) []Call {
	for _, c := range n.late(now) {
		if c.soft {
			n.lost(c, now)
			continue
		}
		c.soft, c.limit = true, c.sent.Add(n.cfg.Hard)
		n.tally.Soft++
		c.walk.soft(c)
	}
	n.keepUp(now)
	n.step(now)
	out := n.out
	n.out = nil
	return out
}

// late returns the calls whose limit has passed, in the order they were sent.
func (n *Node) late(now time.Time) []*call {
	var late []*call
	for _, c := range n.calls {
		if !c.limit.After(now) {
			late = append(late, c)
		}
	}
	return late
}

func (n *Node) step(now time.Time) {
	for i := 0; i < len(n.ops); i++ { // steps may begin others
		n.ops[i].step(now)
	}
	n.ops = slices.DeleteFunc(n.ops, op.Over)
}

// Wake returns when Poll has something to do if nothing comes before.
func (n *Node) Wake(now time.Time) time.Time {
	at := n.upkeep.next
	for _, c := range n.calls {
		if c.limit.Before(at) {
			at = c.limit
		}
	}
	for _, o := range n.ops {
		if w, ok := o.(interface{ until() time.Time }); ok && w.until().Before(at) {
			at = w.until()
		}
	}
	return at
}

// maxGroups bounds the groups of a contact: who is seen at ever other addresses
// would have ever more.
const maxGroups = 8

// Answer takes in the answer to a call, of which the sender saw near whom it is:
// groups that it did not know before. An answer that comes after Fail, or
// twice, is dropped.
func (n *Node) Answer(id uint64, r *Response, near []Group, now time.Time) {
	i := n.call(id)
	if i < 0 {
		return
	}
	c := n.calls[i]
	n.calls = slices.Delete(n.calls, i, i+1)
	n.rtts.add(now.Sub(c.sent))
	n.tally.Answered++
	to := c.to
	// What it says of itself counts more than what others said, whose version
	// may be made up.
	if r.Self != nil && r.Self.ID == to.ID && (r.Self.Version != to.Version || !bytes.Equal(r.Self.Node, to.Node)) {
		to = r.Self
	}
	if len(near) > 0 && len(to.Groups) < maxGroups {
		with := *to
		with.Groups = slices.Concat(to.Groups, near)
		slices.Sort(with.Groups)
		with.Groups = slices.Compact(with.Groups)
		to = &with
	}
	n.met(to, now)
	c.op.answered(c, r, now)
}

// Fail tells that a call failed: nobody answered, or what was answered is not
// what was asked.
func (n *Node) Fail(id uint64, now time.Time) {
	if i := n.call(id); i >= 0 {
		n.lost(n.calls[i], now)
	}
}

// call returns where a call is among those in flight, -1 for nowhere.
func (n *Node) call(id uint64) int {
	for i, c := range n.calls {
		if c.id == id {
			return i
		}
	}
	return -1
}

func (n *Node) lost(c *call, now time.Time) {
	i := n.call(c.id)
	n.calls = slices.Delete(n.calls, i, i+1)
	n.tally.Failed++
	n.absent.add(c.to.ID, now)
	if gone := n.table.failed(c.to.ID, now); gone != nil {
		n.lives.ended(gone)
	} else if n.table.doubted(c.to.ID) && len(n.doubted) < maxDoubted {
		// Asked again soon it need not be taken for alive until by chance.
		again := now.Add(doubtFor)
		n.doubted = append(n.doubted, doubt{c.to, again})
		if again.Before(n.upkeep.next) {
			n.upkeep.next = again
		}
	}
	c.op.failed(c, now)
}

// doubt is a contact that failed once, and when it is asked again.
type doubt struct {
	*Contact
	at time.Time
}

const (
	doubtFor   = 30 * time.Second
	maxDoubted = 64
)

// met notes that a node answered.
func (n *Node) met(c *Contact, now time.Time) {
	if n.table.answered(c, now) {
		if n.table.size < 2*n.cfg.K {
			n.upkeep.next = time.Time{}
		}
		n.remembered = slices.DeleteFunc(n.remembered, func(r *Contact) bool { return r.ID == c.ID })
		n.handOver(c, now)
	}
}

// Hear tells of a node that may be there: it sent a request, another one or
// gossip names it. It is asked once there is time and a place for it, unless it
// was silent lately.
func (n *Node) Hear(c *Contact, now time.Time) {
	const most = 64
	if len(n.heard) < most && n.table.room(c) && !n.probing[c.ID] && !n.absent.has(c.ID, now) &&
		!slices.ContainsFunc(n.heard, func(h *Contact) bool { return h.ID == c.ID }) {
		n.heard = append(n.heard, c)
		n.upkeep.next = time.Time{}
	}
}

// absent remembers who did not answer lately, so that what others go on to say
// of them is not looked into again and again.
type absent struct {
	last [64]struct {
		id   uint64 // its first bytes
		when int64  // Unix ms
	}
	at int
}

const absentFor = 5 * time.Minute

func (a *absent) add(id ID, now time.Time) {
	a.last[a.at].id, a.last[a.at].when = binary.BigEndian.Uint64(id[:]), now.UnixMilli()
	a.at = (a.at + 1) % len(a.last)
}

func (a *absent) has(id ID, now time.Time) bool {
	first := binary.BigEndian.Uint64(id[:])
	for i := range a.last {
		if a.last[i].id == first && now.UnixMilli()-a.last[i].when < absentFor.Milliseconds() {
			return true
		}
	}
	return false
}

// Join tells of nodes to begin with: those that were known at the last start,
// and those that the operator names. The node looks itself up, and then what is
// far from it.
func (n *Node) Join(known []*Contact) {
	for _, c := range known {
		if c.ID != n.self.ID && !slices.ContainsFunc(n.remembered, func(r *Contact) bool { return r.ID == c.ID }) {
			n.remembered = append(n.remembered, c)
		}
	}
	n.upkeep.join()
}

// Settle gives a new node a table at once: each contact is taken in as if it had
// just answered after the time that took says, by the way that answers take, and
// upkeep goes on as of one that joined long ago. It is for simulations of
// networks too large to let everybody join; who is real has to ask: see Join.
func (n *Node) Settle(known []*Contact, took func(*Contact) time.Duration, now time.Time) {
	for _, c := range known {
		n.rtts.add(took(c))
		n.met(c, now)
	}
	u := &n.upkeep
	u.joining, u.shaken = len(joins)-1, true
	u.selfAt, u.next = n.phase(n.cfg.Self, now), time.Time{}
	for i := range n.table.buckets {
		n.table.buckets[i].looked = n.phase(n.cfg.Refresh, now).Add(-n.cfg.Refresh).UnixMilli()
	}
}

// phase returns some time of the next d.
func (n *Node) phase(d time.Duration, now time.Time) time.Time {
	return now.Add(time.Duration(n.cfg.Rand.Float64() * float64(d)))
}

// Forget takes a node out of the table, and what it published off the shelf.
func (n *Node) Forget(id ID) {
	n.table.remove(id)
	n.remembered = slices.DeleteFunc(n.remembered, func(c *Contact) bool { return c.ID == id })
	n.shelf.forget(id)
}

// Contacts returns all of the table, those that answered last at first. It is
// what is worth to be kept on disk for Join.
func (n *Node) Contacts() []*Contact {
	var all []entry
	n.table.each(func(e *entry) { all = append(all, *e) })
	sort.Slice(all, func(i, j int) bool { // not slices.SortFunc: one more of these is 9 kB
		if all[i].seen != all[j].seen {
			return all[i].seen > all[j].seen
		}
		return Nearer(n.self.ID, all[i].ID, all[j].ID)
	})
	out := make([]*Contact, len(all))
	for i := range all {
		out[i] = all[i].Contact
	}
	return out
}

// Buckets returns how many contacts share 0, 1, 2… bits with this node.
func (n *Node) Buckets() []int {
	out := make([]int, len(n.table.buckets))
	for i := range out {
		out[i] = len(n.table.buckets[i].live)
	}
	return out
}

// Tally counts what a node did since it began.
type Tally struct {
	Sent, Answered, Failed, Soft int64
	// Lookups for values: those that found one, those that did not; how many of
	// them took a second path; their requests and hops.
	Found, Missed, Second, RPCs, Hops int64
	// Records that were refused here, by Code.
	Refuse [TooFar + 1]int64
}
