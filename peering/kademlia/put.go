package kademlia

import (
	"slices"
	"time"

	"agentsite/peering/kademlia/wire"
)

// Put stores records at the nodes nearest to their keys.
//
// Nodes in the region around a key are given the record while they are asked
// who is near: those expected to be among the k nearest by the size of the
// network ("optimistic provide"). And all of them get it, not only the k nearest
// that were seen: twenty ids that somebody ground to be next to a key do not
// push the honest ones out (SR-DHT-Store, arXiv 2505.01139).
type Put struct {
	walk
	records []Record
	acks    []int
	given   map[ID]bool // those that were given the record of a single-key Put
	// left are the stores that wait, in order; nil until the nodes are known.
	left   []delivery
	flight int
	// more returns what else there is to be stored of what shares some bits with
	// the first key, for Put of a region.
	more   func(bits int) []Record
	spread bool // the walk is over
	done   bool
}

// delivery is records that go to one node in one request.
type delivery struct {
	to      *Contact
	records []int
}

const (
	// maxGiving is how many stores of one Put are in flight.
	maxGiving = 8
	// maxGiven bounds the bytes of one.
	maxGiven = wire.MaxBytes / 2
)

// Put begins to store a record.
func (n *Node) Put(r Record, now time.Time) *Put {
	p := &Put{walk: *n.newWalk(r.Key, n.cfg.K, now), records: []Record{r}, acks: make([]int, 1), given: make(map[ID]bool)}
	p.region = n.region()
	p.request = func(c *cand) Request {
		if apart(r.Key, c.ID) > p.region {
			return Request{Kind: FindNode, Targets: []ID{r.Key}}
		}
		p.given[c.ID] = true
		return Request{Kind: Store, Targets: []ID{r.Key}, Records: p.records}
	}
	p.op = p
	n.ops = append(n.ops, p)
	return p
}

// putRegion begins to store the records of a region of the space, from a key
// on: all that share so many bits with it that the nodes near them are known
// once those near the key are.
func (n *Node) putRegion(key ID, more func(bits int) []Record, now time.Time) *Put {
	p := &Put{walk: *n.newWalk(key, 3*n.cfg.K, now), more: more}
	p.region = n.region()
	p.request = findNode(key)
	p.op = p
	n.ops = append(n.ops, p)
	return p
}

// give begins to hand records to one node.
func (n *Node) give(to *Contact, records []Record, now time.Time) {
	p := &Put{walk: walk{node: n, began: now, ended: true}, records: records, acks: make([]int, len(records)), spread: true}
	p.op = p
	all := make([]int, len(records))
	for i := range all {
		all[i] = i
	}
	p.deliver(to, all)
	n.ops = append(n.ops, p)
}

// Stored returns how many nodes took the record; of several, that which fewest
// took.
func (p *Put) Stored() int {
	if len(p.acks) == 0 {
		return 0
	}
	return slices.Min(p.acks)
}

// RPCs returns how many requests were sent.
func (p *Put) RPCs() int { return p.rpcs }

// Enough reports whether so many nodes took it that it will be found, or all
// were asked. It goes on until it is Over.
func (p *Put) Enough() bool { return p.done || len(p.acks) > 0 && p.Stored() >= p.node.cfg.Acks }

// Over reports whether it has ended.
func (p *Put) Over() bool { return p.done }

func (p *Put) until() time.Time {
	if p.spread {
		return p.began.Add(time.Hour) // its calls end by themselves
	}
	return p.began.Add(p.node.cfg.Whole)
}

func (p *Put) step(now time.Time) {
	if p.done {
		return
	}
	p.walk.step(now)
	if !p.ended {
		return
	}
	if !p.spread {
		p.spread = true
		p.plan(now)
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
		p.node.send(&call{to: d.to, op: p, records: d.records}, Request{Kind: Store, Records: recs}, now)
	}
	p.done = len(p.left) == 0 && p.flight == 0 && p.calls == 0
}

// plan says who gets what once the nodes near the key are known.
func (p *Put) plan(now time.Time) {
	n := p.node
	n.learn(&p.walk, now)
	near := p.nearest()
	if p.more != nil {
		p.records = p.more(p.covered(near))
		p.acks = make([]int, len(p.records))
	}
	to := make(map[*Contact][]int)
	for i, r := range p.records {
		if n.keep(r, now) == Stored {
			p.acks[i]++ // this node may be among the nearest too
		}
		for rank, c := range p.holders(r.Key, near) {
			if rank >= n.cfg.K && apart(r.Key, c.ID) > p.region {
				break
			}
			if !p.given[c.ID] {
				to[c] = append(to[c], i)
			}
		}
	}
	for _, c := range near { // in order, as maps have none
		if len(to[c]) > 0 {
			p.deliver(c, to[c])
		}
	}
}

// holders returns the nodes by distance from a key.
func (p *Put) holders(key ID, near []*Contact) []*Contact {
	out := slices.Clone(near)
	slices.SortFunc(out, func(a, b *Contact) int { return compare(key, a.ID, b.ID) })
	return out
}

// covered returns how many bits a key has to share with the target for the k
// nodes nearest to it to be among those near the target.
func (p *Put) covered(near []*Contact) int {
	k := p.node.cfg.K
	if len(near) == 0 || p.node.table.size < 2*k {
		return 0 // near are all there are
	}
	// All nodes nearer than the last are known, so all that share more bits with
	// the target than it does. If these are k, they are nearer to each key that
	// shares as many than anybody else.
	bits, n := common(p.target, near[len(near)-1].ID)+1, 0
	for _, c := range near {
		if common(p.target, c.ID) >= bits {
			n++
		}
	}
	if n >= k {
		return bits
	}
	return 8 * len(ID{}) // the target only
}

// deliver queues records for a node, in as many requests as it takes.
func (p *Put) deliver(to *Contact, records []int) {
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

func (p *Put) answered(c *call, r *Response, now time.Time) {
	if c.walk != nil {
		if p.given[c.to.ID] {
			p.noted([]int{0}, r.Codes)
		}
		p.walk.answer(c, r.Nodes, now)
		return
	}
	p.flight--
	p.noted(c.records, r.Codes)
}

func (p *Put) noted(records []int, codes []Code) {
	for i, at := range records {
		if i < len(codes) && (codes[i] == Stored || codes[i] == Old) {
			p.acks[at]++
		}
	}
}

func (p *Put) failed(c *call, _ time.Time) {
	if c.walk != nil {
		p.fail(c)
		return
	}
	p.flight--
}
