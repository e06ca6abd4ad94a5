// Package federation holds the knowledge of this portal about other portals, and its decisions:
// the identity of this portal (Self), the known portals and their state (Peer), the rules for
// admission, display and export (Policy), and the ports through which adapters move signed
// records. No portal has to be trusted: statements of others are admitted by record.Gate and
// nothing else, and decisions of operators apply to every way in and out.
//
// The package knows no HTTP, no SQL and no agents of the directory. Package peering moves records
// between the ports declared here, and docs/design/peering.md describes the wire protocol.
package federation

import (
	"time"

	"agentsite/internal/record"
)

// State is how a portal is doing, as seen from here.
type State string

// The states of a Peer.
const (
	// Joining: its address was heard of, it has not answered yet.
	Joining State = "joining"
	// Pending: it is known and waits for the condition of the policy: a rule of an operator or
	// vouching by other portals.
	Pending State = "pending"
	// Active: it answered lately and its head is current.
	Active State = "active"
	// Silent: it does not answer, its head is still current.
	Silent State = "silent"
	// Stale: its head has ended; its agents are folded away.
	Stale State = "stale"
	// Denied: an operator's rule shuts it out.
	Denied State = "denied"
	// Quarantined: it was proved to lie. Only an operator can release it.
	Quarantined State = "quarantined"
)

// Peer is another portal. Without an ID it is an address that was given and
// has not answered yet.
type Peer struct {
	ID   record.PortalID
	URL  string // origin, of its card; as given before there is one
	Name string // as it calls itself
	// Operator and Contact are its words too.
	Operator, Contact string
	Version           string // of its software, as it says
	Tier              string
	State             State
	// Reason explains the state in a sentence, empty for Active.
	Reason string
	// Rule is the operator's rule for this portal.
	Rule Rule
	// Said are the entries of followed lists about this portal.
	Said []Said
	// Proved is when its domain was last seen to serve its card, zero for
	// never.
	Proved time.Time
	// Known is the time of the first report of it, LastSeen of its last answer or validly signed
	// request.
	Known, LastSeen time.Time
	RTT             time.Duration
	// Agents is how many of its agents are held here, Listed how many its head
	// counts. Truncated is true when its quota is why they differ.
	Agents, Listed int
	Truncated      bool
	// Head is the version of its newest head, HeadIssued and HeadExpires its times. Lag is the
	// time since a head became known whose records are not all held here; 0 when all are.
	Head                    record.Version
	HeadIssued, HeadExpires time.Time
	Lag                     time.Duration
	// Refused is the end of its time in the penalty box; zero when it is not refused.
	Refused time.Time
	// Bars is why it refuses whatever this portal asks: ReasonDenied,
	// ReasonPending or ReasonQuarantined, empty when it does not as far as is
	// known. BarsWhy are its words, in one line.
	Bars    Reason
	BarsWhy string
	// Faults counts its refused records and answers by reason, since the start.
	Faults map[string]int
}

// Host is the part of handles that means the portal: the host of its URL.
func (p Peer) Host() string { return HostOf(p.URL) }

// Partly reports whether fewer than 90 % of the listed agents are held here, so that a local
// search alone would miss too many.
func (p Peer) Partly() bool { return p.Truncated || int64(p.Agents)*10 < int64(p.Listed)*9 }

// Mute reports whether it does not answer, since lately or for long.
func (p Peer) Mute() bool { return p.State == Silent || p.State == Stale }

// Coverage is how much of the network an answer is made of. The portal itself
// counts as one that is known, asked and answered.
type Coverage struct {
	Known int `json:"known"`
	// Asked counts the portals whose agents were searched: those held here and those asked just
	// now. Answered counts those of them that are current or answered in time; Silent names the
	// others by host, at most 100.
	Asked    int      `json:"asked"`
	Answered int      `json:"answered"`
	Silent   []string `json:"silent"`
	// Named counts those of Asked that the DHT named for the query.
	Named int `json:"named,omitempty"`
	// OldestHead is the age of the oldest head that the answer rests on, in
	// seconds.
	OldestHead int64 `json:"oldest_head_age"`
	// Folded counts the left-out agents of portals whose head has expired.
	Folded int    `json:"folded,omitempty"`
	Tier   string `json:"tier"`
	// Limited is true when a time or count limit cut the asking short.
	Limited bool `json:"limited,omitempty"`
	// Indexes counts the index portals that answered for other portals. Proofs show that their
	// results are genuine but not that they are complete, so no other portal counts as answered
	// because of them.
	Indexes int `json:"indexes,omitempty"`
}
