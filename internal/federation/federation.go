// Package federation is what a portal knows of the others and decides about
// them: who it is itself (Self), which portals there are and how each is doing
// (Peer), whom it lets in, shows and tells (Policy), and the ports through which
// adapters move what is signed. Nobody has to be trusted: what others say is
// admitted by record.Gate and nothing else, and what operators decide holds on
// every way in and out.
//
// It knows no HTTP, no SQL and no agents as the directory has them; package
// peering moves records between the ports declared here, and docs/design/
// peering.md is what portals say to each other on the wire.
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
	// Pending: it is known and waits for what the policy asks for: an
	// operator's word or that of other portals.
	Pending State = "pending"
	// Active: it answered lately and its head is current.
	Active State = "active"
	// Silent: it does not answer, its head is still current.
	Silent State = "silent"
	// Stale: its head has ended; its agents are folded away.
	Stale State = "stale"
	// Denied: an operator's rule shuts it out.
	Denied State = "denied"
	// Quarantined: it was proved to lie. An operator decides what becomes of
	// it.
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
	// Reason says in a sentence why the state is what it is, empty for Active.
	Reason string
	// Rule is what an operator said of it, see Rules.
	Rule Rule
	// Said is what followed lists say of it.
	Said []Said
	// Proved is when its domain was last seen to serve its card, zero for
	// never.
	Proved time.Time
	// Known is when it was first heard of, LastSeen when it last answered or
	// asked with a signature that holds.
	Known, LastSeen time.Time
	RTT             time.Duration
	// Agents is how many of its agents are held here, Listed how many its head
	// counts. Truncated is true when its quota is why they differ.
	Agents, Listed int
	Truncated      bool
	// Head is the version of its newest head, HeadIssued and HeadExpires its
	// times. Lag is for how long a newer head has been known of whose records
	// are not all here; 0 when all are.
	Head                    record.Version
	HeadIssued, HeadExpires time.Time
	Lag                     time.Duration
	// Refused is until when it is refused for what it sent; zero for never.
	Refused time.Time
	// Bars is why it refuses whatever this portal asks: ReasonDenied,
	// ReasonPending or ReasonQuarantined, empty when it does not as far as is
	// known. BarsWhy are its words, in one line.
	Bars    Reason
	BarsWhy string
	// Faults counts what it sent that was refused, by reason, since the start.
	Faults map[string]int
}

// Host is the part of handles that means the portal: the host of its URL.
func (p Peer) Host() string { return HostOf(p.URL) }

// Partly reports whether too much of what the portal lists is missing here to
// search it here alone.
func (p Peer) Partly() bool { return p.Truncated || int64(p.Agents)*10 < int64(p.Listed)*9 }

// Mute reports whether it does not answer, since lately or for long.
func (p Peer) Mute() bool { return p.State == Silent || p.State == Stale }

// Coverage is how much of the network an answer is made of. The portal itself
// counts as one that is known, asked and answered.
type Coverage struct {
	Known int `json:"known"`
	// Asked are the portals whose agents were looked through: those held here
	// and those asked just now. Answered are those of them that are current or
	// answered in time; Silent names the others by host, at most 100.
	Asked    int      `json:"asked"`
	Answered int      `json:"answered"`
	Silent   []string `json:"silent"`
	// Named are those of Asked that the DHT named for what is looked for.
	Named int `json:"named,omitempty"`
	// OldestHead is the age of the oldest head that the answer rests on, in
	// seconds.
	OldestHead int64 `json:"oldest_head_age"`
	// Folded is how many agents of portals whose head has ended are left out.
	Folded int    `json:"folded,omitempty"`
	Tier   string `json:"tier"`
	// Limited is true when a time or count limit cut the asking short.
	Limited bool `json:"limited,omitempty"`
	// Indexes is how many index portals answered for others besides. What these
	// have is shown by proofs, that it is all is not: nobody counts as answered
	// for it.
	Indexes int `json:"indexes,omitempty"`
}
