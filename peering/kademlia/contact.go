package kademlia

import "agentsite/peering/kademlia/wire"

// Contact is another node. It must not be changed after it was passed to a Node, because nodes, lookups and
// answers share it.
type Contact struct {
	ID ID
	// Node is the node's address, signed by the node itself. This package carries, compares and
	// passes it on, but never parses it.
	Node []byte
	// Address is where the transport sends requests; empty if Node contains the address.
	Address string
	// Version is the version of Node; the node increases it with each one that it signs. A contact with a
	// lower version does not replace one in the table.
	Version int64
	// Groups are the properties by which contacts of one operator are recognized, derived from the address.
	// The limits Config.GroupBucket, GroupTable and GroupAnswer apply to each group. A contact without
	// groups, such as one on this machine, is not limited.
	Groups []Group
}

// Group is the hash of a property that nodes of one operator share: a registrable domain or a
// network of addresses.
type Group uint64

// Record is a value and the key under which it is stored.
type Record = wire.Record

// Kind selects the operation of a Request.
type Kind = wire.Kind

// Kinds of Request: Ping only asks for an answer, FindNode for the nodes nearest to a target, Get for
// values too; Store passes records to be stored.
const (
	Ping     = wire.Ping
	FindNode = wire.FindNode
	Get      = wire.Get
	Store    = wire.Store
)

// Request is a request of one node to another. The fields that its Kind does not use are empty.
type Request struct {
	Kind Kind
	// Targets are the keys of Get or the target of FindNode, at most wire.MaxTargets. The answer names the
	// nodes nearest to the first target. A Store may have one target for this purpose.
	Targets []ID
	// Records are the records of a Store, at most wire.MaxRecords.
	Records []Record
	// Known are contacts near the first target that the sender has already, nearest first, at most
	// wire.MaxHave. The answer names these by id alone, which is shorter.
	Known []*Contact
}

// Response is the answer to a Request. The fields that the Kind of the request does not use are empty.
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

// Code is the result of storing a record, one of the constants below.
type Code = wire.Code

// Results of storing a record, one for each record of a Store.
const (
	Stored  = wire.Stored  // stored now, or this value or one of the same version was stored before
	Invalid = wire.Invalid // the value is not valid under that key
	Old     = wire.Old     // a newer version is held
	Full    = wire.Full    // no room left for its publisher, for its key or in this node
	TooFar  = wire.TooFar  // too many other nodes are nearer to the key
)
