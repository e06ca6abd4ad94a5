package hub

import (
	"context"
	"time"

	"agentsite/internal/federation"
)

// Network knows the agents of other portals. Those that may be found stand in
// the index; their holder puts them there with Learn.
type Network interface {
	// Load learns all agents that are held, once, at the start.
	Load(ctx context.Context) error
	// Find returns an agent of another portal by its name there and the host of
	// that portal, as it is known here; a NotFound fault when it is not, or may
	// not be shown.
	Find(ctx context.Context, name, portal string) (Agent, error)
	// Source returns the origin of an agent of another portal. It reads only memory.
	Source(a Agent) Source
	// Record returns the evidence for an agent of any portal, with the proof that the head covers
	// it if prove is set, which takes a while for large portals; a NotFound fault when it is not
	// held any more.
	Record(ctx context.Context, a Agent, prove bool) (Evidence, error)
	// Portals are the other portals with agents in the index, by host.
	Portals() []Source
	// Coverage returns the part of the network that the index holds, of the given portals alone
	// ("" is this one) if there are any. It is cheap.
	Coverage(portals []string) federation.Coverage
}

// Source is the portal that lists an agent, and the evidence for it.
type Source struct {
	// Portal is the host of the portal, URL its origin, Name its display name, ID its id in the
	// network.
	Portal, URL, Name, ID string
	// Verified is true when the portal's key signed it, the portal's domain was
	// seen to serve that key and its newest head holds.
	Verified bool
	// Record is the hash of the signed record, empty for this portal's own.
	Record string
	// HeadIssued is when the portal last signed its head; zero for this portal.
	HeadIssued time.Time
	// Silent is true while the portal does not answer this one.
	Silent bool
	// Sought is the time when a visitor looked for an agent of the portal and the DHT returned the
	// portal's address; zero for portals found in another way, or before the last start.
	Sought time.Time
	// Also are the hosts of other portals that list the very same agent.
	Also []string
}

// HeadAge is the age of the portal's head at a time.
func (s Source) HeadAge(now time.Time) time.Duration {
	if s.HeadIssued.IsZero() {
		return 0
	}
	return max(now.Sub(s.HeadIssued), 0)
}

// Evidence shows that a portal lists an agent: a reader can verify it without trusting this
// portal. See docs/design/records.md.
type Evidence struct {
	// Card, Head and Record are records as they travel, Proof shows that the
	// head covers the record; it is nil when the log is not whole here.
	Card, Head, Record, Proof []byte
	// Hash is the record's, Issued and Expires are its times.
	Hash            string
	Issued, Expires time.Time
	// HeadHash, HeadIssued, HeadExpires, HeadSeq and HeadCount are the head's.
	HeadHash                string
	HeadIssued, HeadExpires time.Time
	HeadSeq, HeadCount      int64
	// Key is the id of the key that signed the record.
	Key string
	// Endpoints are the agent's addresses, as its record lists them.
	Endpoints []Address
	// CardURL is the address of the agent's own card.
	CardURL string
	// Terms and Pricing are the portal's words.
	Terms, Pricing string
}

// Address is where an agent is spoken to, and by which protocol.
type Address struct{ Protocol, URL string }
