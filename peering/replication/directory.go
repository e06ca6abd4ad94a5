package replication

import "agentsite/internal/record"

// Directory receives the agents of other portals that are held here. It reads those that the Replica
// held at the start by itself. It decides which of them are found, by the portal's card, head, rule
// and standing, and hides the agents of a portal after its head has expired; it watches the time by
// itself. Its methods are safe for concurrent use; those about one portal are called one after the
// other. None of them fails: an agent that cannot be shown is left out, and is read again from the
// Replica when Changed is called for its portal.
type Directory interface {
	// Put adds agents' records of a portal that a Gate admitted, the Replica keeps, and a head covers.
	// Tombstones remove their agents. One call with many records is much faster than a call for each.
	Put(portal record.PortalID, list []*record.Record)
	// Remove removes agents, by their ids in the network, that are no longer held: the head does not cover
	// them, or the quota shrank.
	Remove(portal record.PortalID, ids []string)
	// Clear discards everything received for a portal, because the records held have been replaced. The
	// covered records are read again.
	Clear(portal record.PortalID)
	// Changed reports that a portal's card, head, rule or standing may have changed: it moved, was
	// renewed, denied, quarantined, released or forgotten. If nothing changed, the call is cheap.
	Changed(portal record.PortalID)
}
