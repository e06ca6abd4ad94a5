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
	store valueStore
	size  estimate
	rtts  times
	lives lives

	// remembered are contacts of an earlier run that have not answered yet. Lookups start at them
	// while the table is small.
	remembered []*Contact
	heard      []*Contact // to be pinged
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

// op is an operation of several requests: a lookup, a Put or pings.
type op interface {
	// sendReady sends the requests that may be sent now.
	sendReady(now time.Time)
	Over() bool
	handleAnswer(c *call, r *Response, now time.Time)
	handleFailure(c *call, now time.Time)
}

// call is a request in flight.
type call struct {
	id    uint64
	to    *Contact
	op    op
	sent  time.Time
	limit time.Time // when it becomes soft; after that, when it fails
	soft  bool

	// Of a walk.
	walk  *walk
	path  *path
	depth uint8
	// landed is set when the call no longer holds a place on the path.
	landed bool
	// Of a delivery: indexes of the records in this request.
	records []int
}

// Call is a request to send.
type Call struct {
	// ID is the argument for Answer and Fail.
	ID      uint64
	To      *Contact
	Request Request
}

// New returns a node with the contact self and an empty table.
func New(self *Contact, cfg Config) *Node {
	n := &Node{cfg: cfg.withDefaults(), self: self, probing: make(map[ID]bool)}
	n.table = newTable(self.ID, &n.cfg)
	n.store.cfg = n.cfg.Store
	return n
}

// Self returns the node's own contact, Renew replaces it.
func (n *Node) Self() *Contact      { return n.self }
func (n *Node) Renew(self *Contact) { n.self = self }
func (n *Node) Tally() Tally        { return n.tally }
func (n *Node) Held() (records int) { return n.store.count }
func (n *Node) HeldBytes() int64    { return n.store.bytes }
func (n *Node) Known() (nodes int)  { return n.table.size }

// Size guesses how many nodes there are, this one included.
func (n *Node) Size() float64 {
	if n.table.size < n.cfg.K {
		return float64(n.table.size + 1)
	}
	if guess, ok := n.size.medianGuess(); ok {
		return max(guess, float64(n.cfg.K))
	}
	return max(guessSize(n.self.ID, n.table.nearestContacts(n.self.ID, n.cfg.K, nil)), float64(n.cfg.K))
}

// regionShare is the share of the space that is expected to hold k nodes around any point.
func (n *Node) regionShare() float64 { return min(1, float64(n.cfg.K)/n.Size()) }

// sendRequest queues a request.
func (n *Node) sendRequest(c *call, r Request, now time.Time) {
	n.lastID++
	c.id, c.sent, c.limit = n.lastID, now, now.Add(n.rtts.softLimit(&n.cfg))
	if c.walk == nil {
		// No other request is waiting for this one, so it has only the hard limit.
		c.soft, c.limit = true, now.Add(n.cfg.Hard)
	} else {
		c.op = c.walk.op
	}
	n.calls = append(n.calls, c)
	n.out = append(n.out, Call{c.id, c.to, r})
	n.tally.Sent++
}

// Poll returns the requests to send now. The caller owns the slice.
func (n *Node) Poll(now time.Time) []Call {
	for _, c := range n.lateCalls(now) {
		if c.soft {
			n.failCall(c, now)
			continue
		}
		c.soft, c.limit = true, c.sent.Add(n.cfg.Hard)
		n.tally.Soft++
		c.walk.markSlow(c)
	}
	n.keepUp(now)
	n.stepOperations(now)
	out := n.out
	n.out = nil
	return out
}

// lateCalls returns the calls past their limit, in the order they were sent.
func (n *Node) lateCalls(now time.Time) []*call {
	var late []*call
	for _, c := range n.calls {
		if !c.limit.After(now) {
			late = append(late, c)
		}
	}
	return late
}

func (n *Node) stepOperations(now time.Time) {
	for i := 0; i < len(n.ops); i++ { // an operation may start others
		n.ops[i].sendReady(now)
	}
	n.ops = slices.DeleteFunc(n.ops, op.Over)
}

// Wake returns the time of the next Poll if no answer and no new operation comes before.
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

// maxGroups bounds the groups of a contact: a node that appears at ever new addresses would
// otherwise collect groups without end.
const maxGroups = 8

// Answer takes the answer to a call. near are groups of the node that the sender saw during the
// exchange and the contact did not list yet. An answer after Fail, or a second one, is dropped.
func (n *Node) Answer(id uint64, r *Response, near []Group, now time.Time) {
	i := n.callIndex(id)
	if i < 0 {
		return
	}
	c := n.calls[i]
	n.calls = slices.Delete(n.calls, i, i+1)
	n.rtts.addDuration(now.Sub(c.sent))
	n.tally.Answered++
	to := c.to
	// The node's own contact replaces the one that others passed on: its version may be made up.
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
	n.noteAnswer(to, now)
	c.op.handleAnswer(c, r, now)
}

// Fail ends a call without a usable answer: the node did not answer, or answered something else.
func (n *Node) Fail(id uint64, now time.Time) {
	if i := n.callIndex(id); i >= 0 {
		n.failCall(n.calls[i], now)
	}
}

// callIndex returns the index of a call among those in flight, -1 if it is not there.
func (n *Node) callIndex(id uint64) int {
	for i, c := range n.calls {
		if c.id == id {
			return i
		}
	}
	return -1
}

