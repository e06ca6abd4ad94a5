package kademlia

import "agentsite/peering/kademlia/wire"

// Contact is another node. It is immutable, so that it can be kept and shared.
type Contact struct {
	ID ID
	// Node is the node's address, signed by the node itself. This package carries, compares and
	// passes it on, but never parses it.
	Node []byte
	// Address is the network address for the transport that sends the calls; empty if Node holds
	// the address.
	Address string
	// Version grows with each Node value that the node signs.
	Version int64
	// Groups are the operators that may run the node, as far as its address shows: nodes of one
	// group count only up to a limit. Nodes without groups are not limited, such as all nodes of
	// one machine.
	Groups []Group
}

// Group is the hash of a property that nodes of one operator share: a registrable domain or a
// network of addresses.
type Group uint64

// Record is a value under a key.
type Record = wire.Record

// Kind is the kind of a Request.
type Kind = wire.Kind

// Kinds of Request.
const (
	Ping     = wire.Ping
	FindNode = wire.FindNode
	Get      = wire.Get
	Store    = wire.Store
)

// Request is a request of one node to another.
type Request struct {
	Kind Kind
	// Targets are the keys of Get, at most wire.MaxTargets. The answer names the nodes nearest to
	// the first target; Store may have one target for this.
	Targets []ID
	// Records are those of Store, at most wire.MaxRecords.
	Records []Record
	// Known are contacts near the first target that the asking node has already, nearest first, at
	// most wire.MaxHave: the answer names these by id alone, which is shorter.
	Known []*Contact
}

// Response is the answer to a Request.
type Response struct {
	// Self is the current contact of the answering node, nil if it has not changed.
	Self *Contact
	// Nodes are the nodes nearest to the first target that the answering node knows, at most k, in
	// any order.
	Nodes []*Contact
	// Found holds the values under each target of Get, in the order of the targets.
	Found [][][]byte
	// Codes holds the result for each record of Store, in the order of the records.
	Codes []Code
}

// Code is the result of storing a record.
type Code = wire.Code

// Codes of Store.
const (
	Stored  = wire.Stored  // or held already, unchanged
	Invalid = wire.Invalid // the value is not valid under that key
	Old     = wire.Old     // a newer version is held
	Full    = wire.Full    // no room left for its publisher, for its key or in this node
	TooFar  = wire.TooFar  // too many other nodes are nearer to the key
)
