package kademlia

import "agentsite/peering/kademlia/wire"

// Contact is another node. It is immutable; whoever holds one may keep it.
type Contact struct {
	ID ID
	// Node says where it is reached, signed by itself. It is carried, compared
	// and handed on here, never looked into.
	Node []byte
	// Address is where that is, for who sends the calls; empty where Node is.
	Address string
	// Version grows with each Node that it signs.
	Version int64
	// Groups are whom it may be run by, as far as can be told without asking it:
	// nodes of one group count as few. None is for those that are not counted,
	// such as all of one machine.
	Groups []Group
}

// Group is a hash of what nodes of one operator share: a registrable domain, a
// network of addresses.
type Group uint64

// Record is a value under a key.
type Record = wire.Record

// Kind is what a Request asks.
type Kind = wire.Kind

// Kinds of Request.
const (
	Ping     = wire.Ping
	FindNode = wire.FindNode
	Get      = wire.Get
	Store    = wire.Store
)

// Request is what one node asks of another.
type Request struct {
	Kind Kind
	// Targets are the keys of Get, at most wire.MaxTargets. The first of them,
	// of Store too if there is one, is what the nearest nodes are wanted of.
	Targets []ID
	// Records are those of Store, at most wire.MaxRecords.
	Records []Record
	// Known are contacts near the first target that the asking node has already,
	// nearest first, at most wire.MaxHave: an answer need not spell them out.
	Known []*Contact
}

// Response is what it answers.
type Response struct {
	// Self is what the node says of itself by now, nil for nothing new.
	Self *Contact
	// Nodes are the nearest to the first target that the other node knows, at
	// most k, in any order.
	Nodes []*Contact
	// Found has the values under each target of Get, in their order.
	Found [][][]byte
	// Codes says of each record of Store what became of it.
	Codes []Code
}

// Code is what became of a record that was to be stored.
type Code = wire.Code

// Codes of Store.
const (
	Stored  = wire.Stored  // or held already, just as it is
	Invalid = wire.Invalid // it is not what it has to be under that key
	Old     = wire.Old     // a newer one is held
	Full    = wire.Full    // its publisher, its key or this node has no room left
	TooFar  = wire.TooFar  // many others are nearer to the key
)
