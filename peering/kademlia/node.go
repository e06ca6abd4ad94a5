package kademlia

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
	"time"
)

// Node is one node of the DHT: a state machine without I/O, see the package comment. Its methods are not
// safe for concurrent use.
type Node struct {
	cfg   Config
	self  *Contact
	table *table
	store valueStore
	size  estimate
	rtts  times
	lives lives

	// remembered are contacts from before a restart that have not answered yet. Lookups use them while the
	// table is small.
	remembered []*Contact
	heard      []*Contact // nodes to ping, see Hear
	probing    map[ID]bool
	doubted    []doubt // contacts to ping again, by time
	absent     absent

	ops    []op
	calls  []*call // requests in flight, in the order they were sent
	lastID uint64
	out    []Call

	upkeep upkeep
	tally  Tally
}

// op is an operation that consists of requests: a Lookup, a Put or the pings.
type op interface {
	// sendReady queues the requests that may be sent at this time.
	sendReady(now time.Time)
	Over() bool
	handleAnswer(c *call, r *Response, now time.Time)
	handleFailure(c *call, now time.Time)
}

// call is a request in flight, until its answer or its hard limit.
type call struct {
	id    uint64
	to    *Contact
	op    op
	sent  time.Time
	limit time.Time // the soft limit; once soft is true, the hard limit
	soft  bool

	// The fields of a request that belongs to a walk; walk is nil for other requests.
	walk  *walk
	path  *path
	depth uint8
	// landed is true when the request no longer counts in path.flight, because it is late or has ended.
	landed bool
	// The fields of a request of a Put after its walk: indexes of the records in the request.
	records []int
}

// Call is a request that the caller of Poll has to send to another node.
type Call struct {
	// ID identifies the request; it is passed back to Answer or Fail.
	ID      uint64
	To      *Contact
	Request Request
}

// New returns a node with the contact self and an empty table. It sends nothing until Join and Poll are
// called.
func New(self *Contact, cfg Config) *Node {
	n := &Node{cfg: cfg.withDefaults(), self: self, probing: make(map[ID]bool)}
	n.table = newTable(self.ID, &n.cfg)
	n.store.cfg = n.cfg.Store
	return n
}

// Self returns the node's own contact. Renew replaces it by a newer version with the same id.
func (n *Node) Self() *Contact      { return n.self }
func (n *Node) Renew(self *Contact) { n.self = self }
func (n *Node) Tally() Tally        { return n.tally }
func (n *Node) Held() (records int) { return n.store.count }
func (n *Node) HeldBytes() int64    { return n.store.bytes }
func (n *Node) Known() (nodes int)  { return n.table.size }

// Size estimates the number of nodes in the network, including this one. As long as the table holds fewer
// than k contacts, these are assumed to be all.
func (n *Node) Size() float64 {
	if n.table.size < n.cfg.K {
		return float64(n.table.size + 1)
	}
	if guess, ok := n.size.medianGuess(); ok {
		return max(guess, float64(n.cfg.K))
	}
	return max(guessSize(n.self.ID, n.table.nearestContacts(n.self.ID, n.cfg.K, nil)), float64(n.cfg.K))
}

// regionShare returns the fraction of the id space around any point that is expected to contain k nodes.
func (n *Node) regionShare() float64 { return min(1, float64(n.cfg.K)/n.Size()) }

// sendRequest queues a request for the next Poll and sets its time limit.
func (n *Node) sendRequest(c *call, r Request, now time.Time) {
	n.lastID++
	c.id, c.sent, c.limit = n.lastID, now, now.Add(n.rtts.softLimit(&n.cfg))
	if c.walk == nil {
		// Requests outside a walk have only the hard limit, because no other request is sent in parallel
		// when they are late.
		c.soft, c.limit = true, now.Add(n.cfg.Hard)
	} else {
		c.op = c.walk.op
	}
	n.calls = append(n.calls, c)
	n.out = append(n.out, Call{c.id, c.to, r})
	n.tally.Sent++
}

// Poll advances all operations to the time now and returns the requests to send. The caller owns the slice.
// It must be called at the time that Wake returns, and after each Answer, Fail or new operation.
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

// lateCalls returns the requests in flight past their limit, in the order they were sent.
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
	for i := 0; i < len(n.ops); i++ { // re-read the length: operations may append others
		n.ops[i].sendReady(now)
	}
	n.ops = slices.DeleteFunc(n.ops, op.Over)
}

// Wake returns the time at which Poll must be called again, if no answer arrives and no operation starts
// earlier.
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

// maxGroups bounds the groups of a contact. A node that keeps changing its addresses would otherwise
// collect groups without limit.
const maxGroups = 8

