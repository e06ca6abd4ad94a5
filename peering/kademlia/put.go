package kademlia

import (
	"slices"
	"time"

	"agentsite/peering/kademlia/wire"
)

// Put stores records at the nodes nearest to their keys.
//
// Nodes in the region around a key (in which k nodes are expected by the estimated size of the network)
// receive the record in the same request that asks them for nearer nodes ("optimistic provide"). All nodes
// of the region receive it, not only the k nearest, so that an attacker that generates twenty ids next to a
// key does not displace the honest nodes (SR-DHT-Store, arXiv 2505.01139).
type Put struct {
	walk
	records []Record
	acks    []int
	given   map[ID]bool // nodes that received the record during the walk
	// left are the requests that still have to be sent, in order. They are planned when the walk is over.
	left   []delivery
	flight int
	// more returns the records with keys that share at least bits leading bits with the first key. It is
	// nil except for putRegion.
	more   func(bits int) []Record
	spread bool // the walk is over and left is planned
	done   bool
}

// delivery is a Store request to one node; records are indexes of Put.records.
type delivery struct {
	to      *Contact
	records []int
}

const (
	// maxGiving bounds the concurrent Store requests of one Put after its walk.
	maxGiving = 8
	// maxGiven bounds the bytes of the records in one Store request.
	maxGiven = wire.MaxBytes / 2
)

// Put starts to store a record at the nodes nearest to its key. It goes on as the Node is polled.
func (n *Node) Put(r Record, now time.Time) *Put {
	p := &Put{walk: *n.newWalk(r.Key, n.cfg.K, now), records: []Record{r}, acks: make([]int, 1),
		given: make(map[ID]bool)}
	p.region = n.regionShare()
	p.request = func(c *cand) Request {
		if distanceShare(r.Key, c.ID) > p.region {
			return Request{Kind: FindNode, Targets: []ID{r.Key}}
		}
		p.given[c.ID] = true
		return Request{Kind: Store, Targets: []ID{r.Key}, Records: p.records}
	}
	p.op = p
	n.ops = append(n.ops, p)
	return p
}

// putRegion starts to store all own records with keys in the region around key, with one walk for all of
// them. Once the nodes near key are known, it calls more with the number of leading bits that a record's
// key has to share with key, so that the nodes nearest to it are among the known ones.
func (n *Node) putRegion(key ID, more func(bits int) []Record, now time.Time) *Put {
	p := &Put{walk: *n.newWalk(key, 3*n.cfg.K, now), more: more}
	p.region = n.regionShare()
	p.request = findNode(key)
	p.op = p
	n.ops = append(n.ops, p)
	return p
}

// giveRecords starts to send records to one node, without a walk.
func (n *Node) giveRecords(to *Contact, records []Record, now time.Time) {
	p := &Put{walk: walk{node: n, began: now, ended: true}, records: records, acks: make([]int, len(records)),
		spread: true}
	p.op = p
	all := make([]int, len(records))
	for i := range all {
		all[i] = i
	}
	p.deliverRecords(to, all)
	n.ops = append(n.ops, p)
}

// Stored returns the number of nodes that have stored the record; for several records, the smallest such
// number.
func (p *Put) Stored() int {
	if len(p.acks) == 0 {
		return 0
	}
	return slices.Min(p.acks)
}

// RPCs returns the number of requests sent so far.
func (p *Put) RPCs() int { return p.rpcs }

// Enough reports whether Config.Acks nodes have stored the record, so that lookups will find it, or the Put
// is over. The Put continues until Over.
func (p *Put) Enough() bool { return p.done || len(p.acks) > 0 && p.Stored() >= p.node.cfg.Acks }

// Over reports whether the Put has ended: all its requests were answered or failed.
func (p *Put) Over() bool { return p.done }

func (p *Put) until() time.Time {
	if p.spread {
		return p.began.Add(time.Hour) // far away, because each request has its own limit
	}
	return p.began.Add(p.node.cfg.Whole)
}

