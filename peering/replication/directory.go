package replication

import "agentsite/internal/record"

// Directory receives the agents of other portals that are held here. It reads those that the Replica held
// at the start by itself. It decides which of them can be found, by the portal's card, head, policy and
// quarantine, and hides the agents of a portal when its head expires; it tracks that time by itself. Its
// methods are safe for concurrent use; those about one portal are called one after the other. None of them
// fails: an agent that cannot be added is left out, and is read again from the Replica when Changed is
// called for its portal.
type Directory interface {
	// Put adds agents' records of a portal that a Gate admitted, the Replica keeps, and a head covers.
	// Tombstones remove their agents. One call with many records is much faster than a call for each.
	Put(portal record.PortalID, list []*record.Record)
	// Remove removes agents by their network ids because they are no longer held: the head does not cover
	// them, or the quota is smaller now.
	Remove(portal record.PortalID, ids []string)
	// Clear discards everything received for a portal, because the records held have been replaced. The
	// directory then reads the records that the head covers from the Replica again.
	Clear(portal record.PortalID)
	// Changed reports that a portal's card, head, policy or quarantine may have changed: it has another
	// address, a new card, was denied, quarantined, released or deleted. The call is cheap if nothing
	// changed.
	Changed(portal record.PortalID)
}
