package kademlia

import (
	"bytes"
	"errors"
	"time"

	"agentsite/peering/kademlia/wire"
)

var errNothing = errors.New("nothing is stored here")

// Serve answers a request of another node, nil if it is not known who that is.
// What it asks for is bounded by the codec; how often it may ask, by the caller.
func (n *Node) Serve(from *Contact, r *Request, now time.Time) *Response {
	out := &Response{}
	if from != nil {
		n.Hear(from, now)
	}
	if len(r.Targets) > 0 {
		out.Nodes = n.near(r.Targets[0], from)
	}
	switch r.Kind {
	case Get:
		// What is left of a message once its nodes are in it.
		room := wire.MaxBytes - wire.MaxNodes*(len(ID{})+2+wire.MaxNodeBytes) - len(r.Targets)*(wire.MaxValues*2+1) - 8
		out.Found = make([][][]byte, len(r.Targets))
		for i, key := range r.Targets {
			for _, v := range n.shelf.get(key, now, n.cfg.Rand) {
				if room -= len(v.Bytes); room < 0 {
					return out
				}
				out.Found[i] = append(out.Found[i], v.Bytes)
			}
		}
	case Store:
		out.Codes = make([]Code, len(r.Records))
		for i, rec := range r.Records {
			out.Codes[i] = n.keep(rec, now)
			if out.Codes[i] != Stored {
				n.tally.Refuse[out.Codes[i]]++
			}
		}
	}
	return out
}

// near returns the nodes nearest to a target for an answer to from: few of one
// group, as one that names many of its own could fill the table of who asks.
func (n *Node) near(target ID, from *Contact) []*Contact {
	for most := n.cfg.K; ; most = n.cfg.K + spares {
		var groups groupCount
		all := n.table.nearest(target, most, func(e *entry) bool { return from == nil || e.ID != from.ID })
		out := all[:0]
		for _, c := range all {
			if len(out) < n.cfg.K && groups.admit(c, n.cfg.GroupAnswer) {
				out = append(out, c)
			}
		}
		if len(out) == len(all) || most > n.cfg.K {
			return out
		}
	}
}

// keep stores a record that somebody brought.
func (n *Node) keep(r Record, now time.Time) Code {
	for _, have := range n.shelf.keys[r.Key] {
		if string(have.Bytes) == string(r.Value) && have.Expires.After(now) {
			return Stored // the very same, which costs no signature
		}
	}
	if n.tooFar(r.Key) {
		return TooFar
	}
	e, err := n.validate(r.Key, r.Value)
	if err != nil {
		return Invalid
	}
	// A copy: what came is a part of a message, which would stay as long as it.
	return n.shelf.put(r.Key, Value{e, bytes.Clone(r.Value)}, n.share(), now)
}

// tooFar reports whether so many nodes are nearer to a key that nobody will
// look for it here.
func (n *Node) tooFar(key ID) bool {
	limit := n.cfg.Shelf.Rank * n.cfg.K
	if n.table.size < limit {
		return false
	}
	near := n.table.nearest(key, limit, nil)
	return len(near) == limit && Nearer(key, near[limit-1].ID, n.self.ID)
}

// share is how many records one publisher may have here: four times what falls
// to this node of as many as a publisher may have, and some.
func (n *Node) share() int {
	return int(4*float64(n.cfg.Shelf.Agents)*n.region()) + n.cfg.Shelf.Publisher
}

// Keep puts a record on the shelf that was kept over a restart.
func (n *Node) Keep(r Record, now time.Time) Code { return n.keep(r, now) }

// Kept is a record on the shelf.
type Kept struct {
	Record
	Entry
}

// Changed returns what is new on the shelf since it was last called, in no
// order.
func (n *Node) Changed() []Kept {
	var out []Kept
	for key := range n.shelf.dirty {
		for _, v := range n.shelf.keys[key] {
			out = append(out, Kept{Record{Key: key, Value: v.Bytes}, v.Entry})
		}
	}
	clear(n.shelf.dirty)
	return out
}