func (p *Put) sendReady(now time.Time) {
	if p.done {
		return
	}
	p.walk.stepWalk(now)
	if !p.ended {
		return
	}
	if !p.spread {
		p.spread = true
		p.planDeliveries(now)
	}
	for len(p.left) > 0 && p.flight < maxGiving {
		d := p.left[0]
		p.left = p.left[1:]
		p.flight++
		p.rpcs++
		recs := make([]Record, len(d.records))
		for i, at := range d.records {
			recs[i] = p.records[at]
		}
		p.node.sendRequest(&call{to: d.to, op: p, records: d.records}, Request{Kind: Store, Records: recs}, now)
	}
	p.done = len(p.left) == 0 && p.flight == 0 && p.calls == 0
}

// planDeliveries fills p.left once the walk is over: each record goes to the k nodes nearest to its key and
// to all nodes of the region. A record also goes into the store of this node, if this node is near enough.
func (p *Put) planDeliveries(now time.Time) {
	n := p.node
	n.addSizeGuess(&p.walk, now)
	near := p.nearestAnswered()
	if p.more != nil {
		p.records = p.more(p.coveredBits(near))
		p.acks = make([]int, len(p.records))
	}
	to := make(map[*Contact][]int)
	for i, r := range p.records {
		if n.storeRecord(r, now) == Stored {
			p.acks[i]++ // this node stores the record too, if it is among the nearest
		}
		for rank, c := range p.sortByDistance(r.Key, near) {
			if rank >= n.cfg.K && distanceShare(r.Key, c.ID) > p.region {
				break
			}
			if !p.given[c.ID] {
				to[c] = append(to[c], i)
			}
		}
	}
	for _, c := range near { // ordered by distance, because the order of a map is random
		if len(to[c]) > 0 {
			p.deliverRecords(c, to[c])
		}
	}
}

// sortByDistance returns a copy of near, sorted by distance from key.
func (p *Put) sortByDistance(key ID, near []*Contact) []*Contact {
	out := slices.Clone(near)
	slices.SortFunc(out, func(a, b *Contact) int { return compareDistance(key, a.ID, b.ID) })
	return out
}

// coveredBits returns how many leading bits a key must share with p.target, so that the k nodes nearest to
// the key are all among near.
func (p *Put) coveredBits(near []*Contact) int {
	k := p.node.cfg.K
	if len(near) == 0 || p.node.table.size < 2*k {
		return 0 // near contains all nodes of a small network
	}
	// All nodes nearer than the last one are known, so all nodes are known that share more bits
	// with the target than it does. If there are k of them, they are the nearest to each key that
	// shares as many bits.
	bits, n := commonBits(p.target, near[len(near)-1].ID)+1, 0
	for _, c := range near {
		if commonBits(p.target, c.ID) >= bits {
			n++
		}
	}
	if n >= k {
		return bits
	}
	return 8 * len(ID{}) // only a key that equals the target is covered
}

// deliverRecords appends the requests that pass the records to a node, split by the limits of a message.
func (p *Put) deliverRecords(to *Contact, records []int) {
	for len(records) > 0 {
		n, bytes := 0, 0
		for n < len(records) && n < wire.MaxRecords {
			if bytes += len(p.records[records[n]].Value) + len(ID{}) + 2; bytes > maxGiven && n > 0 {
				break
			}
			n++
		}
		p.left = append(p.left, delivery{to, records[:n]})
		records = records[n:]
	}
}

func (p *Put) handleAnswer(c *call, r *Response, now time.Time) {
	if c.walk != nil {
		if p.given[c.to.ID] {
			p.countAcks([]int{0}, r.Codes)
		}
		p.walk.takeAnswer(c, r.Nodes, now)
		return
	}
	p.flight--
	p.countAcks(c.records, r.Codes)
}

func (p *Put) countAcks(records []int, codes []Code) {
	for i, at := range records {
		if i < len(codes) && (codes[i] == Stored || codes[i] == Old) {
			p.acks[at]++
		}
	}
}

func (p *Put) handleFailure(c *call, _ time.Time) {
	if c.walk != nil {
		p.takeFailure(c)
		return
	}
	p.flight--
}