// Answer passes the answer to a request. near are groups of the node that the transport observed during the
// exchange; they are added to the contact. An answer after Fail, or a second one, is ignored.
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
	// The contact that the node sent of itself replaces the one that other nodes passed on, whatever the
	// versions: a high version may be forged.
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

// Fail ends a request without a usable answer: the node did not answer, or the answer was invalid. An
// unknown id is ignored.
func (n *Node) Fail(id uint64, now time.Time) {
	if i := n.callIndex(id); i >= 0 {
		n.failCall(n.calls[i], now)
	}
}

// callIndex returns the index of a request in n.calls, -1 if it is not in flight.
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
		// The contact is pinged again soon to decide whether it is gone. Waiting for the next lookup would
		// keep it in the table as if it were alive.
		again := now.Add(doubtFor)
		n.doubted = append(n.doubted, doubt{c.to, again})
		if again.Before(n.upkeep.next) {
			n.upkeep.next = again
		}
	}
	c.op.handleFailure(c, now)
}

// doubt is a contact that failed once and the time at which it is pinged again.
type doubt struct {
	*Contact
	at time.Time
}

const (
	doubtFor   = 30 * time.Second
	maxDoubted = 64
)

// noteAnswer updates the table after a node answered. A node that is new in the table gets the records that
// it should store.
func (n *Node) noteAnswer(c *Contact, now time.Time) {
	if n.table.noteAnswer(c, now) {
		if n.table.size < 2*n.cfg.K {
			n.upkeep.next = time.Time{}
		}
		n.remembered = slices.DeleteFunc(n.remembered, func(r *Contact) bool { return r.ID == c.ID })
		n.handOver(c, now)
	}
}

// Hear reports a node that may exist, because it sent a request or was named by another node or by gossip.
// It is pinged later, unless it failed recently or the table has no place for it; only an answer brings it
// into the table.
func (n *Node) Hear(c *Contact, now time.Time) {
	const most = 64
	if len(n.heard) < most && n.table.hasRoom(c) && !n.probing[c.ID] && !n.absent.hasNode(c.ID, now) &&
		!slices.ContainsFunc(n.heard, func(h *Contact) bool { return h.ID == c.ID }) {
		n.heard = append(n.heard, c)
		n.upkeep.next = time.Time{}
	}
}

// absent is a ring buffer of the last 64 nodes that failed, so that they are not pinged each time other
// nodes name them.
type absent struct {
	last [64]struct {
		id   uint64 // first 8 bytes of the id
		when int64  // time of the failure, in Unix ms
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

// Join starts to join the network by the given contacts: those saved before a restart and those that the
// operator configured. The node looks up its own id several times and refreshes its buckets. Contacts that
// were passed before are ignored.
func (n *Node) Join(known []*Contact) {
	for _, c := range known {
		if c.ID != n.self.ID && !slices.ContainsFunc(n.remembered, func(r *Contact) bool { return r.ID == c.ID }) {
			n.remembered = append(n.remembered, c)
		}
	}
	n.upkeep.startJoin()
}

// Settle fills the table of a new node at once: each contact counts as if it had just answered after the
// time that took returns, by the same code as real answers, and upkeep goes on as for a node that joined
// long ago. It is for simulations of networks that are too large to let each node join. A real node must
// call Join instead.
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

// randomPhase returns a random time between now and now+d.
func (n *Node) randomPhase(d time.Duration, now time.Time) time.Time {
	return now.Add(time.Duration(n.cfg.Rand.Float64() * float64(d)))
}

// Forget removes a node from the table and the values that it published from the store, for a node that is
// no longer admitted.
func (n *Node) Forget(id ID) {
	n.table.removeNode(id)
	n.remembered = slices.DeleteFunc(n.remembered, func(c *Contact) bool { return c.ID == id })
	n.store.dropPublisher(id)
}

// Contacts returns all contacts of the table, the most recent answer first. Saved to disk, they are the
// argument of Join after a restart.
func (n *Node) Contacts() []*Contact {
	var all []entry
	n.table.eachContact(func(e *entry) { all = append(all, *e) })
	sort.Slice(all, func(i, j int) bool { // sort.Slice adds less code to the binary than slices.SortFunc
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

// Buckets returns the number of contacts in each bucket; index i is for contacts that share i leading bits
// with this node.
func (n *Node) Buckets() []int {
	out := make([]int, len(n.table.buckets))
	for i := range out {
		out[i] = len(n.table.buckets[i].live)
	}
	return out
}

// Tally counts the events of a node since its start, for display and measurements.
type Tally struct {
	Sent, Answered, Failed, Soft int64
	// Lookups of values: how many found one, how many did not, how many of both used a second path; the
	// requests and hops of all.
	Found, Missed, Second, RPCs, Hops int64
	// Records that this node refused to store, by Code.
	Refuse [TooFar + 1]int64
}
