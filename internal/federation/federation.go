// Package federation holds this portal's knowledge about other portals and the decisions about them: the identity of
// this portal (Self), the known portals and their state (Peer), the rules for admission, display and export (Policy),
// and the ports through which adapters move signed records. No portal has to be trusted: statements of others are
// admitted only by record.Gate, and decisions of operators apply to all traffic in both directions.
//
// The package knows no HTTP, no SQL and no agents of the directory. Package peering moves records
// between the ports declared here, and docs/design/peering.md describes the wire protocol.
package federation

import (
	"time"

	"agentsite/internal/record"
)

// State is the state of another portal as seen from here.
type State string

// The values of State.
const (
	// Joining: its address was reported, and it has not answered yet.
	Joining State = "joining"
	// Pending: it is known but not admitted yet; the policy requires a rule of an operator or vouching portals.
	Pending State = "pending"
	// Active: it answered recently and its head is valid.
	Active State = "active"
	// Silent: it does not answer, but its head is still valid.
	Silent State = "silent"
	// Stale: its head has expired; its agents are no longer shown.
	Stale State = "stale"
	// Denied: a rule or the policy excludes it.
	Denied State = "denied"
	// Quarantined: it signed two contradicting statements. Only an operator can release it.
	Quarantined State = "quarantined"
)

// Peer is another portal. If ID is empty, it is an address that has not answered yet.
type Peer struct {
	ID   record.PortalID
	URL  string // origin in its card; before there is one, the reported address
	Name string // display name, as the portal states it
	// Operator and Contact are also as the portal states them.
	Operator, Contact string
	Version           string // version of its software, as the portal states it
	Tier              string
	State             State
	// Reason explains the state in a sentence; empty for Active.
	Reason string
	// Rule is the operator's rule for this portal; the zero value if there is none.
	Rule Rule
	// Said are the statements of followed portals about this portal.
	Said []Said
	// Proved is the time at which its domain was last seen to serve its card; zero for never.
	Proved time.Time
	// Known is the time of the first report of the portal, LastSeen that of its last answer or validly
	// signed request.
	Known, LastSeen time.Time
	RTT             time.Duration
	// Agents is how many of its agents are stored here, Listed how many its head counts. Truncated is
	// true if they differ because the portal is over its quota.
	Agents, Listed int
	Truncated      bool
	// Head is the version of its newest head; HeadIssued and HeadExpires are that head's times. Lag is
	// the time since a head is known whose records are not all stored here; 0 if all are.
	Head                    record.Version
	HeadIssued, HeadExpires time.Time
	Lag                     time.Duration
	// Refused is the end of its time in the penalty box; zero if it is not in it.
	Refused time.Time
	// Bars is the reason with which the portal refuses all requests of this one: ReasonDenied, ReasonPending or
	// ReasonQuarantined; empty if it is not known to refuse. BarsWhy is its explanation, one line.
	Bars    Reason
	BarsWhy string
	// Faults counts refused records and answers of the portal since the start, by reason.
	Faults map[string]int
}

// Host is the host part of the portal's handles: the host of its URL.
func (p Peer) Host() string { return HostOf(p.URL) }

// Partly reports whether fewer than 90 % of the portal's agents are stored here, so that a local search
// alone would miss too many and remote search asks the portal.
func (p Peer) Partly() bool { return p.Truncated || int64(p.Agents)*10 < int64(p.Listed)*9 }

// Mute reports whether the portal does not answer at present (Silent or Stale).
func (p Peer) Mute() bool { return p.State == Silent || p.State == Stale }

// Coverage is the part of the network that a search result is based on. This portal counts as known,
// asked and answered.
type Coverage struct {
	Known int `json:"known"`
	// Asked counts the portals whose agents were searched: those stored here and those asked by remote
	// search. Answered counts those of them whose head is valid or that answered in time; Silent names
	// the others by host, at most 100.
	Asked    int      `json:"asked"`
	Answered int      `json:"answered"`
	Silent   []string `json:"silent"`
	// Named counts the portals in Asked that the DHT returned for the query.
	Named int `json:"named,omitempty"`
	// OldestHead is the age in seconds of the oldest head among the searched portals.
	OldestHead int64 `json:"oldest_head_age"`
	// Folded counts the agents that were left out because the head of their portal has expired.
	Folded int    `json:"folded,omitempty"`
	Tier   string `json:"tier"`
	// Limited is true if a time or count limit ended the remote search early.
	Limited bool `json:"limited,omitempty"`
	// Indexes counts the index portals that answered for other portals. Proofs show that their results are genuine
	// but not that they are complete, so no other portal counts as answered because of them.
	Indexes int `json:"indexes,omitempty"`
}