func (n *Node) failCall(c *call, now time.Time) {
	i := n.callIndex(c.id)
	n.calls = slices.Delete(n.calls, i, i+1)
	n.tally.Failed++
	n.absent.addNode(c.to.ID, now)
	if gone := n.table.noteFailure(c.to.ID, now); gone != nil {
		n.lives.addDeath(gone)
	} else if n.table.failedOnce(c.to.ID) && len(n.doubted) < maxDoubted {
		// A second request soon decides whether the contact is gone; waiting for the next lookup
		// would leave it in the table as if alive.
		again := now.Add(doubtFor)
		n.doubted = append(n.doubted, doubt{c.to, again})
		if again.Before(n.upkeep.next) {
			n.upkeep.next = again
		}
	}
	c.op.handleFailure(c, now)
}

// doubt is a contact that failed once and the time at which it is asked again.
type doubt struct {
	*Contact
	at time.Time
}

const (
	doubtFor   = 30 * time.Second
	maxDoubted = 64
)

// noteAnswer records that a node answered.
func (n *Node) noteAnswer(c *Contact, now time.Time) {
	if n.table.noteAnswer(c, now) {
		if n.table.size < 2*n.cfg.K {
			n.upkeep.next = time.Time{}
		}
		n.remembered = slices.DeleteFunc(n.remembered, func(r *Contact) bool { return r.ID == c.ID })
		n.handOver(c, now)
	}
}

// Hear notes a node that may exist: it sent a request, or another node or gossip names it. It is
// pinged once there is time and a place in the table, unless it failed to answer recently.
func (n *Node) Hear(c *Contact, now time.Time) {
	const most = 64
	if len(n.heard) < most && n.table.hasRoom(c) && !n.probing[c.ID] && !n.absent.hasNode(c.ID, now) &&
		!slices.ContainsFunc(n.heard, func(h *Contact) bool { return h.ID == c.ID }) {
		n.heard = append(n.heard, c)
		n.upkeep.next = time.Time{}
	}
}

// absent holds the nodes that did not answer recently, so that they are not pinged each time other
// nodes name them.
type absent struct {
	last [64]struct {
		id   uint64 // the first 8 bytes
		when int64  // Unix ms
	}
	at int
}

const absentFor = 5 * time.Minute

func (a *absent) addNode(id ID, now time.Time) {
	a.last[a.at].id, a.last[a.at].when = binary.BigEndian.Uint64(id[:]), now.UnixMilli()
	a.at = (a.at + 1) % len(a.last)
}

func (a *absent) hasNode(id ID, now time.Time) bool {
	first := binary.BigEndian.Uint64(id[:])
	for i := range a.last {
		if a.last[i].id == first && now.UnixMilli()-a.last[i].when < absentFor.Milliseconds() {
			return true
		}
	}
	return false
}

// Join adds the nodes to start from: those known at the last start and those that the operator
// names. The node looks up its own id, and then the distant buckets.
func (n *Node) Join(known []*Contact) {
	for _, c := range known {
		if c.ID != n.self.ID && !slices.ContainsFunc(n.remembered, func(r *Contact) bool { return r.ID == c.ID }) {
			n.remembered = append(n.remembered, c)
		}
	}
	n.upkeep.startJoin()
}

// Settle fills the table of a new node at once: each contact counts as if it had just answered
// after the time that took returns, by the same code path as answers, and upkeep continues as for a
// node that joined long ago. It is for simulations of networks that are too large to let each node
// join. A real node has to ask: see Join.
func (n *Node) Settle(known []*Contact, took func(*Contact) time.Duration, now time.Time) {
	for _, c := range known {
		n.rtts.addDuration(took(c))
		n.noteAnswer(c, now)
	}
	u := &n.upkeep
	u.joining, u.shaken = len(joins)-1, true
	u.selfAt, u.next = n.randomPhase(n.cfg.Self, now), time.Time{}
	for i := range n.table.buckets {
		n.table.buckets[i].looked = n.randomPhase(n.cfg.Refresh, now).Add(-n.cfg.Refresh).UnixMilli()
	}
}

// randomPhase returns a random time within the next d.
func (n *Node) randomPhase(d time.Duration, now time.Time) time.Time {
	return now.Add(time.Duration(n.cfg.Rand.Float64() * float64(d)))
}

// Forget removes a node from the table, and the values that it published from the store.
func (n *Node) Forget(id ID) {
	n.table.removeNode(id)
	n.remembered = slices.DeleteFunc(n.remembered, func(c *Contact) bool { return c.ID == id })
	n.store.dropPublisher(id)
}

// Contacts returns all contacts of the table, those that answered last first. Saved to disk they
// are the argument of Join after a restart.
func (n *Node) Contacts() []*Contact {
	var all []entry
	n.table.eachContact(func(e *entry) { all = append(all, *e) })
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

// Buckets returns the number of contacts that share 0, 1, 2… leading bits with this node.
func (n *Node) Buckets() []int {
	out := make([]int, len(n.table.buckets))
	for i := range out {
		out[i] = len(n.table.buckets[i].live)
	}
	return out
}

// Tally counts the events of a node since its start.
type Tally struct {
	Sent, Answered, Failed, Soft int64
	// Lookups for values: how many found one, how many did not, how many of both took a second
	// path; their requests and hops.
	Found, Missed, Second, RPCs, Hops int64
	// Records that this node refused, by Code.
	Refuse [TooFar + 1]int64
}
