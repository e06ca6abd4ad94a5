package hub

import (
	"context"
	"time"

	"agentsite/internal/federation"
)

// Network gives access to the replicated agents of other portals. The package that holds the replica
// puts those that may be found into the index with RemoteAgents.Learn.
type Network interface {
	// Load puts all replicated agents into the index. It is called once, at the start.
	Load(ctx context.Context) error
	// Find returns an agent of another portal by its name there and that portal's host; a NotFound fault
	// if the agent is unknown or blocked.
	Find(ctx context.Context, name, portal string) (Agent, error)
	// Source returns the portal that lists an agent of another portal. It reads only memory.
	Source(a Agent) Source
	// Record returns the evidence for an agent of any portal; a NotFound fault if it is no longer replicated. prove
	// adds the proof that the head covers the record, which takes long for large portals.
	Record(ctx context.Context, a Agent, prove bool) (Evidence, error)
	// Portals lists the other portals with agents in the index, ordered by host.
	Portals() []Source
	// Coverage returns how much of the network the index holds; portals restricts it to these hosts (""
	// is this portal). It is cheap enough for every search.
	Coverage(portals []string) federation.Coverage
}

// Source is the portal that lists an agent, and the evidence for it.
type Source struct {
	// Portal is the portal's host, URL its origin, Name its display name, and ID its network id.
	Portal, URL, Name, ID string
	// Verified is true if the portal's key signed the record, its domain was seen to serve that key, and
	// its newest head is valid.
	Verified bool
	// Record is the hash of the signed record; empty for an agent of this portal.
	Record string
	// HeadIssued is the time at which the portal signed its newest known head; zero for this portal.
	HeadIssued time.Time
	// Silent is true if the portal did not answer the last requests of this portal.
	Silent bool
	// Sought is the time at which a lookup of one of the portal's agents found the portal's address in
	// the DHT; zero if the portal is known in another way, or after a restart.
	Sought time.Time
	// Also are the hosts of other portals that list the same agent.
	Also []string
}

// HeadAge returns the age of the portal's head at now, 0 for this portal.
func (s Source) HeadAge(now time.Time) time.Duration {
	if s.HeadIssued.IsZero() {
		return 0
	}
	return max(now.Sub(s.HeadIssued), 0)
}

// Evidence is what a reader needs to verify that a portal lists an agent without trusting this portal.
// See docs/design/records.md.
type Evidence struct {
	// Card, Head and Record are signed records in their wire form. Proof shows that the head covers the
	// record; nil if it was not asked for or the portal's log is not fully replicated here.
	Card, Head, Record, Proof []byte
	// Hash, Issued and Expires are those of the record.
	Hash            string
	Issued, Expires time.Time
	// HeadHash, HeadIssued, HeadExpires, HeadSeq and HeadCount are those of the head.
	HeadHash                string
	HeadIssued, HeadExpires time.Time
	HeadSeq, HeadCount      int64
	// Key is the id of the key that signed the record.
	Key string
	// Endpoints are the agent's addresses in its record.
	Endpoints []Address
	// CardURL is the address of the agent's own A2A card, if its record has one.
	CardURL string
	// Terms and Pricing are texts of the agent's portal, not checked here.
	Terms, Pricing string
}

// Address is the URL and the protocol of one endpoint of an agent.
type Address struct{ Protocol, URL string }
