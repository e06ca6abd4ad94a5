package kademlia

import (
	"bytes"
	"errors"
	"time"

	"agentsite/peering/kademlia/wire"
)

var errNothing = errors.New("nothing is stored here")

// Serve answers a request of another node; from is nil if the sender is unknown. The caller has to limit
// the size of requests (the codec does) and their rate.
func (n *Node) Serve(from *Contact, r *Request, now time.Time) *Response {
	out := &Response{}
	if from != nil {
		n.Hear(from, now)
	}
	if len(r.Targets) > 0 {
		out.Nodes = n.answerNodes(r.Targets[0], from)
	}
	switch r.Kind {
	case Get:
		// bytes that remain in a message after the largest possible list of nodes
		room := wire.MaxBytes - wire.MaxNodes*(len(ID{})+2+wire.MaxNodeBytes) - len(r.Targets)*(wire.MaxValues*2+1) - 8
		out.Found = make([][][]byte, len(r.Targets))
		for i, key := range r.Targets {
			for _, v := range n.store.getValues(key, now, n.cfg.Rand) {
				if room -= len(v.Bytes); room < 0 {
					return out
				}
				out.Found[i] = append(out.Found[i], v.Bytes)
			}
		}
	case Store:
		out.Codes = make([]Code, len(r.Records))
		for i, rec := range r.Records {
			out.Codes[i] = n.storeRecord(rec, now)
			if out.Codes[i] != Stored {
				n.tally.Refuse[out.Codes[i]]++
			}
		}
	}
	return out
}

// answerNodes returns at most k nodes nearest to a target for an answer to from, without from itself. It
// names at most Config.GroupAnswer of one group, because otherwise a node that names many of its own could
// fill the table of the asking node.
func (n *Node) answerNodes(target ID, from *Contact) []*Contact {
	for most := n.cfg.K; ; most = n.cfg.K + spares {
		var groups groupCount
		all := n.table.nearestContacts(target, most, func(e *entry) bool { return from == nil || e.ID != from.ID })
		out := all[:0]
		for _, c := range all {
			if len(out) < n.cfg.K && groups.admitContact(c, n.cfg.GroupAnswer) {
				out = append(out, c)
			}
		}
		if len(out) == len(all) || most > n.cfg.K {
			return out
		}
	}
}

// storeRecord validates and stores a record that another node sent, or that this node publishes.
func (n *Node) storeRecord(r Record, now time.Time) Code {
	for _, have := range n.store.keys[r.Key] {
		if string(have.Bytes) == string(r.Value) && have.Expires.After(now) {
			return Stored // identical to a stored value: skip the expensive check of its signature
		}
	}
	if n.tooFar(r.Key) {
		return TooFar
	}
	e, err := n.validateValue(r.Key, r.Value)
	if err != nil {
		return Invalid
	}
	// The copy releases the received message, of which the value is a part.
	return n.store.putValue(r.Key, Value{e, bytes.Clone(r.Value)}, n.publisherShare(), now)
}

// tooFar reports whether so many known nodes are nearer to a key (Store.Rank × k) that no lookup of it
// would ask this node.
func (n *Node) tooFar(key ID) bool {
	limit := n.cfg.Store.Rank * n.cfg.K
	if n.table.size < limit {
		return false
	}
	near := n.table.nearestContacts(key, limit, nil)
	return len(near) == limit && Nearer(key, near[limit-1].ID, n.self.ID)
}

// publisherShare returns how many records of one publisher this node stores: four times its expected share
// of the records of a publisher with Store.Agents keys, plus Store.Publisher.
func (n *Node) publisherShare() int {
	return int(4*float64(n.cfg.Store.Agents)*n.regionShare()) + n.cfg.Store.Publisher
}

// Keep stores a record that was saved before a restart. It validates the record like one from another node.
func (n *Node) Keep(r Record, now time.Time) Code { return n.storeRecord(r, now) }

// Kept is a stored record with its properties, for saving to disk.
type Kept struct {
	Record
	Entry
}

// Changed returns the records that were stored since the last call, in no order. The caller saves them to
// disk.
func (n *Node) Changed() []Kept {
	var out []Kept
	for key := range n.store.dirty {
		for _, v := range n.store.keys[key] {
			out = append(out, Kept{Record{Key: key, Value: v.Bytes}, v.Entry})
		}
	}
	clear(n.store.dirty)
	return out
}
