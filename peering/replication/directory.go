package replication

import "agentsite/internal/record"

// Directory is told which agents of other portals are held here, but for those
// that the Replica held at the start, which it reads by itself. It decides
// what of them is found, by the portal's card, head, rule and standing, and
// folds away those of a portal whose head has ended; nobody has to tell it of
// time. Its methods are safe for concurrent use; those about one portal are
// called one after the other. None of them fails: what cannot be shown is left
// out, and is read again from the Replica when its portal is told of with
// Changed.
type Directory interface {
	// Put tells of agents' records of a portal that a Gate admitted, the Replica
	// keeps, and a head covers. Tombstones take theirs out. Many at once are much
	// faster than one by one.
	Put(portal record.PortalID, list []*record.Record)
	// Remove tells that agents, by their ids in the network, are held no more:
	// the head does not cover them, or the quota is less.
	Remove(portal record.PortalID, ids []string)
	// Clear tells that what is held of a portal is another: all that was told of
	// it is void, and what of it is covered is to be read again.
	Clear(portal record.PortalID)
	// Changed tells that a portal's card, head, rule or standing may be another
	// now: it moved, was renewed, denied, quarantined, released, forgotten.
	// Without news it costs little.
	Changed(portal record.PortalID)
}
